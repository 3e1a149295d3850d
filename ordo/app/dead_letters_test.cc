#include "ordo/app/dead_letters.h"

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

JobResult failed_job() {
  JobResult result;
  result.number = 7;
  result.line = "a \"b\"";
  result.attempts = 3;
  result.ending = Ending::exited;
  result.code = 2;
  result.runtime = std::chrono::milliseconds(1500);
  result.err = "no\n";
  return result;
}

TEST(DeadLettersTest, AnExitStatusIsNamedWithInputAttemptsAndStderr) {
  EXPECT_EQ(DeadLetters::describe(failed_job()),
            R"({"job":7,"input":"a \"b\"","attempts":3,"reason":"exit:2","exit":2,)"
            R"("seconds":1.500000,"stderr":"no\n"})");
}

TEST(DeadLettersTest, ASignalAndATimeoutAreNamed) {
  JobResult result = failed_job();
  result.ending = Ending::signaled;
  result.code = 9;
  EXPECT_NE(DeadLetters::describe(result).find(R"("reason":"signal:9","signal":9)"),
            std::string::npos);
  result.ending = Ending::timed_out;
  EXPECT_NE(DeadLetters::describe(result).find(R"("reason":"timeout")"), std::string::npos);
}

TEST(DeadLettersTest, InputThatIsNotTextIsBase64) {
  JobResult result = failed_job();
  result.line = "\xff\xfe";
  EXPECT_NE(DeadLetters::describe(result).find(R"("input_base64":"//4=")"), std::string::npos);
}

TEST(DeadLettersTest, OnlyTheEndOfALongStderrIsKeptAndNoCharacterIsCut) {
  JobResult result = failed_job();
  for (int i = 0; i < 5000; ++i)
    result.err += "\xe2\x82\xac";
  result.err += "!";
  const std::string text = DeadLetters::describe(result);
  EXPECT_NE(text.find("\"stderr\":\"\xe2\x82\xac"), std::string::npos);
  EXPECT_LT(text.size(), 4400u);
}

TEST(DeadLettersTest, AFileThatCannotBeOpenedIsNamed) {
  Result<DeadLetters> letters = DeadLetters::open("/nowhere/failed.jsonl");
  ASSERT_FALSE(letters);
  EXPECT_NE(letters.error().message.find("'/nowhere/failed.jsonl'"), std::string::npos);
}

}  // namespace
}  // namespace ordo::app

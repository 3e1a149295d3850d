// What order `ordo map` keeps, and how much it does at once.
#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "map_program.h"

namespace ordo::flow {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(MapOrderTest, OutputsComeInInputOrderWhateverTheJobsTake) {
  std::mt19937 random(1);
  std::string input, expected;
  for (int i = 0; i < 60; ++i) {
    const std::string line = std::to_string(random() % 5) + std::to_string(i);
    input += line + "\n";
    expected += line + "\n";
  }
  const Finished end = run_ordo(
      {"map", "-j8", "--", "sh", "-c", "sleep 0.0$(echo $1 | cut -c1); echo $1", "sh"}, input);
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_EQ(end.out, expected);
}

TEST(MapOrderTest, AnOutputIsNeverMixedWithAnother) {
  const Finished end =
      run_ordo({"map", "-j8", "--unordered", "--shell", "for i in 1 2 3 4 5; do echo {}; done"},
               numbers(40));
  const std::vector<std::string> lines = split_lines(end.out);
  ASSERT_EQ(lines.size(), 200u);
  for (std::size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(lines[i], lines[i / 5 * 5]);
}

// The first job ends only when the second has: in order, that needs both at once, and the output
// of the second must wait.
TEST(MapOrderTest, JobsRunAtTheSameTimeAndTheLaterOneWaitsForItsTurn) {
  const Folder folder;
  const std::string fifo = folder.fifo("go");
  const Finished end =
      run_ordo({"map", "-j2", "--shell",
                "if [ {} = 1 ]; then read x < " + fifo + "; else echo > " + fifo + "; fi; echo {}"},
               "1\n2\n");
  EXPECT_EQ(end.out, "1\n2\n");
}

TEST(MapOrderTest, WithoutOrderTheFasterOneIsFirst) {
  const Folder folder;
  const std::string fifo = folder.fifo("go");
  Program program({"map", "-j2", "--unordered", "--shell",
                   "if [ {} = 1 ]; then read x < " + fifo + "; fi; echo {}"});
  program.write("1\n2\n");
  EXPECT_EQ(program.read_line(), "2");
  folder.write("go", "\n");
  EXPECT_EQ(program.finish().out, "1\n");
}

TEST(MapOrderTest, LinesOfOneKeyRunInTurnAndKeysSideBySide) {
  const Folder folder;
  const std::string fifo = folder.fifo("go");
  // a1 is held until b1, behind it in the input, has begun; a2 must not begin before a1 has ended.
  const Finished end =
      run_ordo({"map", "-j3", "--key", "1", "--shell",
                "echo begin {} >> " + folder.file("log") + "; case {} in 'a 1') read x < " + fifo +
                    ";; 'b 1') echo > " + fifo + ";; esac; echo end {} >> " + folder.file("log") +
                    "; echo {}"},
               "a 1\na 2\nb 1\nb 2\n");
  EXPECT_EQ(end.status, 0) << end.err;
  std::vector<std::string> a, b;
  for (const std::string& line : split_lines(folder.read("log"))) {
    (has(line, "a ") ? a : b).push_back(line);
  }
  EXPECT_EQ(a, (std::vector<std::string>{"begin a 1", "end a 1", "begin a 2", "end a 2"}));
  EXPECT_EQ(b, (std::vector<std::string>{"begin b 1", "end b 1", "begin b 2", "end b 2"}));
}

class MapKeyOrder : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(MapKeyOrder, OutputsOfOneKeyKeepTheirOrder) {
  std::mt19937 random(3);
  std::string input;
  for (int i = 0; i < 300; ++i) {
    input += "k" + std::to_string(random() % 7) + "," + std::to_string(i) + "\n";
  }
  std::vector<std::string> arguments{"map", "-j4"};
  arguments.insert(arguments.end(), GetParam().begin(), GetParam().end());
  const Finished end = run_ordo(arguments, input);
  EXPECT_EQ(end.status, 0) << end.err;
  std::map<std::string, int> last;
  const std::vector<std::string> lines = split_lines(end.out);
  EXPECT_EQ(lines.size(), 300u);
  for (const std::string& line : lines) {
    const std::size_t comma = line.find(',');
    const std::string key = line.substr(0, comma);
    const int number = std::stoi(line.substr(comma + 1));
    if (last.count(key) > 0) {
      EXPECT_LT(last[key], number);
    }
    last[key] = number;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Ways, MapKeyOrder,
    testing::Values(std::vector<std::string>{"--key", "1", "-t", ",", "echo"},
                    std::vector<std::string>{"--key-regex", "^(k[0-9])", "echo"},
                    std::vector<std::string>{"--server", "--key", "1", "-t", ",", "cat"}));

TEST(MapOrderTest, NoMoreLinesAreBegunThanTheWindowHolds) {
  const Folder folder;
  const std::string fifo = folder.fifo("go");
  Program program({"map", "-j4", "--window", "5", "--shell",
                   "echo {} >> " + folder.file("begun") + "; if [ {} = 1 ]; then read x < " + fifo +
                       "; fi; if [ {} = 5 ]; then echo > " + folder.fifo("five") +
                       "; fi; echo {}"});
  FifoReader five(folder.file("five"));
  program.write(numbers(50));
  five.read_line();  // Line 5 has begun, so lines 2 to 4 have been through a worker.
  std::vector<std::string> begun = split_lines(folder.read("begun"));
  EXPECT_LE(begun.size(), 5u);
  folder.write("go", "\n");
  EXPECT_EQ(program.finish().out, numbers(50));
}

TEST(MapOrderTest, AWindowOfOneWorks) {
  EXPECT_EQ(run_ordo({"map", "-j4", "--window", "1", "echo"}, numbers(20)).out, numbers(20));
  EXPECT_EQ(run_ordo({"map", "-j2", "--window", "1", "--server", "cat"}, numbers(200)).out,
            numbers(200));
}

TEST(MapOrderTest, WorkersScaleWithDemand) {
  const Folder folder;
  const std::string fifo = folder.fifo("go");
  // Job 1 needs another job beside it; one worker alone would wait for ever.
  const Finished end = run_ordo({"map", "--autoscale", "1..4", "--stats", "--shell",
                                 "if [ {} = 1 ]; then read x < " + fifo +
                                     "; fi; if [ {} = 2 ]; then echo > " + fifo + "; fi; echo {}"},
                                numbers(10));
  EXPECT_EQ(end.out, numbers(10));
  EXPECT_TRUE(has(end.err, "1 to 4")) << end.err;
}

TEST(MapOrderTest, SlotsAreNumberedFromOneToTheNumberOfWorkers) {
  const Finished end = run_ordo({"map", "-j3", "echo", "{%}"}, numbers(60));
  for (const std::string& line : split_lines(end.out)) {
    EXPECT_TRUE(line == "1" || line == "2" || line == "3") << line;
  }
  EXPECT_EQ(run_ordo({"map", "-j3", "echo", "{#}"}, "a\nb\nc\n").out, "1\n2\n3\n");
}

}  // namespace
}  // namespace ordo::flow

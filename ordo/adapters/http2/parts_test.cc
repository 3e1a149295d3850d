// The small parts of the front, each by itself.
#include <array>
#include <chrono>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/adapters/http2/deframer.h"
#include "ordo/adapters/http2/frame_meter.h"
#include "ordo/adapters/http2/gzip.h"
#include "ordo/adapters/http2/header_list.h"
#include "ordo/adapters/http2/output_queue.h"
#include "ordo/adapters/http2/token_bucket.h"
#include "tests/support/http2_rig.h"

namespace ordo::http2 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing_support::framed;

TEST(TokenBucketTest, ABurstPassesAndThenSoManyASecond) {
  TokenBucket bucket(3, 10);
  TimePoint now{seconds(100)};
  EXPECT_TRUE(bucket.take(now));
  EXPECT_TRUE(bucket.take(now));
  EXPECT_TRUE(bucket.take(now));
  EXPECT_FALSE(bucket.take(now));
  now += milliseconds(100);
  EXPECT_TRUE(bucket.take(now));
  EXPECT_FALSE(bucket.take(now));
  now += seconds(1'000'000);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(bucket.take(now));
  EXPECT_FALSE(bucket.take(now));
}

TEST(HeaderListTest, FindsTheFirstOfAName) {
  HeaderList headers = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
  EXPECT_EQ(headers.find("a"), "1");
  EXPECT_EQ(headers.find("c"), std::nullopt);
  EXPECT_EQ(headers.size(), 3u);
  EXPECT_EQ(headers[2].value, "3");
  EXPECT_EQ(headers.bytes(), 3 * 34u);
}

TEST(OutputQueueTest, WhatIsGatheredIsWhatWasPutInWhateverIsTaken) {
  for (std::size_t step = 1; step < 4'000; step += 37) {
    BufferStore store;
    OutputQueue queue(store);
    const Slice large = Slice::of(std::string(3'000, 'l'));
    queue.copy("begin");
    queue.share(large);
    queue.share(Slice::constant("small"));
    queue.copy("end");
    const std::string whole = "begin" + std::string(large.bytes) + "smallend";
    std::string seen;
    while (!queue.empty()) {
      std::array<iovec, 2> pieces{};
      const std::size_t count = queue.gather(pieces);
      std::string offered;
      for (std::size_t i = 0; i < count; ++i)
        offered.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
      const std::size_t taken = std::min(step, offered.size());
      seen.append(offered, 0, taken);
      queue.sent(taken);
    }
    ASSERT_EQ(seen, whole) << step;
  }
}

TEST(OutputQueueTest, ALargeSliceIsNotCopied) {
  BufferStore store;
  OutputQueue queue(store);
  const Slice large = Slice::of(std::string(3'000, 'l'));
  queue.share(large);
  std::array<iovec, 2> pieces{};
  ASSERT_EQ(queue.gather(pieces), 1u);
  EXPECT_EQ(pieces[0].iov_base, large.bytes.data());
}

class DeframerSeeds : public testing::TestWithParam<unsigned> {};

// Goal: messages come out as they went in, wherever the bytes are cut, and nothing stays counted.
// Method: random messages, some compressed, in random pieces; the seed names the failing run.
TEST_P(DeframerSeeds, AnySplitGivesTheSameMessages) {
  std::mt19937 random(GetParam());
  const Limits limits;
  InputBudget budget(1 << 30);
  std::size_t connection_bytes = 0;
  std::vector<std::string> expected;
  std::string stream;
  for (int i = 0; i < 20; ++i) {
    std::string message(random() % 3'000, static_cast<char>('a' + i));
    const bool is_compressed = random() % 3 == 0;
    stream.append(is_compressed ? framed(deflated({Slice::of(message)}), true) : framed(message));
    expected.push_back(std::move(message));
  }
  {
    Deframer deframer(limits, connection_bytes, budget);
    deframer.allow_gzip();
    std::vector<std::string> seen;
    std::string_view rest = stream;
    while (!rest.empty()) {
      const std::size_t size = std::min<std::size_t>(1 + random() % 2'000, rest.size());
      const std::vector<char> piece(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(size));
      rest.remove_prefix(size);
      std::string_view bytes(piece.data(), piece.size());
      while (const auto message = deframer.next(bytes))
        seen.emplace_back(*message);
      ASSERT_TRUE(bytes.empty());
      ASSERT_FALSE(deframer.error());
      ASSERT_EQ(budget.used(), connection_bytes);
    }
    EXPECT_FALSE(deframer.is_in_message());
    EXPECT_EQ(seen, expected);
  }
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(connection_bytes, 0u);
}
INSTANTIATE_TEST_SUITE_P(Seeds, DeframerSeeds, testing::Range(0u, 50u));

TEST(DeframerTest, AMessageThatIsAnnouncedTakesNoMemoryBeforeItComes) {
  const Limits limits;
  InputBudget budget(1 << 30);
  std::size_t connection_bytes = 0;
  Deframer deframer(limits, connection_bytes, budget);
  std::string_view bytes("\0\x01\0\0\0abc", 8);
  EXPECT_FALSE(deframer.next(bytes));
  EXPECT_LT(budget.used(), 100u);
}

TEST(FrameMeterTest, FramesAreCountedTheSameWhereverTheyAreCut) {
  Limits limits;
  limits.controls_burst = 16;
  std::string pings;
  for (int i = 0; i < 20; ++i)
    pings.append(std::string("\0\0\x08\x06\0\0\0\0\0", 9)).append("pingping");
  for (std::size_t piece_size = 1; piece_size < 40; ++piece_size) {
    FrameMeter meter(limits);
    std::size_t given = 0;
    while (given < pings.size() &&
           meter.look(std::string_view(pings).substr(given, piece_size), TimePoint{}) == nullptr)
      given += piece_size;
    // The header of the 17th is one too many.
    EXPECT_LE(given, 16u * 17 + 9);
    EXPECT_GE(given + piece_size, 16u * 17 + 9);
  }
}

TEST(FrameMeterTest, AMessageOfTheClientPaysForOneWindowUpdateAndForNothingElse) {
  Limits limits;
  limits.controls_burst = 16;
  limits.controls_per_second = 1;
  const std::string data = std::string("\0\0\x01\0\0\0\0\0\x01", 9) + "x";
  const std::string update = std::string("\0\0\x04\x08\0\0\0\0\x01", 9) + "four";
  const std::string ping = std::string("\0\0\x08\x06\0\0\0\0\0", 9) + "pingping";
  FrameMeter honest(limits);
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(honest.look(data + update, TimePoint{}), nullptr);
  const auto taken = [&](const std::string& frames) {
    FrameMeter meter(limits);
    int count = 0;
    while (count < 1000 && meter.look(frames, TimePoint{}) == nullptr)
      ++count;
    return count;
  };
  EXPECT_EQ(taken(data + update + update), 16);
  EXPECT_EQ(taken(data + ping), 16);
  EXPECT_EQ(taken(update), 16);
}

TEST(GzipTest, WhatIsCutOrIsNoneIsRefused) {
  const std::string good = deflated({Slice::constant("hello"), Slice::constant(" you")});
  EXPECT_EQ(inflated(good, 100).value(), "hello you");
  EXPECT_EQ(inflated(good, 9).value(), "hello you");
  EXPECT_EQ(inflated(good, 8).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(inflated(good.substr(0, good.size() - 1), 100).error().code, ErrorCode::internal);
  EXPECT_EQ(inflated(good + "x", 100).error().code, ErrorCode::internal);
  EXPECT_EQ(inflated("hello", 100).error().code, ErrorCode::internal);
  EXPECT_EQ(inflated("", 100).error().code, ErrorCode::internal);
}

}  // namespace
}  // namespace ordo::http2

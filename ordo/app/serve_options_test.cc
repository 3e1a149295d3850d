#include "ordo/app/serve_options.h"

#include <gtest/gtest.h>

#include "ordo/app/command_line.h"
#include "ordo/app/commands.h"

namespace ordo::app {
namespace {

using Words = std::vector<std::string>;

Result<ServeOptions> options_of(const Words& words) {
  Words all{"serve"};
  all.insert(all.end(), words.begin(), words.end());
  CommandWords got;
  const CommandTable table{.commands = {serve_command([&](const CommandWords& typed) {
                             got = typed;
                             return 0;
                           })}};
  const Invocation wanted = parse_command_line(all, table);
  if (wanted.what != Invocation::What::run) {
    const std::string& text = wanted.text;  // ordo: MESSAGE, and what to try.
    return Error{ErrorCode::invalid_argument, text.substr(6, text.find('\n') - 6)};
  }
  EXPECT_EQ(wanted.run(), 0);
  Settings settings(serve_rules(), "serve");
  for (const auto& [name, text] : got.flags)
    settings.take_flag(name, text);
  return serve_options(settings);
}

std::string refusal_of(const Words& words) {
  const Result<ServeOptions> options = options_of(words);
  return options ? "accepted" : options.error().message;
}

TEST(ServeOptionsTest, TheDefaultsAreThoseOfTheHelp) {
  const Result<ServeOptions> options = options_of({});
  ASSERT_TRUE(options) << options.error().message;
  const ServeOptions plain;
  EXPECT_EQ(options->listen.text(), "127.0.0.1:8085");
  EXPECT_EQ(options->data, plain.data);
  EXPECT_EQ(options->min_ack_deadline, plain.min_ack_deadline);
  EXPECT_EQ(options->ordered_window, plain.ordered_window);
  EXPECT_EQ(options->fsync, plain.fsync);
  EXPECT_EQ(options->fsync_interval, plain.fsync_interval);
  EXPECT_EQ(options->memory_max, plain.memory_max);
  EXPECT_EQ(options->partitions_max, plain.partitions_max);
  EXPECT_EQ(options->threads, plain.threads);
  EXPECT_EQ(options->io_threads, plain.io_threads);
  EXPECT_EQ(options->connections_max, plain.connections_max);
  EXPECT_EQ(options->notice, plain.notice);
  EXPECT_EQ(options->drain, plain.drain);
  EXPECT_EQ(options->log, plain.log);
}

TEST(ServeOptionsTest, FlagsSetThem) {
  const Result<ServeOptions> options = options_of({"--listen",
                                                   "[::1]:0",
                                                   "--data",
                                                   "/d",
                                                   "--min-ack-deadline",
                                                   "1s",
                                                   "--ordered-window",
                                                   "5",
                                                   "--fsync",
                                                   "interval",
                                                   "--fsync-interval",
                                                   "5ms",
                                                   "--memory",
                                                   "64MiB",
                                                   "--max-partitions",
                                                   "4096",
                                                   "--threads",
                                                   "3",
                                                   "--io-threads",
                                                   "2",
                                                   "--max-connections",
                                                   "7",
                                                   "--notice",
                                                   "2s",
                                                   "--drain",
                                                   "1s",
                                                   "--log",
                                                   "json"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->listen.text(), "[::1]:0");
  EXPECT_EQ(options->data, "/d");
  EXPECT_EQ(options->min_ack_deadline, std::chrono::seconds(1));
  EXPECT_EQ(options->ordered_window, 5U);
  EXPECT_EQ(options->fsync, store_rocksdb::SyncPolicy::interval);
  EXPECT_EQ(options->fsync_interval, std::chrono::milliseconds(5));
  EXPECT_EQ(options->memory_max, std::size_t{64} << 20);
  EXPECT_EQ(options->partitions_max, 4096U);
  EXPECT_EQ(options->threads, 3U);
  EXPECT_EQ(options->io_threads, 2U);
  EXPECT_EQ(options->connections_max, 7U);
  EXPECT_EQ(options->notice, std::chrono::seconds(2));
  EXPECT_EQ(options->drain, std::chrono::seconds(1));
  EXPECT_EQ(options->log, LogFormat::json);
}

TEST(ServeOptionsTest, AnAddressThatOthersCanReachIsRefusedWithTheReason) {
  for (const char* address : {"0.0.0.0:8085", "192.168.1.7:8085", "[::]:8085", "[fe80::1]:1"}) {
    const std::string refusal = refusal_of({"--listen", address});
    EXPECT_NE(refusal.find("--listen: '" + std::string(address) + "' can be reached from other"),
              std::string::npos)
        << refusal;
  }
  EXPECT_EQ(refusal_of({"--listen", "127.3.2.1:1"}), "accepted");
}

TEST(ServeOptionsTest, ABadValueIsRefusedWithTheNameOfItsFlag) {
  EXPECT_EQ(refusal_of({"--fsync", "never"}), "--fsync: 'never' is none of commit, interval, os");
  EXPECT_EQ(refusal_of({"--log", "xml"}), "--log: 'xml' is none of text, json");
  EXPECT_EQ(refusal_of({"--min-ack-deadline", "500ms"}),
            "--min-ack-deadline: '500ms' is not between 1s and 600s");
  EXPECT_EQ(refusal_of({"--memory", "1MiB"}), "--memory: '1MiB' is less than 16MiB");
  EXPECT_NE(refusal_of({"--ordered-window", "0"}).find("--ordered-window: '0'"), std::string::npos);
  EXPECT_EQ(refusal_of({"--data", ""}), "--data: '' is no directory");
  EXPECT_EQ(refusal_of({"--drain", "36501d"}), "--drain: '36501d' is not a time up to 36500d");
}

}  // namespace
}  // namespace ordo::app

#include "ordo/app/gateway_options.h"

#include <gtest/gtest.h>

#include "ordo/app/command_line.h"
#include "ordo/app/commands.h"

namespace ordo::app {
namespace {

using Words = std::vector<std::string>;

Result<GatewayOptions> options_of(const Words& words) {
  Words all{"gateway"};
  all.insert(all.end(), words.begin(), words.end());
  CommandWords got;
  const CommandTable table{.commands = {gateway_command([&](const CommandWords& typed) {
                             got = typed;
                             return 0;
                           })}};
  const Invocation wanted = parse_command_line(all, table);
  if (wanted.what != Invocation::What::run) {
    const std::string& text = wanted.text;  // ordo: MESSAGE, and what to try.
    return Error{ErrorCode::invalid_argument, text.substr(6, text.find('\n') - 6)};
  }
  EXPECT_EQ(wanted.run(), 0);
  Settings settings(gateway_rules(), "gateway");
  for (const auto& [name, text] : got.flags)
    settings.take_flag(name, text);
  return gateway_options(settings);
}

std::string refusal_of(const Words& words) {
  const Result<GatewayOptions> options = options_of(words);
  return options ? "accepted" : options.error().message;
}

TEST(GatewayOptionsTest, TheDefaultsAreThoseOfTheHelp) {
  const Result<GatewayOptions> options = options_of({});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->listen.text(), "127.0.0.1:7070");
  ASSERT_TRUE(options->admin);
  EXPECT_EQ(options->admin->text(), "127.0.0.1:7071");
  EXPECT_EQ(options->partitions, 4U);
  EXPECT_EQ(options->budget, 1024U);
  EXPECT_EQ(options->per_id, 64U);
  EXPECT_FALSE(options->strict_gaps);
  EXPECT_TRUE(options->callers_run);
  EXPECT_EQ(options->drain, std::chrono::seconds(10));
}

TEST(GatewayOptionsTest, FlagsSetThem) {
  const Result<GatewayOptions> options =
      options_of({"--listen", "127.0.0.1:0", "--partitions", "8", "--budget=64", "--per-id", "2",
                  "--strict-gaps", "--no-admin", "--run", "threads", "--io-threads", "2",
                  "--max-connections", "5", "--drain", "250ms"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->listen.port, 0);
  EXPECT_FALSE(options->admin);
  EXPECT_EQ(options->partitions, 8U);
  EXPECT_EQ(options->budget, 64U);
  EXPECT_EQ(options->per_id, 2U);
  EXPECT_TRUE(options->strict_gaps);
  EXPECT_FALSE(options->callers_run);
  EXPECT_EQ(options->io_threads, 2U);
  EXPECT_EQ(options->connections_max, 5U);
  EXPECT_EQ(options->drain, std::chrono::milliseconds(250));
}

TEST(GatewayOptionsTest, ABadValueIsRefusedWithTheNameOfItsFlag) {
  EXPECT_EQ(refusal_of({"--budget", "0"}), "--budget: '0' is not a number from 1 to 1048576");
  EXPECT_TRUE(refusal_of({"--partitions", "257"}).starts_with("--partitions: '257'"));
  EXPECT_TRUE(refusal_of({"--per-id", "many"}).starts_with("--per-id: 'many'"));
  EXPECT_TRUE(refusal_of({"--drain", "0"}).starts_with("--drain: "));
  EXPECT_TRUE(refusal_of({"--run", "fast"}).starts_with("--run: 'fast' is none of"));
  EXPECT_TRUE(refusal_of({"--listen", "here"}).starts_with("--listen: 'here' is not"));
  EXPECT_TRUE(refusal_of({"--admin", "there"}).starts_with("--admin: 'there' is not"));
}

TEST(GatewayOptionsTest, AnAddressOthersCanReachNeedsConsent) {
  EXPECT_NE(refusal_of({"--listen", "0.0.0.0:7070"}).find("--allow-remote"), std::string::npos);
  EXPECT_NE(refusal_of({"--admin", "[::]:1"}).find("--allow-remote"), std::string::npos);
  EXPECT_TRUE(options_of({"--listen", "0.0.0.0:7070", "--allow-remote"}));
}

TEST(GatewayOptionsTest, AnUnknownFlagIsRefusedWithASuggestion) {
  const Invocation wanted = parse_command_line({"gateway", "--partitons", "4"}, all_commands());
  ASSERT_EQ(wanted.what, Invocation::What::complain);
  EXPECT_NE(wanted.text.find("did you mean '--partitions'?"), std::string::npos) << wanted.text;
  EXPECT_NE(wanted.text.find("ordo gateway --help"), std::string::npos) << wanted.text;
}

TEST(GatewayOptionsTest, TheClientHasItsOwn) {
  ClientOptions got;
  const CommandTable table{.commands = {gateway_client_command([&](const ClientOptions& options) {
                             got = options;
                             return 0;
                           })}};
  const Invocation wanted = parse_command_line(
      {"gateway-client", "--connect", "[::1]:9", "--binary", "--window", "3"}, table);
  ASSERT_EQ(wanted.what, Invocation::What::run) << wanted.text;
  EXPECT_EQ(wanted.run(), 0);
  EXPECT_EQ(got.connect, "[::1]:9");
  EXPECT_TRUE(got.binary);
  EXPECT_EQ(got.window, 3U);
}

}  // namespace
}  // namespace ordo::app

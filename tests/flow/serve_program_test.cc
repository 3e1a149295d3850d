// The real `ordo serve`: started, looked at, told to stop, and started again.
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "map_program.h"
#include "ordo/adapters/store_rocksdb/open_broker.h"
#include "ordo/app/unique_fd.h"
#include "tests/support/push_receiver.h"
#include "tests/support/raw_socket.h"
#include "tests/support/waiting.h"

namespace ordo::flow {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;
using testing_support::eventually;
using testing_support::HeldAnswers;
using testing_support::kIsSanitized;
using testing_support::PushedRequest;
using testing_support::PushPeer;
using testing_support::PushReceiver;
using testing_support::RawSocket;
using Words = std::vector<std::string>;

std::string http(std::uint16_t port, const std::string& request_line,
                 const std::string& host = "localhost") {
  RawSocket socket(port);
  socket.send(request_line + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  return socket.read_until("\r\n\r\n") + [&] {
    std::string rest;
    for (std::string more = socket.read(); !more.empty(); more = socket.read())
      rest += more;
    return rest;
  }();
}

std::string get(std::uint16_t port, const std::string& path) {
  return http(port, "GET " + path);
}

// A variable of the environment, while it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name_, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* const name_;
};

// A broker on a free port, with its data in the folder.
class ServeProgram {
 public:
  explicit ServeProgram(const Folder& folder, const Words& more = {})
      : program_(words_with(folder, more)) {
    for (std::string& line : banner_)
      line = program_.read_line();
    const std::string& at = banner_[1];
    const std::size_t colon = at.rfind(':');
    if (colon != std::string::npos)
      port_ = static_cast<std::uint16_t>(std::stoul(at.substr(colon + 1)));
    EXPECT_NE(port_, 0) << at;
  }

  std::uint16_t port() const { return port_; }
  const std::array<std::string, 6>& banner() const { return banner_; }
  Program& program() { return program_; }

  Finished stop() {
    program_.signal(SIGTERM);
    return program_.finish();
  }

 private:
  static Words words_with(const Folder& folder, const Words& more) {
    Words words{"serve", "--listen", "127.0.0.1:0", "--data", folder.file("data")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  Program program_;
  std::array<std::string, 6> banner_;
  std::uint16_t port_ = 0;
};

TEST(ServeProgramTest, SaysWhereEverythingIs) {
  const Folder folder;
  ServeProgram serve(folder);
  const std::string at = "127.0.0.1:" + std::to_string(serve.port());
  EXPECT_THAT(serve.banner()[0], MatchesRegex("  Ordo [0-9.]+   ready in [0-9]+ ms"));
  EXPECT_EQ(serve.banner()[1], "  Pub/Sub    " + at + "      export PUBSUB_EMULATOR_HOST=" + at);
  EXPECT_EQ(serve.banner()[2], "  Status     http://" + at + "/");
  EXPECT_EQ(serve.banner()[3], "  Data       " + folder.file("data") + "  (0 topics, 0 messages)");
  EXPECT_THAT(serve.banner()[4], StartsWith("  Try        ordo demo --host " + at + " "));
  EXPECT_EQ(serve.banner()[5], "  Stop       Ctrl-C drains");
  const Finished end = serve.stop();
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("ordo: stopping"));
}

TEST(ServeProgramTest, ServesHealthMetricsAndAPage) {
  const Folder folder;
  const ServeProgram serve(folder);
  EXPECT_THAT(get(serve.port(), "/livez"), EndsWith("\r\n\r\nok\n"));
  EXPECT_THAT(get(serve.port(), "/readyz"), EndsWith("\r\n\r\nready\n"));
  EXPECT_THAT(get(serve.port(), "/nowhere"), StartsWith("HTTP/1.1 404 "));
  const std::string metrics = get(serve.port(), "/metrics");
  for (const char* line : {"\nordo_ready 1\n", "\nordo_topics 0\n", "\nordo_store_full 0\n",
                           "\nordo_http_requests_total ", "ordo_build_info{version=\"ordo "}) {
    EXPECT_THAT(metrics, HasSubstr(line));
  }
  const std::string page = get(serve.port(), "/?x=1");
  EXPECT_THAT(page, AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("<title>Ordo</title>"),
                          HasSubstr("content-type: text/html"), HasSubstr("Blocked keys")));
  EXPECT_THAT(get(serve.port(), "/status.css"), HasSubstr("content-type: text/css"));
}

TEST(ServeProgramTest, ThePageMayLoadNothingFromElsewhereAndRunNothing) {
  const Folder folder;
  const ServeProgram serve(folder);
  const std::string page = get(serve.port(), "/");
  EXPECT_THAT(page, AllOf(HasSubstr("content-security-policy: default-src 'none'; "),
                          HasSubstr("frame-ancestors 'none'"), Not(HasSubstr("unsafe-inline")),
                          HasSubstr("x-content-type-options: nosniff"),
                          HasSubstr("cache-control: no-store")));
  EXPECT_THAT(
      page, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("style=")), Not(HasSubstr("http://"))));
}

TEST(ServeProgramTest, NothingCanBeChangedOverThePagesAndOtherNamesAreRefused) {
  const Folder folder;
  const ServeProgram serve(folder);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    EXPECT_THAT(http(serve.port(), std::string(method) + " /"),
                AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("allow: GET, HEAD")));
  }
  EXPECT_THAT(http(serve.port(), "GET /", "evil.example"), StartsWith("HTTP/1.1 421 "));
  EXPECT_THAT(http(serve.port(), "HEAD /livez"),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\n\r\n")));
}

// Goal: what clients have named is shown, as text, with its backlog and its stuck keys.
TEST(ServeProgramTest, ShowsTopicsBacklogAndHostileNamesAsText) {
  const Folder folder;
  const std::string project = "<img src=x onerror=alert(1)>";
  const std::string topic = "projects/" + project + "/topics/orders";
  const std::string subscription = "projects/" + project + "/subscriptions/billing";
  {
    auto opened = open_broker(folder.file("data"));
    ASSERT_TRUE(opened) << opened.error().message;
    Broker& broker = **opened;
    ASSERT_TRUE(broker.create_topic({.name = topic}));
    ASSERT_TRUE(broker.create_subscription(
        {.name = subscription, .topic = topic, .enable_message_ordering = true}));
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(broker.publish(topic, {{.data = "x", .ordering_key = "<script>key</script>"}}));
    }
    ASSERT_TRUE(broker.pull(subscription, {.messages_max = 1}));
    ASSERT_TRUE(
        broker.operate_key(subscription, "<script>key</script>", broker::OperateKey::Verb::pause));
    ASSERT_TRUE(broker.close(system_clock().now() + std::chrono::seconds(60)));
  }
  const ServeProgram serve(folder);
  EXPECT_THAT(serve.banner()[3], HasSubstr("(1 topic, 3 messages)"));
  const std::string page = get(serve.port(), "/");
  EXPECT_THAT(page, AllOf(HasSubstr("/topics/orders"), HasSubstr("/subscriptions/billing"),
                          HasSubstr("&lt;img src=x onerror=alert(1)&gt;"),
                          HasSubstr("<td class=\"n\">3</td>"), Not(HasSubstr("<img")),
                          HasSubstr("&lt;script&gt;key&lt;"), HasSubstr("paused by an operator"),
                          Not(HasSubstr("<script"))));
  EXPECT_THAT(
      get(serve.port(), "/metrics"),
      AllOf(HasSubstr("\nordo_subscription_backlog{subscription=\"" + subscription + "\"} 3\n"),
            Not(HasSubstr("<script>key"))));
}

TEST(ServeProgramTest, IsNotReadyBeforeItAcceptsNoMoreAndASecondSignalForcesTheEnd) {
  const Folder folder;
  ServeProgram serve(folder, {"--notice", "10m"});
  serve.program().signal(SIGTERM);
  EXPECT_TRUE(eventually(
      [&] { return get(serve.port(), "/readyz").ends_with("\r\n\r\nnot ready: draining\n"); }));
  EXPECT_THAT(get(serve.port(), "/livez"), EndsWith("\r\n\r\nok\n"));
  // The notice stands in the log when the second signal is let through.
  serve.program().signal(SIGTERM);
  const Finished end = serve.program().finish();
  EXPECT_EQ(end.status, 1000 + SIGTERM);
  // It is as if the power had failed: the next one starts, and has everything.
  ServeProgram next(folder);
  EXPECT_THAT(get(next.port(), "/readyz"), EndsWith("ready\n"));
  EXPECT_EQ(next.stop().status, 0);
}

TEST(ServeProgramTest, AHangUpWhileItStopsDoesNotCutThatShort) {
  const Folder folder;
  ServeProgram serve(folder, {"--notice", "2s"});
  serve.program().signal(SIGTERM);
  EXPECT_TRUE(eventually(
      [&] { return get(serve.port(), "/readyz").ends_with("\r\n\r\nnot ready: draining\n"); }));
  serve.program().signal(SIGHUP);
  EXPECT_EQ(serve.program().finish().status, 0);
}

TEST(ServeProgramTest, AnInterruptFromTheTerminalDrainsToo) {
  const Folder folder;
  ServeProgram serve(folder);
  RawSocket idle(serve.port());
  EXPECT_TRUE(idle.is_connected());
  serve.program().signal(SIGINT);
  EXPECT_TRUE(idle.is_closed());
  EXPECT_EQ(serve.program().finish().status, 0);
}

TEST(ServeProgramTest, AnAddressThatOthersCanReachIsRefusedWithTheReason) {
  const Folder folder;
  const Finished end = run_ordo({"serve", "--listen", "0.0.0.0:0", "--data", folder.file("data")});
  EXPECT_EQ(end.status, 255);
  EXPECT_THAT(end.err, AllOf(HasSubstr("--listen: '0.0.0.0:0' can be reached from other machines"),
                             HasSubstr("127.0.0.1")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("data")));
}

TEST(ServeProgramTest, ATakenPortIsExplainedWithItsHolderAndNoDataIsTouched) {
  const Folder folder;
  const Folder other;
  const ServeProgram serve(folder);
  const std::string port = std::to_string(serve.port());
  const Finished end =
      run_ordo({"serve", "--listen", "127.0.0.1:" + port, "--data", other.file("data")});
  EXPECT_EQ(end.status, 255);
  EXPECT_THAT(end.err, AllOf(HasSubstr(port), HasSubstr("ordo (pid "), HasSubstr("--listen")));
  EXPECT_FALSE(std::filesystem::exists(other.file("data")));
}

TEST(ServeProgramTest, DataThatAnotherProcessUsesIsRefused) {
  const Folder folder;
  const ServeProgram serve(folder);
  const Finished end =
      run_ordo({"serve", "--listen", "127.0.0.1:0", "--data", folder.file("data")});
  EXPECT_EQ(end.status, 255);
  EXPECT_THAT(end.err, HasSubstr("in use"));
  EXPECT_THAT(get(serve.port(), "/readyz"), EndsWith("ready\n"));
}

TEST(ServeProgramTest, AFlagBeatsTheEnvironmentWhichBeatsTheFile) {
  const Folder folder;
  folder.write("o.toml", "[serve]\nlisten = \"127.0.0.1:0\"\ndata = \"" + folder.file("of_file") +
                             "\"\n[gateway]\nbudget = 3\n");
  const auto used = [&](const Words& more) {
    Words words{"serve", "--config", folder.file("o.toml")};
    words.insert(words.end(), more.begin(), more.end());
    Program program(words);
    program.read_line();
    program.read_line();
    program.read_line();
    const std::string data = program.read_line();
    program.signal(SIGTERM);
    EXPECT_EQ(program.finish().status, 0);
    return data;
  };
  EXPECT_THAT(used({}), HasSubstr("of_file"));
  const Variable data("ORDO_SERVE_DATA", folder.file("of_environment"));
  EXPECT_THAT(used({}), HasSubstr("of_environment"));
  EXPECT_THAT(used({"--data", folder.file("of_flag")}), HasSubstr("of_flag"));
}

TEST(ServeProgramTest, CheckSaysWhatIsWrongAndDoesNothing) {
  const Folder folder;
  const auto check = [&](const std::string& text) {
    folder.write("o.toml", text);
    return run_ordo({"serve", "--check", "--config", folder.file("o.toml")});
  };
  EXPECT_EQ(check("[serve]\nfsync = \"os\"\n[[route]]\nvenue = \"X\"\n").status, 0);
  const Finished key = check("[serve]\nlisen = \"127.0.0.1:0\"\n");
  EXPECT_EQ(key.status, 255);
  EXPECT_THAT(key.err, AllOf(HasSubstr("o.toml:2: lisen"), HasSubstr("did you mean 'listen'?")));
  const Finished table = check("[serv]\n");
  EXPECT_EQ(table.status, 255);
  EXPECT_THAT(table.err, HasSubstr("table 'serv' is unknown; did you mean 'serve'?"));
  const Finished value = check("[serve]\nfsync = \"never\"\n");
  EXPECT_EQ(value.status, 255);
  EXPECT_THAT(value.err, HasSubstr("o.toml:2: fsync: 'never' is none of"));
}

TEST(ServeProgramTest, LogsAreJsonWhenAskedFor) {
  const Folder folder;
  ServeProgram serve(folder, {"--log", "json"});
  const Finished end = serve.stop();
  EXPECT_EQ(end.status, 0);
  EXPECT_THAT(end.err,
              MatchesRegex("\\{\"time\":\"[0-9TZ:.-]+\",\"message\":\"ordo: stopping.*\"\\}\n"));
}

// Goal: a service manager that waits for it (Type=notify) is told.
TEST(ServeProgramTest, TellsTheServiceManagerThatItIsReadyAndThatItStops) {
  const Folder folder;
  const std::string name = folder.file("notify");
  const app::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(name.size(), sizeof(address.sun_path));
  std::copy(name.begin(), name.end(), address.sun_path);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const auto told = [&] {
    std::array<char, 512> buffer{};
    pollfd wait{socket.get(), POLLIN, 0};
    if (::poll(&wait, 1, 60'000) <= 0) return std::string("nothing");
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    return std::string(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  };
  const Variable variable("NOTIFY_SOCKET", name);
  ServeProgram serve(folder);
  EXPECT_THAT(told(), StartsWith("READY=1\n"));
  EXPECT_EQ(serve.stop().status, 0);
  EXPECT_THAT(told(), StartsWith("STOPPING=1\n"));
}

// A push subscription with three messages of one key, in data that nobody serves yet.
void prepare_pushes(const Folder& folder, const std::string& url) {
  auto broker = open_broker(folder.file("data"));
  ASSERT_TRUE(broker) << broker.error().message;
  ASSERT_TRUE((*broker)->create_topic({.name = "projects/p/topics/orders"}));
  broker::SubscriptionConfig config{.name = "projects/p/subscriptions/pushed",
                                    .topic = "projects/p/topics/orders"};
  config.enable_message_ordering = true;
  config.push = broker::PushConfig{.endpoint = url};
  ASSERT_TRUE((*broker)->create_subscription(config));
  for (const char* text : {"one", "two", "three"}) {
    ASSERT_TRUE(
        (*broker)->publish("projects/p/topics/orders", {{.data = text, .ordering_key = "k"}}));
  }
}

TEST(ServeProgramTest, PushesWhatWaitsToItsEndpointAndCountsIt) {
  const Folder folder;
  const PushReceiver receiver([](const PushedRequest&, const PushPeer& peer) { peer.answer(204); });
  prepare_pushes(folder, receiver.url("/in"));
  ServeProgram serve(folder);
  ASSERT_TRUE(eventually([&] { return receiver.count() == 3; }));
  EXPECT_EQ(receiver.data_of("k"), (Words{"one", "two", "three"}));
  ASSERT_TRUE(eventually([&] {
    const std::string metrics = get(serve.port(), "/metrics");
    return metrics.find("ordo_push_total{result=\"accepted\"} 3\n") != std::string::npos &&
           metrics.find("ordo_push_subscriptions 1\n") != std::string::npos;
  }));
  EXPECT_EQ(serve.stop().status, 0);
}

TEST(ServeProgramTest, AnEndpointThatDoesNotAnswerHoldsUpTheEndForHalfOfTheDrainTime) {
  const Folder folder;
  HeldAnswers held;
  PushReceiver receiver([&](const PushedRequest&, const PushPeer& peer) {
    held.wait();
    peer.answer(200);
  });
  prepare_pushes(folder, receiver.url());
  ServeProgram serve(folder, {"--drain", "6s"});
  ASSERT_TRUE(eventually([&] { return receiver.count() == 1; }));
  const Finished end = serve.stop();
  EXPECT_EQ(end.status, 0) << end.err;
  held.release();
  ServeProgram again(folder);
  ASSERT_TRUE(eventually([&] { return receiver.count() == 4; }));
  EXPECT_EQ(receiver.data_of("k"), (Words{"one", "one", "two", "three"}));
}

// What the process has used of the processor, in seconds; -1: it is gone.
double processor_seconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  const std::string line = text.str();
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return -1;
  std::istringstream rest(line.substr(name_end + 1));
  std::string word;
  constexpr int kBeforeTimes = 11;  // From the state on.
  for (int i = 0; i < kBeforeTimes; ++i)
    rest >> word;
  double user = 0;
  double system = 0;
  rest >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::size_t resident_megabytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6)) / 1024;
  }
  return 0;
}

TEST(ServeProgramTest, AnIdleServerUsesHardlyAnyProcessorAndLittleMemory) {
  const Folder folder;
  ServeProgram serve(folder);
  EXPECT_THAT(get(serve.port(), "/readyz"), EndsWith("ready\n"));
  // Where the machine is busy, what belongs to the start may be done later.
  const auto used_in_two_seconds = [&] {
    const double before = processor_seconds(serve.program().pid());
    ::poll(nullptr, 0, 2'000);
    return processor_seconds(serve.program().pid()) - before;
  };
  double used = used_in_two_seconds();
  EXPECT_GE(used, 0);
  if (kIsSanitized) return;
  for (int i = 0; i < 10 && used > 0.1; ++i)
    used = used_in_two_seconds();
  EXPECT_LE(used, 0.1);
  EXPECT_LE(resident_megabytes(serve.program().pid()), 50u);
}

}  // namespace
}  // namespace ordo::flow

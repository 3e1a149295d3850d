// The commands that talk to a broker, as people type them: topics, subscriptions, snapshots, seek,
// pub, config, doctor.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker_program.h"

namespace ordo::flow {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

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

TEST(TopicsCommandTest, CreatesShowsChangesListsAndDeletes) {
  const Folder folder;
  const BrokerProgram broker(folder);
  EXPECT_EQ(broker.good({"topics", "list"}), "no topics in project ordo\n");
  EXPECT_EQ(broker.good({"topics", "create", "orders", "projects/shop/topics/carts"}),
            "created projects/ordo/topics/orders\ncreated projects/shop/topics/carts\n");
  EXPECT_EQ(broker.good({"topics", "update", "orders", "--label", "team=a", "--retention", "1h"}),
            "updated projects/ordo/topics/orders\n");
  EXPECT_EQ(broker.good({"topics", "list"}),
            "NAME    RETENTION  LABELS\n"
            "orders  1h         team=a\n");
  EXPECT_THAT(broker.good({"topics", "list", "--json", "--project", "shop"}),
              StartsWith(R"({"name":"projects/shop/topics/carts")"));
  broker.good({"subscriptions", "create", "billing", "--topic", "orders"});
  EXPECT_EQ(broker.good({"topics", "describe", "orders"}),
            "name          projects/ordo/topics/orders\n"
            "labels        team=a\n"
            "retention     1h\n"
            "subscription  projects/ordo/subscriptions/billing\n");
  broker.good({"topics", "update", "orders", "--clear-labels", "--retention", "0"});
  EXPECT_THAT(broker.good({"topics", "describe", "orders"}),
              AllOf(HasSubstr("labels        -\n"), HasSubstr("until acknowledged")));
  EXPECT_EQ(broker.good({"topics", "delete", "orders"}), "deleted projects/ordo/topics/orders\n");
}

TEST(TopicsCommandTest, WhatIsWrongIsSaid) {
  const Folder folder;
  const BrokerProgram broker(folder);
  broker.good({"topics", "create", "orders"});
  const Finished twice = broker.run({"topics", "create", "orders"});
  EXPECT_EQ(twice.status, 1);
  EXPECT_THAT(twice.err, HasSubstr("already exists"));
  EXPECT_EQ(broker.run({"topics", "describe", "nothing"}).status, 1);
  const Finished name = broker.run({"topics", "create", "x"});
  EXPECT_EQ(name.status, 1);
  EXPECT_THAT(name.err, HasSubstr("'x' is no name in topics"));
  EXPECT_THAT(broker.run({"topics", "update", "orders"}).err, HasSubstr("nothing to change"));
  EXPECT_THAT(broker.run({"topics", "create", "t-1", "--label", "a"}).err,
              HasSubstr("--label: 'a' is not NAME=VALUE"));
  const Finished usage = run_ordo({"topics"});
  EXPECT_EQ(usage.status, 255);
  EXPECT_THAT(usage.err, HasSubstr("create, list, describe, update, delete"));
}

TEST(SubscriptionsCommandTest, EverySettingCanBeGivenAndTakenAway) {
  const Folder folder;
  const BrokerProgram broker(folder);
  broker.good({"topics", "create", "orders", "dead"});
  broker.good({"subscriptions",
               "create",
               "billing",
               "--topic",
               "orders",
               "--ordered",
               "--ack-deadline",
               "30",
               "--filter",
               "attributes.kind = \"refund\"",
               "--dead-letter-topic",
               "dead",
               "--max-delivery-attempts",
               "7",
               "--min-retry-delay",
               "1s",
               "--exactly-once",
               "--retention",
               "2h",
               "--retain-acked",
               "--label",
               "team=a",
               "--window",
               "4",
               "--expiration-period",
               "never"});
  EXPECT_EQ(broker.good({"subscriptions", "describe", "billing"}),
            "name           projects/ordo/subscriptions/billing\n"
            "topic          projects/ordo/topics/orders\n"
            "labels         ordo-ordered-window=4,team=a\n"
            "ordered        yes\n"
            "exactly once   yes\n"
            "ack deadline   30s\n"
            "filter         attributes.kind = \"refund\"\n"
            "retention      2h\n"
            "retain acked   yes\n"
            "expires after  never\n"
            "retry delay    1s to 10m\n"
            "dead letters   projects/ordo/topics/dead after 7 attempts\n"
            "push endpoint  -\n");
  broker.good({"subscriptions", "update", "billing", "--exactly-once=false", "--retain-acked=false",
               "--clear-labels", "--clear-dead-letter-policy", "--clear-retry-policy",
               "--ack-deadline", "20s"});
  EXPECT_THAT(broker.good({"subscriptions", "describe", "billing"}),
              AllOf(HasSubstr("exactly once   no\n"), HasSubstr("retain acked   no\n"),
                    HasSubstr("labels         -\n"), HasSubstr("dead letters   -\n"),
                    HasSubstr("retry delay    none: at once\n"), HasSubstr("20s\n")));
  EXPECT_THAT(broker.good({"subscriptions", "list"}),
              MatchesRegex("NAME +TOPIC +ORDERED +ACK DEADLINE +DELIVERY +LABELS\n"
                           "billing +orders +yes +20s +pull +-\n"));
  EXPECT_THAT(broker.good({"subscriptions", "list", "--json"}),
              HasSubstr("\"enableMessageOrdering\":true"));
  EXPECT_EQ(broker.good({"subscriptions", "delete", "billing"}),
            "deleted projects/ordo/subscriptions/billing\n");
  EXPECT_EQ(broker.good({"subscriptions", "list"}), "no subscriptions in project ordo\n");
}

TEST(SubscriptionsCommandTest, WhatIsWrongIsSaid) {
  const Folder folder;
  const BrokerProgram broker(folder);
  broker.good({"topics", "create", "orders"});
  EXPECT_EQ(run_ordo({"subscriptions", "create", "billing"}).status, 255);  // Of which topic?
  const Finished nowhere = broker.run({"subscriptions", "create", "b-1", "--topic", "nothing"});
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("nothing"));
  EXPECT_THAT(
      broker.run({"subscriptions", "create", "b-1", "--topic", "orders", "--filter", "("}).err,
      StartsWith("ordo: "));
  EXPECT_THAT(broker
                  .run({"subscriptions", "create", "b-1", "--topic", "orders",
                        "--max-delivery-attempts", "7"})
                  .err,
              HasSubstr("needs --dead-letter-topic"));
  for (const char* deadline : {"601s", "4294967356s"}) {  // The second is 60 s more than 2^32.
    EXPECT_EQ(broker
                  .run({"subscriptions", "create", "b-1", "--topic", "orders", "--ack-deadline",
                        deadline})
                  .status,
              1)
        << deadline;
  }
  EXPECT_THAT(run_ordo({"subscriptions", "create", "b-1", "--topic", "orders", "--odrered"}).err,
              HasSubstr("did you mean '--ordered'"));
}

TEST(BrokerCommandTest, WithoutABrokerItSaysWhatToDo) {
  const Folder folder;
  std::string host;
  {
    BrokerProgram broker(folder);
    host = broker.host();
    EXPECT_EQ(broker.stop().status, 0);
  }
  for (const Words& words :
       {Words{"topics", "list"}, Words{"pub", "orders", "x"}, Words{"sub", "billing"}}) {
    Words all = words;
    all.insert(all.end(), {"--host", host});
    const Finished end = run_ordo(all);
    EXPECT_EQ(end.status, 2) << words[0];
    EXPECT_THAT(end.err, AllOf(HasSubstr("no broker at " + host), HasSubstr("'ordo serve'")));
  }
  EXPECT_THAT(run_ordo({"topics", "list", "--host", "nowhere"}).err,
              HasSubstr("--host: 'nowhere' is no address"));
}

TEST(BrokerCommandTest, TheAddressAndTheProjectComeFromTheEnvironmentAsWell) {
  const Folder folder;
  const BrokerProgram broker(folder);
  const Variable host("PUBSUB_EMULATOR_HOST", broker.host());
  const Variable project("GOOGLE_CLOUD_PROJECT", "shop");
  EXPECT_EQ(run_ordo({"topics", "create", "orders"}).out, "created projects/shop/topics/orders\n");
  const Variable ours("ORDO_CLIENT_PROJECT", "mine");
  EXPECT_EQ(run_ordo({"topics", "create", "orders"}).out, "created projects/mine/topics/orders\n");
  EXPECT_EQ(run_ordo({"topics", "create", "orders", "--project", "typed"}).out,
            "created projects/typed/topics/orders\n");
}

TEST(PubCommandTest, OneMessageIsPrintedById) {
  const Folder folder;
  const BrokerProgram broker(folder);
  broker.good({"topics", "create", "orders"});
  broker.good({"subscriptions", "create", "billing", "--topic", "orders", "--ordered"});
  EXPECT_THAT(broker.good({"pub", "orders", "hello", "--key", "user-1", "--attr", "kind=greeting"}),
              MatchesRegex("[0-9]+\n"));
  EXPECT_THAT(broker.good({"sub", "billing", "--ack", "--count", "1"}),
              MatchesRegex(R"(\{"id":"[0-9]+","key":"user-1","data":"hello",)"
                           R"("attributes":\{"kind":"greeting"\},"publish_time":"[^"]+"\})"
                           "\n"));
  EXPECT_THAT(broker.good({"pub", "orders", "x", "--json"}), MatchesRegex(R"(\{"id":"[0-9]+"\})"
                                                                          "\n"));
}

TEST(PubCommandTest, AnEmptyKeyIsAnError) {
  const Finished empty = run_ordo({"pub", "orders", "x", "--key", ""});
  EXPECT_EQ(empty.status, 255);
  EXPECT_THAT(empty.err, HasSubstr("Ordering key cannot be empty"));
  EXPECT_THAT(run_ordo({"pub", "orders", "x", "--key", std::string(1'025, 'k')}).err,
              HasSubstr("Ordering key exceeds maximum length of 1024 bytes"));
  EXPECT_THAT(run_ordo({"pub", "orders", "x", "--key-field", "k"}).err,
              HasSubstr("leave DATA out"));
}

TEST(PubCommandTest, TheLinesOfAKeyArriveInTheirOrder) {
  constexpr int kLines = 6'000;
  constexpr int kKeys = 37;
  const Folder folder;
  const BrokerProgram broker(folder);
  broker.good({"topics", "create", "orders"});
  broker.good(
      {"subscriptions", "create", "billing", "--topic", "orders", "--ordered", "--window", "1000"});
  std::string input;
  for (int i = 0; i < kLines; ++i)
    input += R"({"n":)" + std::to_string(i) + R"(,"user":"u)" + std::to_string(i % kKeys) + "\"}\n";
  EXPECT_EQ(broker.good({"pub", "orders", "--key-field", "user"}, input),
            std::to_string(kLines) + " messages published\n");

  std::map<std::string, int> last;
  int count = 0;
  const std::string out =
      broker.good({"sub", "billing", "--ack", "--data", "--count", std::to_string(kLines)});
  for (const std::string& line : split_lines(out)) {
    const int n = std::stoi(line.substr(line.find(':') + 1));
    const std::string key = line.substr(line.find("\"u"));
    const auto before = last.find(key);
    if (before != last.end()) {
      ASSERT_EQ(n, before->second + kKeys) << line;
    }
    last[key] = n;
    ++count;
  }
  EXPECT_EQ(count, kLines);
  EXPECT_EQ(last.size(), static_cast<std::size_t>(kKeys));
}

TEST(PubCommandTest, ALineThatCannotBeAMessageIsNamed) {
  const Folder folder;
  const BrokerProgram broker(folder);
  broker.good({"topics", "create", "orders"});
  const auto error = [&](const Words& more, const char* input) {
    Words words = {"pub", "orders"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished end = broker.run(words, input);
    EXPECT_EQ(end.status, 1) << end.out;
    return end.err;
  };
  EXPECT_THAT(error({"--key-field", "k"}, "{\"k\":1}\nplain\n"),
              HasSubstr("line 2: no JSON object"));
  EXPECT_THAT(error({"--key-field", "k"}, "{\"a\":1}\n"), HasSubstr("line 1: has no field 'k'"));
  EXPECT_THAT(error({"--key-field", "k"}, "{\"k\":\"\"}\n"),
              HasSubstr("line 1: Ordering key cannot be empty"));
  EXPECT_THAT(error({}, "a\n\nb\n"), HasSubstr("line 2: is empty"));
  EXPECT_EQ(broker.good({"pub", "orders", "--attr", "a=b"}, "\n\n"), "2 messages published\n");
  EXPECT_THAT(broker.run({"pub", "nothing"}, "a\n").err, HasSubstr("line 1: "));
  EXPECT_EQ(split_lines(broker.good({"pub", "orders", "--ids"}, "a\nb\nc\n")).size(), 3u);
}

TEST(PubCommandTest, ALineGoesOutWhileTheInputIsOpen) {
  const Folder folder;
  const BrokerProgram broker(folder);
  broker.good({"topics", "create", "orders"});
  broker.good({"subscriptions", "create", "billing", "--topic", "orders"});
  Program publisher(broker.to_here({"pub", "orders"}));
  publisher.write("first\n");
  EXPECT_EQ(broker.good({"sub", "billing", "--ack", "--data", "-n1"}), "first\n");
  publisher.write("second\n");
  EXPECT_EQ(broker.good({"sub", "billing", "--ack", "--data", "-n1"}), "second\n");
  const Finished end = publisher.finish();
  EXPECT_EQ(end.out, "2 messages published\n");
}

TEST(SeekCommandTest, GoesBackInTimeAndToASnapshot) {
  const Folder folder;
  const BrokerProgram broker(folder);
  broker.good({"topics", "create", "orders"});
  broker.good(
      {"subscriptions", "create", "billing", "--topic", "orders", "--ordered", "--retain-acked"});
  const auto receive = [&] {
    return broker.good({"sub", "billing", "--ack", "--data", "--count", "1"});
  };
  broker.good({"pub", "orders", "first", "--key", "k"});
  EXPECT_EQ(broker.good({"snapshots", "create", "before", "--subscription", "billing"}),
            "created projects/ordo/snapshots/before\n");
  EXPECT_EQ(receive(), "first\n");
  EXPECT_THAT(broker.good({"seek", "billing", "--time", "-1h"}),
              StartsWith("projects/ordo/subscriptions/billing is at 2"));
  EXPECT_EQ(receive(), "first\n");
  EXPECT_EQ(broker.good({"seek", "billing", "--snapshot", "before"}),
            "projects/ordo/subscriptions/billing is at projects/ordo/snapshots/before\n");
  EXPECT_EQ(receive(), "first\n");
  EXPECT_THAT(broker.good({"snapshots", "list"}),
              MatchesRegex("NAME +TOPIC +EXPIRES +LABELS\nbefore +orders +2[^ ]+Z +-\n"));
  EXPECT_THAT(broker.good({"snapshots", "describe", "before"}),
              HasSubstr("topic    projects/ordo/topics/orders\n"));
  EXPECT_EQ(broker.good({"snapshots", "delete", "before"}),
            "deleted projects/ordo/snapshots/before\n");
  EXPECT_EQ(broker.good({"snapshots", "list"}), "no snapshots in project ordo\n");
  EXPECT_EQ(broker.run({"seek", "billing", "--snapshot", "before"}).status, 1);
  EXPECT_THAT(run_ordo({"seek", "billing"}).err, HasSubstr("either --time or --snapshot"));
  EXPECT_THAT(broker.run({"seek", "billing", "--time", "soon"}).err, HasSubstr("is no time"));
}

TEST(ConfigCommandTest, EverySettingIsShownWithItsOrigin) {
  const Folder folder;
  folder.write("ordo.toml", "[serve]\ndata = \"/srv/ordo\"\n[client]\nproject = \"shop\"\n");
  const Variable threads("ORDO_SERVE_THREADS", "3");
  const std::string file = folder.file("ordo.toml");
  const Finished all = run_ordo({"config", "show", "--origin", "--config", file});
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.out, AllOf(HasSubstr("serve.data "), HasSubstr(file + ":2: data"),
                             HasSubstr("ORDO_SERVE_THREADS"), HasSubstr("gateway.budget "),
                             HasSubstr("client.project "), HasSubstr(file + ":4: project")));
  EXPECT_THAT(run_ordo({"config", "show", "client", "--json", "--config", file}).out,
              AllOf(HasSubstr(R"({"setting":"client.project","value":"shop","origin":)"),
                    Not(HasSubstr("serve."))));
  const Variable wrong("ORDO_SERVE_FSYNC", "never");
  const Finished bad = run_ordo({"config", "show", "serve", "--config", file});
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.err, HasSubstr("ORDO_SERVE_FSYNC: 'never' is none of"));
  EXPECT_EQ(run_ordo({"config", "show", "--config", folder.file("none.toml")}).status, 255);
}

TEST(DoctorCommandTest, LooksAtTheMachineWithTheSettingsOfTheBroker) {
  const Folder folder;
  const Variable data("ORDO_SERVE_DATA", folder.file("data"));
  BrokerProgram broker(folder);
  const Variable listen("ORDO_SERVE_LISTEN", broker.host());
  const Finished running = run_ordo({"doctor"});
  EXPECT_EQ(running.status, 0) << running.err;
  EXPECT_THAT(running.out, AllOf(HasSubstr("disk"), HasSubstr("memory"), HasSubstr("files"),
                                 HasSubstr("one answers at " + broker.host()),
                                 HasSubstr("is in use, and was not looked at")));
  EXPECT_EQ(broker.stop().status, 0);
  const Finished stopped = run_ordo({"doctor"});
  EXPECT_EQ(stopped.status, 0) << stopped.out;
  EXPECT_THAT(stopped.out, AllOf(HasSubstr(broker.host() + " is free"),
                                 HasSubstr("everything that was acknowledged is there")));
}

}  // namespace
}  // namespace ordo::flow

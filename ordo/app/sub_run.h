// SubRun: `ordo sub`, from an open connection to its end.
//
//   SubRun run(place, std::move(client), options);
//   Status ended = run.go();
//   run.failed_count();
//
// One thread owns everything: it reads the stream, gives turns to the hands, prints, acknowledges,
// extends leases, and listens to signals. Messages of a key run one after the other (KeyedQueue);
// when one fails, those of its key that came behind it are given back with it, so that the broker
// sends them again in order. What the broker had sent before it heard of that may still arrive: it
// counts no more, and is told apart by its id, which rises within a key.
//
// Threads: call go() from main(), before any other thread is made: it blocks signals.
// Bounds:  messages_max() messages at a time are here and not settled; `jobs` commands run.
// Errors:  what the broker refuses ends it; a lost broker is looked for again, for ever, less and
//          less often while nothing comes of it.
#pragma once

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ordo/adapters/pubsub_client/client.h"
#include "ordo/adapters/pubsub_client/pull_stream.h"
#include "ordo/app/broker_words.h"
#include "ordo/app/message_hands.h"
#include "ordo/app/settling.h"
#include "ordo/app/unique_fd.h"
#include "ordo/core/result.h"
#include "ordo/lane/keyed_queue.h"

namespace ordo::app {

struct SubOptions {
  enum class Form : std::uint8_t { line, json, data };

  std::string subscription = {};  // Its whole name.
  std::string exec = {};          // Empty: print.
  bool acks = false;              // What was printed.
  Form form = Form::line;
  std::size_t jobs = 1;
  std::optional<std::uint64_t> count = {};  // End after so many.
  std::optional<std::chrono::nanoseconds> idle =
      {};  // End when nothing came, and nothing ran, for so long.
  std::optional<std::chrono::nanoseconds> timeout = {};  // Of one command.
  std::int32_t attempts_max = 0;  // Then the broker takes a message away; 0: never.
};

class SubRun {
 public:
  SubRun(const BrokerPlace& place, std::unique_ptr<pubsub_client::Client> client,
         SubOptions options);
  SubRun(const SubRun&) = delete;
  SubRun& operator=(const SubRun&) = delete;

  // Until the end; then everything that is not done has been given back.
  Status go();

  std::uint64_t done_count() const { return done_count_; }
  std::uint64_t failed_count() const { return failed_count_; }
  std::uint64_t given_back_count() const { return given_back_count_; }

 private:
  struct Item {
    std::uint64_t number = 0;
    pubsub_client::IncomingMessage message = {};
  };

  static constexpr std::chrono::seconds kExtendEvery{20};

  std::int64_t messages_max() const;
  std::uint64_t wanted() const;  // How many more may be begun.
  bool is_busy() const;
  bool is_over() const;
  TimePoint next_look() const;

  void open_stream();
  Status turn();
  Status read_some();
  Status leave_stream();
  Status look_again(const Error& why);
  void take_signals();
  bool is_void(const pubsub_client::IncomingMessage& message);
  void take(pubsub_client::IncomingMessage&& message);
  void print(const Item& item);
  void write_printed();
  void note_output(const Status& printed);
  void start_turns();
  void take_done();
  void rewind(const std::string& key, const pubsub_client::IncomingMessage& failed);
  void extend_leases();
  Status settle_all();
  Status wind_up();

  const BrokerPlace place_;
  std::unique_ptr<pubsub_client::Client> client_;
  const SubOptions options_;
  const Clock& clock_;
  sigset_t children_mask_{};
  UniqueFd wake_, signals_, both_;  // both_ is readable when one of the others is, or nobody reads.
  std::optional<pubsub_client::PullStream> stream_;
  KeyedQueue<std::string, Item> queue_;
  std::map<std::uint64_t, std::string> held_;  // Ack ids of what is here and not settled.
  Settling settling_;
  std::string printed_;  // To be written.
  Status output_;        // Why that could not be.
  std::vector<std::uint64_t> printed_numbers_;
  std::unordered_map<std::string, std::uint64_t> rewound_;  // By key: the last id that is void.
  std::uint64_t number_ = 0;
  std::uint64_t begun_count_ = 0, done_count_ = 0, failed_count_ = 0, given_back_count_ = 0;
  int signal_count_ = 0;
  bool is_ending_ = false;
  bool is_unread_ = false;  // Nobody reads what is printed.
  TimePoint last_event_;    // Something came, or was done.
  TimePoint next_extension_;
  TimePoint opened_at_;                 // The stream.
  std::chrono::nanoseconds backoff_{};  // Before the broker is looked for again.
  std::string trouble_;                 // Why that was, the last time.
  bool is_ordered_ = false;             // As far as the stream has said.
  bool is_lost_ = false;                // There is no broker to say anything to.
  std::optional<MessageHands> hands_;   // Last: its threads use what is in the queue.
};

}  // namespace ordo::app

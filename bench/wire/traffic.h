// Sender and Receiver: both ends of the traffic of a run.
//
//   Progress progress;
//   Sender sender(*publisher, plan, progress);
//   Receiver receiver(*consumer, plan, progress);
//   std::thread receiving([&] { receiver.run(); });
//   sender.send_until(now_ns() + 1'000'000'000);
//   sender.await_answers();
//   progress.is_sending = false;
//   receiving.join();
//
// Threads: each has one owner; Progress is what they share.
// Bounds:  the window and the lag of the plan; kUnderWayMax requests of a paced run.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "bench/wire/judge.h"
#include "bench/wire/plan.h"
#include "bench/wire/system.h"

namespace ordo::bench {

struct Progress {
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> received{0};
  std::atomic<bool> is_sending{true};
  bool is_received = true;  // Whether anybody receives.

  void await_received() const;
};

class Sender {
 public:
  static constexpr std::size_t kUnderWayMax = std::size_t{1} << 16;

  // REQUIRES: `publisher`, `plan` and `progress` outlive it.
  Sender(Publisher& publisher, const WirePlan& plan, Progress& progress);

  void send_until(std::uint64_t end_ns);
  void send_count(std::uint64_t count);
  // Each message when it is due, at most `batch` of those that are in a request.
  void send_paced(std::uint64_t count, double rate);
  void await_answers();

  // From sending until the answer, of every request; of a paced run from when it was due, of every
  // message. In us.
  std::vector<double>& latencies() { return latencies_; }

 private:
  struct Request {
    std::uint64_t due_ns = 0;  // Of its first message.
    std::uint32_t messages = 0;
    bool is_under_way = false;
  };

  void send_one(std::size_t messages);
  void send(std::uint64_t due_ns, std::size_t messages);
  void receive(std::uint64_t wait_ns);
  void await_room();
  Request& request(std::uint64_t number) { return requests_[number % kUnderWayMax]; }
  bool is_key_busy() const;

  Publisher& publisher_;
  const WirePlan& plan_;
  Progress& progress_;
  std::vector<std::string> bodies_;
  std::vector<std::uint64_t> next_number_;  // By key; without keys there is one.
  std::vector<Request> requests_;
  std::vector<std::uint64_t> answered_{};
  std::uint64_t requests_sent_ = 0;
  std::size_t under_way_ = 0;
  std::uint64_t heard_ns_;  // When a request was answered last.
  double step_ns_ = 0;      // Between messages of a paced run.
  std::vector<double> latencies_{};
};

class Receiver {
 public:
  // REQUIRES: `consumer`, `plan` and `progress` outlive it.
  Receiver(Consumer& consumer, const WirePlan& plan, Progress& progress);

  // Until all that was sent has come and is acknowledged.
  void run();

  const Judge& judge() const { return judge_; }
  // From when a message was due until it came; in us.
  std::vector<double>& latencies() { return latencies_; }

 private:
  struct Handling {
    std::uint64_t end_ns = 0;
    Receipt receipt{};
  };

  bool is_complete() const;
  void receive();
  void finish_handlers();

  Consumer& consumer_;
  const WirePlan& plan_;
  Progress& progress_;
  Judge judge_;
  std::deque<Handling> handling_{};
  std::vector<Receipt> done_{};
  std::vector<double> latencies_{};
};

}  // namespace ordo::bench

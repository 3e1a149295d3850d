// System: a message system under test, seen the way its own client library likes best: a publisher
// with requests under way, and a consumer that acknowledges.
//
//   std::unique_ptr<System> system = make_system(plan);   // connects, makes topics or queues
//   auto publisher = system->publisher();
//   publisher->send(kNoKey, bodies);                      // request 0
//   publisher->receive(wait_ns, answered);                // {0}: it is stored
//
// Each driver program has one make_system(). Whatever goes wrong ends the process: such a run does
// not count.
//
// Threads: a publisher and a consumer each have one owner; two threads may use one each.
// Bounds:  those of the plan: the load keeps `window` requests under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/measures.h"
#include "bench/wire/plan.h"

namespace ordo::bench {

constexpr std::uint64_t kNoKey = ~std::uint64_t{0};

class Publisher {
 public:
  virtual ~Publisher() = default;

  // Sends one request. Requests are numbered from 0; all bodies of one have the same key.
  virtual void send(std::uint64_t key, const std::vector<std::string>& bodies) = 0;
  // Waits until a request was answered, `wait_ns` at most; appends the numbers of those that were.
  virtual void receive(std::uint64_t wait_ns, std::vector<std::uint64_t>& answered) = 0;
};

// What acknowledges a message: the one or the other, as the system likes it.
struct Receipt {
  std::uint64_t key = kNoKey;
  std::uint64_t number = 0;
  std::string text{};
};

class Consumer {
 public:
  using Sink = std::function<void(std::string_view body, Receipt receipt)>;

  virtual ~Consumer() = default;

  // Waits for messages, `wait_ns` at most, and hands over those that came.
  virtual void receive(std::uint64_t wait_ns, const Sink& sink) = 0;
  virtual void acknowledge(std::vector<Receipt>& receipts) = 0;
  // Returns when the server has everything that was acknowledged.
  virtual void finish() = 0;
};

class System {
 public:
  virtual ~System() = default;

  virtual std::unique_ptr<Publisher> publisher() = 0;
  virtual std::unique_ptr<Consumer> consumer() = 0;
  // Removes what it has made on the server.
  virtual void clear() = 0;
  // Small calls that store nothing, `window` under way. Only of systems that speak gRPC.
  virtual Measures unary(const WirePlan& plan);
};

std::unique_ptr<System> make_system(const WirePlan& plan);

}  // namespace ordo::bench

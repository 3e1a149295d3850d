// Dialect: what one connection of the load asks, and how it reads and judges what it is told.
//
// Every contender is driven by the same loop (load.h); only the bytes differ:
//
//   ordo_binary, ordo_text   orders of the gateway: NEW, then FILL and STATUS in turn, then CANCEL
//   ordo_once                binary; every request asks about another id, which has no order
//   redis_ping, redis_set, redis_get
//   echo                     the bytes of ordo_binary, which come back as they are
//
//   std::unique_ptr<Dialect> dialect = make_dialect("ordo_text", 7);
//   dialect->ask(0, out);                    // request 0 of connection 7
//   Answer answer = dialect->read(in);       // size 0: not whole yet
//
// Each connection has kIdsPerConnection orders of its own at a time, asked for in turn, so that 50
// connections have 1,000 live ids, and what has to be decided is known: an order that is not found
// open as it should be makes the answer a bad one. An order lives for kOrderSteps requests; then
// its place is taken by one with a new id.
//
// Threads: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ordo::bench {

inline constexpr std::size_t kIdsPerConnection = 20;
inline constexpr std::size_t kOrderSteps = 64;

struct Answer {
  std::size_t size = 0;        // Bytes it takes; 0 when more have to come.
  std::uint64_t sequence = 0;  // Of the request it answers.
  bool good = false;           // It says what it should: no refusal, no error, the right decision.
};

class Dialect {
 public:
  Dialect() = default;
  Dialect(const Dialect&) = delete;
  Dialect& operator=(const Dialect&) = delete;
  virtual ~Dialect() = default;

  // Appends the bytes of the connection's request number `sequence`; they are asked in order.
  virtual void ask(std::uint64_t sequence, std::string& out) = 0;
  // The answer at the front of `bytes`.
  virtual Answer read(std::string_view bytes) = 0;
  // Whether requests that are kIdsPerConnection apart have one id, and so an order.
  virtual bool ids_come_again() const { return true; }
};

// Null when there is no dialect of that name.
std::unique_ptr<Dialect> make_dialect(std::string_view name, std::size_t connection);

// The bytes redis is asked to SET, and gives back for GET: as many as redis-benchmark's default.
inline constexpr std::string_view kRedisValue = "xxx";

}  // namespace ordo::bench

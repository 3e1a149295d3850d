// WirePlan: one run of a wire benchmark, as the script asks for it on the command line.
//
//   bench_wire_redis flow port=6379 server=4711 size=100 batch=100 window=10 seconds=1
//   const WirePlan plan = WirePlan::parse({"flow", "port=6379", "batch=100"});
//
// A body begins with its Stamp: when it was due, its number within its key, and its key.
//
// Threads: a value.
// Bounds:  bodies are at least Stamp::kBytes long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ordo::bench {

struct WirePlan {
  std::string mode{};             // See load.h.
  std::uint16_t port = 0;         // Of the server, on the loopback.
  int server = 0;                 // Its process; 0: its processor time is not measured.
  std::string variant{};          // What of the system is meant; its own word.
  std::string folder = ".";       // For what is written to disk by the client itself.
  std::size_t size = 100;         // Bytes of a message.
  std::size_t batch = 100;        // Messages of a request.
  std::size_t window = 10;        // Requests that wait for their answer.
  std::size_t lag_max = 100'000;  // Messages sent and not received, from where no more are sent.
  std::size_t keys = 0;           // 0: none.
  std::size_t lanes = 0;          // Of systems without keys: what stands for them.
  std::uint64_t handler_ns = 0;   // From receipt to acknowledgement.
  double seconds = 1;             // How long it is sent.
  double rate = 0;                // Messages a second, of a paced run.
  std::uint64_t count = 0;        // Messages or calls, where the mode asks for a number of them.

  // Ends the process with a message when an argument cannot be read.
  static WirePlan parse(const std::vector<std::string>& arguments);
};

struct Stamp {
  static constexpr std::size_t kBytes = 24;

  std::uint64_t due_ns = 0;
  std::uint64_t number = 0;
  std::uint64_t key = 0;

  // REQUIRES: the body has kBytes.
  void write(std::string& body) const;
  static Stamp read(std::string_view body);
};

// The run does not count: says why on standard error, and ends the process with 1.
[[noreturn]] void give_up(const std::string& why);

}  // namespace ordo::bench

// pubsub_server: a broker and its Pub/Sub service on one port, for official clients and load
// drivers.
//
//   pubsub_server [port, 0: any] [data directory, none: in memory] [I/O threads, 1]
//
// Prints the port. SIGTERM: ends streams, drains, at most 5 s, closes the broker.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "ordo/adapters/http2/server.h"
#include "ordo/adapters/pubsub_wire/service.h"
#include "ordo/adapters/store_rocksdb/open_broker.h"
#include "ordo/broker.h"
#include "ordo/broker/store_memory.h"
#include "ordo/core/clock.h"

namespace ordo {
namespace {

Result<std::unique_ptr<Broker>> open(const std::string& directory) {
  if (!directory.empty()) return open_broker(directory);
  return Broker::open(
      std::make_unique<broker::MemoryStore>(std::make_shared<broker::MemoryDisk>()));
}

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

int run(std::uint16_t port, const std::string& directory, std::size_t io_threads) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Result<std::unique_ptr<Broker>> broker = open(directory);
  if (!broker) return fail(broker.error());
  pubsub_wire::Service service(**broker);
  http2::Routes routes;
  service.add_to(routes);
  http2::ServerOptions options;
  options.port = port;
  options.io_threads = io_threads;
  http2::Server server(options, std::move(routes));
  if (Status started = server.start(); !started) return fail(started.error());
  std::printf("%u\n", static_cast<unsigned>(server.port()));
  std::fflush(stdout);
  int received = 0;
  sigwait(&signals, &received);
  service.close();
  server.drain(system_clock().now() + std::chrono::seconds(5));
  return (*broker)->close(system_clock().now() + std::chrono::seconds(5)) ? 0 : 1;
}

}  // namespace
}  // namespace ordo

int main(int count, char** words) {
  const auto word = [&](int index) { return count > index ? words[index] : ""; };
  const auto port = static_cast<std::uint16_t>(std::atoi(word(1)));
  const int io_threads = count > 3 ? std::atoi(word(3)) : 1;
  return ordo::run(port, word(2), static_cast<std::size_t>(io_threads));
}

#include "bench/dispatcher/keyed_load.h"
#include "ordo/dispatcher.h"

namespace ordo::bench {
namespace {

void run(KeyedLoad& load, std::size_t stripes) {
  Dispatcher<std::uint64_t, Message> dispatcher(
      [&](const std::uint64_t&, const Message& message) { load.handle(message); },
      {.threads = load.settings().workers,
       .stripes = stripes,
       .max_queued_per_key = 2 * KeyedLoad::kOutstandingMax});
  load.begin();
  Message message;
  std::uint64_t refused = 0;
  while (load.next(message)) {
    if (dispatcher.dispatch(message.key, std::move(message)) != Dispatched::admitted) ++refused;
  }
  if (refused > 0) return;  // The load will miss them.
  load.await();
}

}  // namespace

void run_ordo(KeyedLoad& load) {
  run(load, 0);
}
void run_ordo_striped(KeyedLoad& load) {
  run(load, 64);
}

}  // namespace ordo::bench

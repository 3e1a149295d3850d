// Ordo's own pool, as its users call it.
#include <thread>

#include <ordo/pool.h>

#include "bench/pool/contenders.h"

namespace ordo::bench {
namespace {

PoolOptions<Message> options_for(const Load& load) {
  PoolOptions<Message> options;
  options.workers = load.workers();
  options.preserve_order = true;
  options.order_buffer_size = load.window();
  return options;
}

void push_all(Load& load, Pool<Message, Message>& pool) {
  Message message;
  for (std::uint64_t id = 0; id < load.items(); ++id) {
    load.fill(message, id);
    if (!pool.push(message)) return;  // Load::finish() counts what is missing as an error.
  }
  pool.close();
}

}  // namespace

void run_ordo(Load& load) {
  Pool<Message, Message> pool(
      [&load](Message message) {
        load.work(message);
        return message;
      },
      options_for(load));
  load.begin();
  std::thread consumer([&] {
    while (auto message = pool.pop()) {
      load.take(*message);
    }
  });
  push_all(load, pool);
  consumer.join();
}

void run_ordo_emit(Load& load) {
  Pool<Message, Message> pool(
      [&load](Message message) {
        load.work(message);
        return message;
      },
      [&load](Message message) { load.take(message); }, options_for(load));
  load.begin();
  push_all(load, pool);
  pool.wait();
}

}  // namespace ordo::bench

// Ordo's own pool, as its users call it.
#include <thread>
#include <vector>

#include <ordo/pool.h>

#include "bench/pool/contenders.h"

namespace ordo::bench {
namespace {

// How the message travels. message() is where number `id` is made, carry() what is pushed for it,
// open() the message in what arrived.
class ByValue {
 public:
  using Item = Message;
  explicit ByValue(const Load&) {}
  Message& message(std::uint64_t) { return message_; }
  static Item carry(const Message& message) { return message; }
  static Message& open(Item& item) { return item; }

 private:
  Message message_;
};

// A place of the ring is written again only after the message two windows before was taken.
class ByPointer {
 public:
  using Item = Message*;
  explicit ByPointer(const Load& load) : places_(load.window() * 2) {}
  Message& message(std::uint64_t id) { return places_[id % places_.size()].message; }
  static Item carry(Message& message) { return &message; }
  static Message& open(Item item) { return *item; }

 private:
  struct alignas(64) Place {
    Message message;
  };
  std::vector<Place> places_;
};

template <class Item>
PoolOptions<Item> options_for(const Load& load) {
  PoolOptions<Item> options;
  options.workers = load.workers();
  options.preserve_order = true;
  options.order_buffer_size = load.window();
  return options;
}

template <class Way>
auto work_of(Load& load) {
  return [&load](typename Way::Item item) {
    load.work(Way::open(item));
    return item;
  };
}

template <class Way>
void push_all(Load& load, Way& way, Pool<typename Way::Item, typename Way::Item>& pool) {
  for (std::uint64_t id = 0; id < load.items(); ++id) {
    Message& message = way.message(id);
    load.fill(message, id);
    if (!pool.push(way.carry(message))) return;  // Load::finish() counts the rest as errors.
  }
  pool.close();
}

template <class Way>
void run_push_and_pop(Load& load) {
  Way way(load);
  Pool<typename Way::Item, typename Way::Item> pool(work_of<Way>(load),
                                                    options_for<typename Way::Item>(load));
  load.begin();
  std::thread consumer([&] {
    while (auto item = pool.pop()) {
      load.take(Way::open(*item));
    }
  });
  push_all(load, way, pool);
  consumer.join();
}

}  // namespace

void run_ordo(Load& load) {
  run_push_and_pop<ByValue>(load);
}

void run_ordo_pointer(Load& load) {
  run_push_and_pop<ByPointer>(load);
}

void run_ordo_emit(Load& load) {
  ByValue way(load);
  Pool<Message, Message> pool(
      work_of<ByValue>(load), [&load](const Message& message) { load.take(message); },
      options_for<Message>(load));
  load.begin();
  push_all(load, way, pool);
  pool.wait();
}

}  // namespace ordo::bench

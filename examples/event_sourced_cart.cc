// Event-sourced shopping carts: every cart is the sum of its events, applied in their order; carts
// side by side. The state of a cart lives with its lane, so that the handler needs no lock. One
// event is poison: its cart is parked, the others go on, and an operator puts things right.
#include <chrono>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include <ordo/dispatcher.h>

namespace {

struct Event {
  std::string type;  // added, removed or checked_out.
  std::string item;
  int price = 0;
};

struct Cart {
  std::map<std::string, int> items;
  int total() const {
    int sum = 0;
    for (const auto& [item, price] : items)
      sum += price;
    return sum;
  }
};

// What checked-out carts come to.
class Receipts {
 public:
  void add(const std::string& cart, int total) {
    std::lock_guard guard(mutex_);
    totals_[cart] = total;
  }
  void print() const {
    for (const auto& [cart, total] : totals_)
      std::cout << cart << " pays " << total << '\n';
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> totals_;
};

void validate(const std::string&, const Event& event, Cart&) {
  if (event.price < 0) throw std::runtime_error("a price below zero");
}

using Carts = ordo::Dispatcher<std::string, Event, Cart>;

// Dispatches the events of a cart with their positions in its stream.
void replay(Carts& carts, const std::string& cart, std::initializer_list<Event> stream) {
  std::uint64_t position = 0;
  for (const Event& event : stream)
    carts.dispatch(cart, event, position++);
}

}  // namespace

int main() {
  Receipts receipts;
  const auto apply = [&](const std::string& name, const Event& event, Cart& cart) {
    if (event.type == "added") cart.items[event.item] += event.price;
    if (event.type == "removed") cart.items.erase(event.item);
    if (event.type == "checked_out") receipts.add(name, cart.total());
  };
  Carts carts(ordo::steps(validate, apply),
              {.threads = 4,
               .on_failure = ordo::retry(2, std::chrono::milliseconds(1)).then_park(),
               .on_error = [](const std::string&, const Event&, const std::exception_ptr&) {}});

  replay(carts, "cart-17", {{"added", "tea", 4}, {"added", "cup", 9}, {"checked_out", "", 0}});
  replay(carts, "cart-18", {{"added", "pen", 2}, {"added", "ink", -7}, {"checked_out", "", 0}});
  replay(carts, "cart-19", {{"added", "map", 12}, {"removed", "map", 0}, {"checked_out", "", 0}});
  // The stream is read again from its beginning, as after a crash: everything was seen before.
  replay(carts, "cart-17", {{"added", "tea", 4}, {"added", "cup", 9}, {"checked_out", "", 0}});

  while (carts.parked().empty())
    std::this_thread::yield();
  for (const auto& lane : carts.parked()) {
    std::cout << lane.key << " is parked at '" << lane.event->item << "': " << lane.reason << ", "
              << lane.queued << " events wait\n";
    carts.discard(lane.key);
    carts.resume(lane.key);
  }

  const auto undone = carts.shutdown(std::chrono::seconds(5));
  receipts.print();
  const ordo::DispatcherStats stats = carts.stats();
  std::cout << stats.admitted << " admitted, " << stats.processed << " processed, " << stats.dropped
            << " discarded, " << stats.duplicates << " duplicates, " << undone.size()
            << " carts undone\n";
}

// Boost.Signals2: a signal whose slots push into the ring of their subscriber.
#include <memory>
#include <vector>

#include <boost/signals2/signal.hpp>

#include "bench/bus/fan_out.h"
#include "ordo/runtime/spsc_ring.h"

namespace ordo::bench {
namespace {

using Frame = std::shared_ptr<const Payload>;

class Signals final : public FanOut {
 public:
  explicit Signals(std::size_t subscribers) {
    for (std::size_t i = 0; i < subscribers; ++i) {
      rings_.push_back(std::make_unique<SpscRing<Frame>>(kCapacity));
      signal_.connect([this, ring = rings_.back().get()](const Frame& frame) {
        sent_ += ring->try_push(Frame(frame)) ? 1 : 0;
      });
    }
  }

  std::size_t publish(const Payload& payload) override {
    sent_ = 0;
    signal_(std::make_shared<const Payload>(payload));
    return sent_;
  }
  std::size_t drain(std::size_t subscriber) override {
    std::size_t count = 0;
    while (rings_[subscriber]->try_pop())
      ++count;
    return count;
  }
  bool pop(std::size_t subscriber) override { return rings_[subscriber]->pop().has_value(); }
  void close() override {
    for (auto& ring : rings_)
      ring->close();
  }

 private:
  boost::signals2::signal<void(const Frame&)> signal_;
  std::vector<std::unique_ptr<SpscRing<Frame>>> rings_;
  std::size_t sent_ = 0;
};

}  // namespace

std::unique_ptr<FanOut> make_signals(std::size_t subscribers) {
  return std::make_unique<Signals>(subscribers);
}

}  // namespace ordo::bench

// BusModel: what a bus has to do with every frame, one step after the other.
//
// Deques and doubles, no log, no snapshots, no caches: written from the words of docs/bus.md, so
// that the bus can be compared with it.
//
//   BusModel model({.hysteresis = 0.1});
//   model.subscribe({.id = "a", .priority = Priority::high, .capacity = 3});
//   BusModel::Publish publish = model.publish(17, {.load = 0.2});  // the fate for every subscriber
//
// Threads: none; one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ordo/bus/options.h"

namespace ordo::testing_support {

class BusModel {
 public:
  struct Options {
    Watermarks watermarks{};
    double hysteresis = 0.1;
    bool waits_for_critical = true;
  };

  struct Subscriber {
    std::string id;
    Priority priority = Priority::normal;
    std::size_t capacity = 1;
    Overflow overflow = Overflow::drop_newest;

    std::deque<std::uint64_t> queue{};
    bool shedding = false;
    std::uint64_t sent = 0;
    std::uint64_t dropped = 0;
    std::uint64_t received = 0;

    bool is_full() const { return queue.size() >= capacity; }
    double fill() const {
      return static_cast<double>(queue.size()) / static_cast<double>(capacity);
    }
  };

  enum class Fate : std::uint8_t { sent, shed, full, waits };

  struct Terms {
    double load = 0;
    bool late = false;
  };
  struct Publish {
    std::map<std::string, Fate> fates{};
    std::map<std::string, std::uint64_t> evicted{};  // The frame that had to go.
    std::size_t count(Fate fate) const {
      return static_cast<std::size_t>(std::count_if(
          fates.begin(), fates.end(), [&](const auto& entry) { return entry.second == fate; }));
    }
  };

  explicit BusModel(const Options& options) : options_(options) {}

  void subscribe(Subscriber subscriber) {
    if (subscriber.overflow == Overflow::latest) subscriber.capacity = 1;
    subscribers_.push_back(std::move(subscriber));
  }
  // What was still queued.
  std::deque<std::uint64_t> unsubscribe(const std::string& id) {
    const auto found = find(id);
    std::deque<std::uint64_t> queue = found->queue;
    subscribers_.erase(found);
    return queue;
  }

  Subscriber& at(const std::string& id) { return *find(id); }
  std::vector<Subscriber>& subscribers() { return subscribers_; }
  std::uint64_t published() const { return published_; }

  // What publish() would do, without doing it.
  Fate judge(const Subscriber& subscriber, const Terms& terms, bool& shedding) const {
    const bool critical = subscriber.priority == Priority::critical;
    const double outside = outside_load(subscriber, terms);
    const double own = subscriber.overflow == Overflow::drop_newest ? subscriber.fill() : 0;
    shedding = !critical && is_shed(subscriber, std::max(outside, own));
    const bool late = !critical && terms.late && above(std::max(outside, own), 3);
    if (shedding || late) {
      const bool by_others = is_shed(subscriber, outside) || (late && above(outside, 3));
      return by_others ? Fate::shed : Fate::full;
    }
    if (!subscriber.is_full()) return Fate::sent;
    switch (subscriber.overflow) {
      case Overflow::drop_oldest:
      case Overflow::latest:
        return Fate::sent;
      case Overflow::block:
        return terms.late ? Fate::full : Fate::waits;
      case Overflow::drop_newest:
        break;
    }
    const bool waits = critical && options_.waits_for_critical && !terms.late;
    return waits ? Fate::waits : Fate::full;
  }

  bool would_wait(const Terms& terms) const {
    bool shedding = false;
    return std::any_of(subscribers_.begin(), subscribers_.end(), [&](const Subscriber& each) {
      return judge(each, terms, shedding) == Fate::waits;
    });
  }

  Publish publish(std::uint64_t frame, const Terms& terms) {
    Publish publish;
    ++published_;
    std::vector<bool> shedding(subscribers_.size());
    for (std::size_t i = 0; i < subscribers_.size(); ++i) {
      bool shed = false;
      publish.fates[subscribers_[i].id] = judge(subscribers_[i], terms, shed);
      shedding[i] = shed;
    }
    for (std::size_t i = 0; i < subscribers_.size(); ++i) {
      Subscriber& subscriber = subscribers_[i];
      subscriber.shedding = shedding[i];
      const Fate fate = publish.fates[subscriber.id];
      if (fate == Fate::shed || fate == Fate::full) ++subscriber.dropped;
      if (fate != Fate::sent) continue;
      if (subscriber.is_full()) {
        publish.evicted[subscriber.id] = subscriber.queue.front();
        subscriber.queue.pop_front();
        --subscriber.sent;
        ++subscriber.dropped;
      }
      send(subscriber, frame);
    }
    return publish;
  }

  static void send(Subscriber& subscriber, std::uint64_t frame) {
    subscriber.queue.push_back(frame);
    ++subscriber.sent;
  }

 private:
  std::vector<Subscriber>::iterator find(const std::string& id) {
    return std::find_if(subscribers_.begin(), subscribers_.end(),
                        [&](const Subscriber& each) { return each.id == id; });
  }

  double watermark(std::size_t priority) const {
    const double marks[] = {2, options_.watermarks.high, options_.watermarks.normal,
                            options_.watermarks.best_effort};
    return marks[priority];
  }
  bool above(double load, std::size_t priority) const {
    return load > watermark(priority) + kEpsilon;
  }
  bool is_shed(const Subscriber& subscriber, double load) const {
    const auto priority = static_cast<std::size_t>(subscriber.priority);
    if (above(load, priority)) return true;
    return subscriber.shedding && load > watermark(priority) - options_.hysteresis + kEpsilon;
  }
  // The greatest load but for its own queue.
  double outside_load(const Subscriber& subscriber, const Terms& terms) const {
    double load = terms.load;
    for (const Subscriber& other : subscribers_) {
      if (other.priority < subscriber.priority && other.overflow != Overflow::latest)
        load = std::max(load, other.fill());
    }
    return load;
  }

  static constexpr double kEpsilon = 1e-9;

  Options options_;
  std::vector<Subscriber> subscribers_;
  std::uint64_t published_ = 0;
};

}  // namespace ordo::testing_support

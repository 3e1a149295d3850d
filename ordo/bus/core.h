// BusCore: the bus without the type of its frames.
//
// One word orders everything: the tail of the log, the version of the roster, and whether the bus
// is closed. A publisher judges who gets its frame by the roster of that word, and claims the tail
// with a compare-and-exchange of the whole word; so its verdict holds for exactly the subscribers
// and the position it was made for. subscribe(), unsubscribe() and close() change the same word.
//
//   bits  63     62..55    54..0
//         closed version   tail
//
// Invariants.
//   1. rosters_[version % 2] is the roster of the word's version. A version is two changes old only
//      after all publishers that may use it have left the gate.
//   2. A position is claimed once. Its claimant writes and stamps the slot without waiting for
//      anybody but the claimants of earlier positions.
//   3. A position below lap_horizon_ may be written: all cursors have passed the one that was in
//      its slot before, and that one is published.
//   4. The frames written and not taken never exceed a subscriber's capacity: claiming counts a
//      place for everybody before any is given back, and who claims a place in a full queue drops
//      its oldest frame before writing (Subscriber).
//
// Threads: any, all calls. None of its own.
// Bounds:  FrameLog::kSlots slots, kSubscribersMax subscribers, the capacity of each.
// Cost:    publish(): three read-modify-writes and the frame, while no queue is near its watermark.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ordo/bus/frame.h"
#include "ordo/bus/frame_log.h"
#include "ordo/bus/options.h"
#include "ordo/bus/publisher_gate.h"
#include "ordo/bus/room_bell.h"
#include "ordo/bus/roster.h"
#include "ordo/bus/settings.h"
#include "ordo/bus/subscriber.h"
#include "ordo/bus/wake_chain.h"

namespace ordo::bus {

// How the frame of a publish() comes to be: only when somebody takes it.
struct FrameMaker {
  FrameNode* (*make)(void* context);  // The ownership goes to the caller. May throw.
  void* context;
};

class BusCore {
 public:
  explicit BusCore(Settings settings);
  ~BusCore();
  BusCore(const BusCore&) = delete;
  BusCore& operator=(const BusCore&) = delete;

  PublishResult publish(FrameMaker maker, std::optional<TimePoint> deadline);
  void close();
  bool is_closed() const { return is_closed(word_.load(std::memory_order_seq_cst)); }

  // Throws std::invalid_argument: a bad option, a duplicate id, too many subscribers.
  std::shared_ptr<Subscriber> subscribe(const std::string& id, Priority priority,
                                        const SubscribeOptions& options);
  // Throws std::invalid_argument when nobody has this id.
  void unsubscribe(const std::string& id);
  // Does nothing when it has left already.
  void unsubscribe(Subscriber& subscriber);

  // The next frame, or nullptr: at the deadline, when the subscriber has left, and when the bus is
  // closed and the queue is empty. The ownership goes to the caller.
  FrameNode* pop(Subscriber& subscriber, TimePoint deadline);
  FrameNode* try_pop(Subscriber& subscriber);

  BusStats stats();
  Health health(const std::string& id);
  std::vector<std::string> unhealthy();

  Clock& clock() const { return *settings_.clock; }

 private:
  using Word = std::uint64_t;
  static constexpr unsigned kTailBits = 55;
  static constexpr Word kTailMask = (Word{1} << kTailBits) - 1;
  static constexpr Word kOneVersion = Word{1} << kTailBits;
  static constexpr Word kClosed = Word{1} << 63U;

  static std::uint64_t tail_of(Word word) { return word & kTailMask; }
  static bool is_closed(Word word) { return (word & kClosed) != 0; }
  static Word next_version(Word word) {
    return (word & (kClosed | kTailMask)) | ((word + kOneVersion) & ~(kClosed | kTailMask));
  }
  Roster& roster_of(Word word) const {
    return *rosters_[(word >> kTailBits) % 2].load(std::memory_order_acquire);
  }

  class Offer;
  enum class Step : std::uint8_t { done, needs_frame, waits };

  double load_from_outside() const;
  Step try_publish(Offer& offer);
  // Drops the oldest frames of those who asked for it, once the position is claimed: a frame goes
  // only for one that comes.
  void evict(const Roster& roster, std::uint64_t position, const Verdict& verdict, Offer& offer);
  void make_room_in_log(const Roster& roster, std::uint64_t tail);
  void await_published(std::uint64_t end);
  // Writes the frame to a claimed position and wakes who sleeps.
  void write(std::uint64_t position, const Verdict& verdict, const Roster& roster, Offer& offer);
  void drop_for_all(Roster& roster, std::uint64_t tail, const Verdict& verdict, bool plain);
  void give_back(const Roster& roster, const Verdict& verdict);
  // Whoever waits for a place may have looked while it was claimed, and have to look again.
  void ring_for_places(const Roster& roster, const SeatSet& takers, std::uint64_t tail);
  void await_room(Offer& offer, TimePoint deadline);
  // Sends to those of the waiters that have room by now; gives up on those that have left.
  void serve_waiters(Offer& offer);
  static void forget_leavers(const Roster& roster, Offer& offer);
  // Gives up waiting: for everybody, or for those only that do not block.
  void drop_waiters(Offer& offer, bool blocking_ones_too);

  FrameNode* taken(FrameNode* frame);
  // The bus is closed at `end`: what was claimed below it is written in a moment, then it is over.
  FrameNode* pop_rest(Subscriber& subscriber, std::uint64_t end);
  void destroy(FrameNode* list);

  // registry.cc; all REQUIRE registry_mutex_.
  std::uint64_t change_roster(Roster::Members members, Roster::Members leaving,
                              Subscriber* newcomer);
  void remove(const std::shared_ptr<Subscriber>& subscriber, FrameNode*& garbage);
  std::shared_ptr<Subscriber> find(const std::string& id) const;
  SubscriberStats stats_of(Subscriber& subscriber, Word word);
  Health health_of(Subscriber& subscriber);
  HealthWindow::Counts counts_of(const Subscriber& subscriber, Word word) const;

  // Notes the counters when a new bucket of the health windows has begun.
  void roll_health();
  std::int64_t health_bucket(TimePoint now) const;

  const Settings settings_;
  const std::chrono::nanoseconds bucket_span_;
  FrameLog log_;
  PublisherGate gate_;
  WakeChain chain_{gate_};
  RoomBell bell_;

  alignas(kCacheLineBytes) std::atomic<Word> word_{0};
  alignas(kCacheLineBytes) std::array<std::atomic<Roster*>, 2> rosters_{};
  std::atomic<std::uint64_t> lap_horizon_{FrameLog::kSlots};
  std::atomic<std::uint64_t> published_until_{0};  // All positions below are; a hint.
  std::atomic<bool> is_stuck_{false};              // The last frame was dropped for all; a hint.
  std::atomic<std::int64_t> next_bucket_at_;       // When the next bucket begins, in ns.
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> bytes_queued_{0};
  std::atomic<std::uint64_t> encores_{0};  // Positions used for waiters: no publish of their own.

  std::mutex health_mutex_;  // Never waited for by publishers.

  std::mutex registry_mutex_;  // Never taken by publishers. What follows is guarded by it.
  std::map<std::string, std::shared_ptr<Subscriber>> subscribers_;
  SeatSet seats_taken_;
  std::uint64_t dropped_for_all_ = 0;  // By rosters that are gone.
  DepartedStats departed_;
};

}  // namespace ordo::bus

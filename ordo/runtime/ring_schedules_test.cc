// Every schedule of small cases of SpscRing and MpscRing, and the faults that must be found.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/runtime/mpsc_ring.h"
#include "ordo/runtime/spsc_ring.h"
#include "tests/support/expect_schedules.h"

namespace ordo {
namespace {

using test::explored_checkpoint;
using test::explored_failure;
using test::ExploredAtomic;
using test::ExploredAtomics;
using test::ExploredItem;
using Bodies = std::vector<std::function<void()>>;

// An item is 10 * producer + number. What came out must be what went in: nothing unwritten, nothing
// twice, nothing lost, each producer's in its order.
struct Ledger {
  std::array<int, 3> pushed{};  // How many each producer got in.
  std::array<int, 3> seen{};

  void receive(int item) {
    if (item == ExploredItem::kUnwritten) {
      explored_failure("an unpublished item was read");
      return;
    }
    const auto producer = static_cast<std::size_t>(item / 10);
    if (item % 10 != seen[producer]) {
      explored_failure("an item is lost, doubled or out of order");
      return;
    }
    ++seen[producer];
  }
  std::uint64_t code() const {  // For checkpoints of the consumer.
    return static_cast<std::uint64_t>(100 + seen[0] + 10 * seen[1] + 100 * seen[2]);
  }
  std::string check() const {
    return pushed == seen ? "" : "a push that succeeded was not consumed, or the reverse";
  }
};

// An SpscRing remembers the other side's counter, so its threads have more state than they show
// and may not forget their history in the middle.
template <class Ring>
constexpr bool kRemembersNothing = false;
template <template <class> class Wait>
constexpr bool kRemembersNothing<MpscRing<ExploredItem, Wait, ExploredAtomics>> = true;

template <class Ring>
void push_numbers(Ring& ring, Ledger& ledger, int producer, int count) {
  auto& pushed = ledger.pushed[static_cast<std::size_t>(producer)];
  for (int number = 0; number < count; ++number) {
    if (!ring.push(ExploredItem(10 * producer + number))) break;
    ++pushed;
    if (kRemembersNothing<Ring>) explored_checkpoint(static_cast<std::uint64_t>(pushed));
  }
  explored_checkpoint(static_cast<std::uint64_t>(10 + pushed));
}

// Until `count` items were received, or until the end when that comes first.
template <class Ring>
void receive_numbers(Ring& ring, Ledger& ledger, int count) {
  for (int done = 0; done < count;) {
    const auto batch = static_cast<std::size_t>(count - done);
    const std::size_t taken =
        ring.consume(batch, [&](ExploredItem& item) { ledger.receive(item.value()); });
    if (taken == 0) break;
    done += static_cast<int>(taken);
    if (kRemembersNothing<Ring>) explored_checkpoint(ledger.code());
  }
  explored_checkpoint(ledger.code() * 2 + 1);
}
constexpr int kUntilTheEnd = 9;

template <template <class> class Wait>
using ExploredSpsc = SpscRing<ExploredItem, Wait, ExploredAtomics>;
template <template <class> class Wait>
using ExploredMpsc = MpscRing<ExploredItem, Wait, ExploredAtomics>;

// One producer, kCount items through kCapacity slots.
template <class Ring, int kCount, std::size_t kCapacity>
struct OneProducer {
  Ring ring{kCapacity};
  Ledger ledger;
  Bodies threads() {
    return {[this] { push_numbers(ring, ledger, 0, kCount); },
            [this] { receive_numbers(ring, ledger, kCount); }};
  }
  std::string check() { return ledger.check(); }
};
using SpscSpinWrap = OneProducer<ExploredSpsc<SpinWait>, 3, 2>;
using SpscSpinTurns = OneProducer<ExploredSpsc<SpinWait>, 2, 1>;
using SpscBlockWrap = OneProducer<ExploredSpsc<BlockWait>, 2, 1>;
using MpscBlockWrap = OneProducer<ExploredMpsc<BlockWait>, 2, 1>;

// Two producers, kCount items each, through kCapacity slots.
template <class Ring, int kCount, std::size_t kCapacity>
struct TwoProducers {
  Ring ring{kCapacity};
  Ledger ledger;
  Bodies threads() {
    return {[this] { push_numbers(ring, ledger, 0, kCount); },
            [this] { push_numbers(ring, ledger, 1, kCount); },
            [this] { receive_numbers(ring, ledger, 2 * kCount); }};
  }
  std::string check() { return ledger.check(); }
};
using MpscSpinTurns = TwoProducers<ExploredMpsc<SpinWait>, 1, 1>;
using MpscBlockTurns = TwoProducers<ExploredMpsc<BlockWait>, 1, 2>;

// Two producers, two items each, two slots; all threads poll, so that waiting leaves no history.
struct MpscPollWrap {
  ExploredMpsc<SpinWait> ring{2};
  Ledger ledger;

  void produce(int self) {
    auto& pushed = ledger.pushed[static_cast<std::size_t>(self)];
    while (pushed < 2) {
      ExploredItem item(10 * self + pushed);
      const std::uint64_t checkpoint = 10 + static_cast<std::uint64_t>(pushed);
      explored_checkpoint(checkpoint);
      // NOLINTNEXTLINE(bugprone-use-after-move): a push that fails takes nothing.
      while (!ring.try_push(std::move(item))) {
        ExploredAtomics::pause();
        explored_checkpoint(checkpoint);
      }
      ++pushed;
    }
    explored_checkpoint(1);
  }
  void receive() {
    while (ledger.seen[0] + ledger.seen[1] < 4) {
      explored_checkpoint(ledger.code());
      const auto take = [&](ExploredItem& item) { ledger.receive(item.value()); };
      if (ring.try_consume(2, take) == 0) ExploredAtomics::pause();
    }
    explored_checkpoint(1);
  }
  Bodies threads() {
    return {[this] { produce(0); }, [this] { produce(1); }, [this] { receive(); }};
  }
  std::string check() { return ledger.check(); }
};

// A producer, a consumer that drains, and a third thread that closes the ring at any moment.
template <class Ring, int kCount, std::size_t kCapacity>
struct Closing {
  Ring ring{kCapacity};
  Ledger ledger;
  Bodies threads() {
    return {[this] { push_numbers(ring, ledger, 0, kCount); },
            [this] { receive_numbers(ring, ledger, kUntilTheEnd); }, [this] { ring.close(); }};
  }
  std::string check() { return ledger.check(); }
};
using SpscClosing = Closing<ExploredSpsc<SpinWait>, 1, 1>;
using MpscClosing = Closing<ExploredMpsc<SpinWait>, 2, 1>;

// One side is asleep, or about to sleep, when the ring is closed.
template <class Ring>
struct ClosingWakesTheConsumer {
  Ring ring{1};
  Ledger ledger;
  Bodies threads() {
    return {[this] { receive_numbers(ring, ledger, kUntilTheEnd); }, [this] { ring.close(); }};
  }
  std::string check() { return ledger.check(); }
};
template <class Ring>
struct ClosingWakesTheProducer {
  Ring ring{1};
  Ledger ledger;
  Bodies threads() {
    return {[this] { push_numbers(ring, ledger, 0, 2); }, [this] { ring.close(); }};
  }
  std::string check() {
    if (ring.push(ExploredItem(0))) return "a closed ring took an item";
    receive_numbers(ring, ledger, kUntilTheEnd);
    return ledger.check();
  }
};
using SpscConsumerClosed = ClosingWakesTheConsumer<ExploredSpsc<BlockWait>>;
using SpscProducerClosed = ClosingWakesTheProducer<ExploredSpsc<BlockWait>>;
using MpscConsumerClosed = ClosingWakesTheConsumer<ExploredMpsc<BlockWait>>;
using MpscProducerClosed = ClosingWakesTheProducer<ExploredMpsc<BlockWait>>;

// try_push says full only when the ring was full: two producers, room for exactly two.
struct MpscExactCapacity {
  ExploredMpsc<SpinWait> ring{2};
  Ledger ledger;
  Bodies threads() {
    auto producer = [this](int self) {
      if (!ring.try_push(ExploredItem(10 * self)))
        explored_failure("refused although there was room");
      ledger.pushed[static_cast<std::size_t>(self)] = 1;
    };
    return {[producer] { producer(0); }, [producer] { producer(1); }};
  }
  std::string check() {
    if (ring.try_push(ExploredItem(9))) return "a third item was taken in by two slots";
    std::size_t count = 0;
    while (ring.try_pop())
      ++count;
    return count == 2 ? "" : "two items went in, another number came out";
  }
};

TEST(RingSchedules, SpscKeepsOrderAndLosesNothingAcrossTheWrap) {
  ORDO_EXPECT_RIGHT(SpscSpinWrap, {});
  ORDO_EXPECT_RIGHT(SpscSpinTurns, {.store_buffers = true});
}

TEST(RingSchedules, SpscParksAndWakesOnBothSides) {
  ORDO_EXPECT_RIGHT(SpscBlockWrap, {});
  ORDO_EXPECT_RIGHT(SpscBlockWrap, {.store_buffers = true});
}

TEST(RingSchedules, SpscClosingAtAnyMomentLosesNoAcceptedItem) {
  ORDO_EXPECT_RIGHT(SpscClosing, {});
  ORDO_EXPECT_RIGHT(SpscClosing, {.store_buffers = true});
}

TEST(RingSchedules, SpscClosingWakesBothSides) {
  ORDO_EXPECT_RIGHT(SpscConsumerClosed, {.store_buffers = true});
  ORDO_EXPECT_RIGHT(SpscProducerClosed, {.store_buffers = true});
}

TEST(RingSchedules, MpscTwoProducersKeepTheirOrderAcrossTheWrap) {
  ORDO_EXPECT_RIGHT(MpscPollWrap, {});
}

TEST(RingSchedules, MpscTwoProducersShareOneSlotWithStoreBuffers) {
  ORDO_EXPECT_RIGHT(MpscSpinTurns, {.store_buffers = true});
}

TEST(RingSchedules, MpscParksAndWakesOnBothSides) {
  ORDO_EXPECT_RIGHT(MpscBlockWrap, {});
  ORDO_EXPECT_RIGHT(MpscBlockWrap, {.store_buffers = true});
}

TEST(RingSchedules, MpscTwoProducersWakeOneConsumer) {
  ORDO_EXPECT_RIGHT(MpscBlockTurns, {});
}

TEST(RingSchedules, MpscClosingAtAnyMomentLosesNoAcceptedItem) {
  ORDO_EXPECT_RIGHT(MpscClosing, {});
  ORDO_EXPECT_RIGHT(MpscClosing, {.store_buffers = true});
}

TEST(RingSchedules, MpscClosingWakesBothSides) {
  ORDO_EXPECT_RIGHT(MpscConsumerClosed, {.store_buffers = true});
  ORDO_EXPECT_RIGHT(MpscProducerClosed, {.store_buffers = true});
}

TEST(RingSchedules, MpscCapacityIsExact) {
  ORDO_EXPECT_RIGHT(MpscExactCapacity, {});
  ORDO_EXPECT_RIGHT(MpscExactCapacity, {.store_buffers = true});
}

constexpr test::ExploreOptions kNoHeavyFence{.store_buffers = true, .membarrier = false};

TEST(RingSchedules, WithoutTheHeavyFenceAStoreBufferPutsTheRingToSleepForEver) {
  ORDO_EXPECT_WRONG(SpscBlockWrap, kNoHeavyFence, "deadlock");
}

TEST(RingSchedules, WithoutTheHeavyFenceClosingLosesAnAcceptedItem) {
  ORDO_EXPECT_WRONG(SpscClosing, kNoHeavyFence, "a push that succeeded was not consumed");
}

// The bare algorithm of MpscRing, with faults to plant in it.
enum class Fault : std::uint8_t {
  none,
  publish_before_write,      // The sequence is stored before the item.
  claim_without_capacity,    // A claim does not look at the tail.
  claim_without_swap,        // A claim reads and stores the head.
  release_before_read,       // The slot goes back before its item was read.
  publish_without_sequence,  // The consumer trusts the head instead of the slot.
};

template <Fault kFault, std::uint64_t kCapacity>
struct FaultyRing {
  ExploredAtomic<std::uint64_t> head{0};
  ExploredAtomic<std::uint64_t> tail{0};
  std::array<ExploredAtomic<std::uint64_t>, kCapacity> sequences;
  std::array<ExploredItem, kCapacity> items;

  std::uint64_t claim() {
    while (true) {
      std::uint64_t seen = head.load();
      if (kFault != Fault::claim_without_capacity && seen - tail.load() >= kCapacity) {
        ExploredAtomics::pause();
        continue;
      }
      if (kFault == Fault::claim_without_swap) {
        head.store(seen + 1);
        return seen;
      }
      if (head.compare_exchange_strong(seen, seen + 1)) return seen;
    }
  }
  bool push(int value) {
    const std::uint64_t mine = claim();
    auto& sequence = sequences[mine % kCapacity];
    if (kFault == Fault::publish_before_write) sequence.store(mine + 1, std::memory_order_release);
    items[mine % kCapacity].write(value);
    if (kFault != Fault::publish_before_write) sequence.store(mine + 1, std::memory_order_release);
    return true;
  }
  int pop() {
    const std::uint64_t mine = tail.load();
    const auto published = [&] {
      if (kFault == Fault::publish_without_sequence) return head.load() > mine;
      return sequences[mine % kCapacity].load() == mine + 1;
    };
    while (!published())
      ExploredAtomics::pause();
    if (kFault == Fault::release_before_read) tail.store(mine + 1, std::memory_order_release);
    const int value = items[mine % kCapacity].value();
    items[mine % kCapacity].write(ExploredItem::kUnwritten);
    tail.store(mine + 1, std::memory_order_release);
    return value;
  }
};

template <Fault kFault, int kCount = 2, std::uint64_t kCapacity = 2>
struct FaultyWorld {
  FaultyRing<kFault, kCapacity> ring;
  Ledger ledger;
  Bodies threads() {
    auto produce = [this](int self) {
      for (int number = 0; number < kCount; ++number) {
        ring.push(10 * self + number);
        ++ledger.pushed[static_cast<std::size_t>(self)];
        explored_checkpoint(static_cast<std::uint64_t>(number));
      }
    };
    return {[produce] { produce(0); }, [produce] { produce(1); },
            [this] {
              for (int count = 0; count < 2 * kCount; ++count) {
                ledger.receive(ring.pop());
                explored_checkpoint(ledger.code());
              }
            }};
  }
  std::string check() { return ledger.check(); }
};

using FaultlessWorld = FaultyWorld<Fault::none, 1, 1>;

TEST(RingSchedules, TheBareAlgorithmIsRight) {
  ORDO_EXPECT_RIGHT(FaultlessWorld, {});
  ORDO_EXPECT_RIGHT(FaultlessWorld, {.store_buffers = true});
}
TEST(RingSchedules, PublishingBeforeWritingIsFound) {
  ORDO_EXPECT_WRONG(FaultyWorld<Fault::publish_before_write>, {}, "unpublished");
}
TEST(RingSchedules, ClaimingWithoutLookingAtTheCapacityIsFound) {
  ORDO_EXPECT_WRONG(FaultyWorld<Fault::claim_without_capacity>, {}, "");
}
TEST(RingSchedules, ClaimingWithoutSwapIsFound) {
  ORDO_EXPECT_WRONG(FaultyWorld<Fault::claim_without_swap>, {}, "");
}
TEST(RingSchedules, GivingASlotBackBeforeReadingItIsFound) {
  ORDO_EXPECT_WRONG(FaultyWorld<Fault::release_before_read>, {}, "");
}
TEST(RingSchedules, TrustingTheHeadInsteadOfTheSlotIsFound) {
  ORDO_EXPECT_WRONG(FaultyWorld<Fault::publish_without_sequence>, {}, "unpublished");
}

}  // namespace
}  // namespace ordo

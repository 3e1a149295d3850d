// FrameRef: one of several owners of a published frame; the frame goes when the last one does.
//
//   FrameRef<Image> image = FrameRef<Image>::make(width, height);
//   bus.publish(image);                  // No copy: every subscriber shares it.
//   show(*image);                        // Still ours to read; nobody may change it any more.
//
// Threads: any thread may copy and drop its own references; the frame is read-only for all.
// Cost:    an allocation per frame (make), a read-modify-write per copy and per drop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace ordo {

namespace bus {

// What the bus knows of a frame: who owns it and how to end it.
struct FrameNode {
  explicit FrameNode(void (*destroy_node)(FrameNode*)) : destroy(destroy_node) {}

  static constexpr std::size_t kNoSize = ~std::size_t{0};

  std::atomic<std::uint32_t> owners{1};
  // What follows is kept only for byte budgets. The first bus that has one counts the frame once,
  // by `queued`; any other that gets the same frame counts it for each queue.
  std::atomic<std::uint32_t> queued{0};  // Queues of that bus it waits in.
  std::atomic<std::size_t> bytes{kNoSize};
  void (*destroy)(FrameNode*);
  // While it has owners: the bus whose budget counts it once. Then: the next of a list of nodes
  // which wait to be destroyed. One word for both, since every frame is allocated with it.
  std::atomic<void*> link{nullptr};

  void add_owners(std::uint32_t count) { owners.fetch_add(count, std::memory_order_relaxed); }
  // True when the caller was the last owner and has to destroy it.
  [[nodiscard]] bool drop_owner() { return owners.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  // REQUIRES (both): it has no owners.
  FrameNode* next() const { return static_cast<FrameNode*>(link.load(std::memory_order_relaxed)); }
  void set_next(FrameNode* node) { link.store(node, std::memory_order_relaxed); }

  // The first size it is given is the one that counts, so that what is added is what is taken off.
  void set_size(std::size_t size) {
    std::size_t none = kNoSize;
    bytes.compare_exchange_strong(none, std::min(size, kNoSize - 1), std::memory_order_relaxed);
  }
  // What the budget of `bus` grows by when `count` of its queues take the frame, and what it
  // shrinks by when one has given it up.
  // REQUIRES: it has a size.
  [[nodiscard]] std::size_t enter_queues(void* bus, std::uint32_t count) {
    void* none = nullptr;
    link.compare_exchange_strong(none, bus, std::memory_order_relaxed);
    const std::size_t size = bytes.load(std::memory_order_relaxed);
    if (link.load(std::memory_order_relaxed) != bus) return size * count;
    return queued.fetch_add(count, std::memory_order_relaxed) == 0 ? size : 0;
  }
  [[nodiscard]] std::size_t leave_queue(const void* bus) {
    const std::size_t size = bytes.load(std::memory_order_relaxed);
    if (link.load(std::memory_order_relaxed) != bus) return size;
    return queued.fetch_sub(1, std::memory_order_relaxed) == 1 ? size : 0;
  }
};

template <class Frame>
struct FrameNodeOf final : FrameNode {
  template <class... Arguments>
  explicit FrameNodeOf(std::in_place_t /*tag*/, Arguments&&... arguments)
      : FrameNode(&destroy_this),
        frame(std::forward<Arguments>(arguments)...) {}

  static void destroy_this(FrameNode* node) { delete static_cast<FrameNodeOf*>(node); }

  const Frame frame;
};

}  // namespace bus

template <class Frame>
class FrameRef {
 public:
  // A frame made of the arguments of one of its constructors.
  template <class... Arguments>
  static FrameRef make(Arguments&&... arguments) {
    return FrameRef(
        new bus::FrameNodeOf<Frame>(std::in_place, std::forward<Arguments>(arguments)...));
  }

  FrameRef(const FrameRef& other) : node_(other.node_) {
    if (node_ != nullptr) node_->add_owners(1);
  }
  FrameRef(FrameRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  FrameRef& operator=(FrameRef other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~FrameRef() {
    if (node_ != nullptr && node_->drop_owner()) node_->destroy(node_);
  }

  // REQUIRES: not moved from.
  const Frame& operator*() const { return static_cast<bus::FrameNodeOf<Frame>*>(node_)->frame; }
  const Frame* operator->() const { return &**this; }
  const Frame* get() const { return node_ != nullptr ? &**this : nullptr; }

 private:
  template <class>
  friend class Bus;
  template <class>
  friend class Subscription;

  // Takes over one ownership.
  explicit FrameRef(bus::FrameNode* node) : node_(node) {}

  bus::FrameNode* node_;
};

}  // namespace ordo

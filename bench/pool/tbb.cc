// oneTBB, in the forms its users have. Messages lie in a ring of two windows and travel by pointer;
// a place is written again only after the message two windows before was taken.
#include <cstddef>
#include <semaphore>
#include <thread>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include "bench/pool/contenders.h"

#if __has_include(<readerwriterqueue/readerwritercircularbuffer.h>)
#include <readerwriterqueue/readerwritercircularbuffer.h>
#else
#include <oneapi/tbb/concurrent_queue.h>
#endif

namespace ordo::bench {
namespace {

namespace tbb = oneapi::tbb;

// Limits TBB to `threads` threads for as long as it lives.
struct Arena {
  explicit Arena(std::size_t threads)
      : limit(tbb::global_control::max_allowed_parallelism, threads),
        arena(static_cast<int>(threads)) {}

  tbb::global_control limit;
  tbb::task_arena arena;
};

// Each message on a cache line of its own.
class Ring {
 public:
  explicit Ring(std::size_t place_count) : places_(place_count) {}
  Message* place(std::uint64_t id) { return &places_[id % places_.size()].message; }

 private:
  struct alignas(64) Place {
    Message message;
  };
  std::vector<Place> places_;
};

// The bounded queue between a sending thread and a pipeline that wants to pull.
#if __has_include(<readerwriterqueue/readerwritercircularbuffer.h>)
class FeedQueue {
 public:
  explicit FeedQueue(std::size_t item_count_max) : queue_(item_count_max) {}
  void push(Message* message) { queue_.wait_enqueue(message); }
  Message* pop() {
    Message* message = nullptr;
    queue_.wait_dequeue(message);
    return message;
  }

 private:
  moodycamel::BlockingReaderWriterCircularBuffer<Message*> queue_;
};
#else
class FeedQueue {
 public:
  explicit FeedQueue(std::size_t item_count_max) {
    queue_.set_capacity(static_cast<std::ptrdiff_t>(item_count_max));
  }
  void push(Message* message) { queue_.push(message); }
  Message* pop() {
    Message* message = nullptr;
    queue_.pop(message);
    return message;
  }

 private:
  tbb::concurrent_bounded_queue<Message*> queue_;
};
#endif

template <class NextMessage>
void run_pipeline(Load& load, NextMessage next_message) {
  std::uint64_t sent = 0;
  tbb::parallel_pipeline(
      load.window(),
      tbb::make_filter<void, Message*>(tbb::filter_mode::serial_in_order,
                                       [&](tbb::flow_control& control) -> Message* {
                                         if (sent == load.items()) {
                                           control.stop();
                                           return nullptr;
                                         }
                                         return next_message(sent++);
                                       }) &
          tbb::make_filter<Message*, Message*>(tbb::filter_mode::parallel,
                                               [&load](Message* message) {
                                                 load.work(*message);
                                                 return message;
                                               }) &
          tbb::make_filter<Message*, void>(tbb::filter_mode::serial_in_order,
                                           [&load](Message* message) { load.take(*message); }));
}

}  // namespace

std::string_view tbb_feed_queue() {
#if __has_include(<readerwriterqueue/readerwritercircularbuffer.h>)
  return "moodycamel::BlockingReaderWriterCircularBuffer";
#else
  return "tbb::concurrent_bounded_queue";
#endif
}

void run_tbb_pipeline(Load& load) {
  Arena threads(load.workers());
  Ring ring(load.window() * 2);
  threads.arena.execute([&] {
    load.begin();
    run_pipeline(load, [&](std::uint64_t id) {
      Message* message = ring.place(id);
      load.fill(*message, id);
      return message;
    });
  });
}

void run_tbb_pipeline_push(Load& load) {
  Arena threads(load.workers());
  Ring ring(load.window() * 4);  // The feed may hold another window.
  FeedQueue feed(load.window());
  load.begin();
  std::thread sender([&] {
    for (std::uint64_t id = 0; id < load.items(); ++id) {
      Message* message = ring.place(id);
      load.fill(*message, id);
      feed.push(message);
    }
  });
  threads.arena.execute([&] { run_pipeline(load, [&](std::uint64_t) { return feed.pop(); }); });
  sender.join();
}

void run_tbb_flow(Load& load) {
  namespace flow = tbb::flow;
  Arena threads(load.workers());
  Ring ring(load.window() * 2);
  threads.arena.execute([&] {
    flow::graph graph;
    std::uint64_t sent = 0;
    flow::input_node<Message*> source(graph, [&](tbb::flow_control& control) -> Message* {
      if (sent == load.items()) {
        control.stop();
        return nullptr;
      }
      Message* message = ring.place(sent);
      load.fill(*message, sent++);
      return message;
    });
    flow::limiter_node<Message*> limiter(graph, load.window());
    flow::function_node<Message*, Message*> work(graph, load.workers(), [&load](Message* message) {
      load.work(*message);
      return message;
    });
    flow::sequencer_node<Message*> sequencer(
        graph, [](Message* const& message) -> std::size_t { return message->id; });
    flow::function_node<Message*, flow::continue_msg, flow::queueing> sink(
        graph, flow::serial, [&load](Message* message) {
          load.take(*message);
          return flow::continue_msg();
        });
    flow::make_edge(source, limiter);
    flow::make_edge(limiter, work);
    flow::make_edge(work, sequencer);
    flow::make_edge(sequencer, sink);
    flow::make_edge(sink, limiter.decrementer());
    load.begin();
    source.activate();
    graph.wait_for_all();
  });
}

void run_tbb_flow_push(Load& load) {
  namespace flow = tbb::flow;
  Arena threads(load.workers() + 1);
  Ring ring(load.window() * 2);
  std::counting_semaphore<> credits(static_cast<std::ptrdiff_t>(load.window()));
  threads.arena.execute([&] {
    flow::graph graph;
    flow::function_node<Message*, Message*, flow::queueing> work(graph, load.workers(),
                                                                 [&load](Message* message) {
                                                                   load.work(*message);
                                                                   return message;
                                                                 });
    flow::sequencer_node<Message*> sequencer(
        graph, [](Message* const& message) -> std::size_t { return message->id; });
    flow::function_node<Message*, flow::continue_msg, flow::queueing> sink(
        graph, flow::serial, [&](Message* message) {
          load.take(*message);
          credits.release();
          return flow::continue_msg();
        });
    flow::make_edge(work, sequencer);
    flow::make_edge(sequencer, sink);
    load.begin();
    for (std::uint64_t id = 0; id < load.items(); ++id) {
      Message* message = ring.place(id);
      credits.acquire();
      load.fill(*message, id);
      work.try_put(message);
    }
    graph.wait_for_all();
  });
}

}  // namespace ordo::bench

#include <memory>
#include <unordered_map>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include "bench/dispatcher/keyed_load.h"

namespace ordo::bench {

void run_tbb_nodes(KeyedLoad& load) {
  namespace tbb = oneapi::tbb;
  using Node = tbb::flow::function_node<Message, tbb::flow::continue_msg, tbb::flow::queueing>;
  const std::size_t threads = load.settings().workers + 1;  // The one that dispatches works too.
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(static_cast<int>(threads));
  arena.execute([&] {
    tbb::flow::graph graph;
    std::unordered_map<std::uint64_t, std::unique_ptr<Node>> nodes;
    const auto node_of = [&](std::uint64_t key) -> Node& {
      std::unique_ptr<Node>& node = nodes[key];
      if (!node) {
        node = std::make_unique<Node>(graph, tbb::flow::serial, [&load](const Message& message) {
          load.handle(message);
          return tbb::flow::continue_msg();
        });
      }
      return *node;
    };
    if (!load.is_once()) {
      for (std::uint64_t index = 0; index < load.settings().keys; ++index)
        node_of(KeyedLoad::key_of(index));
    }
    load.begin();
    Message message;
    while (load.next(message))
      node_of(message.key).try_put(message);
    graph.wait_for_all();
    if (load.is_once()) nodes.clear();
    load.await();
  });
}

}  // namespace ordo::bench

#include <unordered_map>

#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include "bench/dispatcher/keyed_load.h"

namespace ordo::bench {

void run_strands(KeyedLoad& load) {
  namespace asio = boost::asio;
  using Strand = asio::strand<asio::thread_pool::executor_type>;
  asio::thread_pool pool(load.settings().workers);
  std::unordered_map<std::uint64_t, Strand> strands;
  const auto strand_of = [&](std::uint64_t key) -> Strand& {
    const auto found = strands.find(key);
    if (found != strands.end()) return found->second;
    return strands.emplace(key, asio::make_strand(pool.get_executor())).first->second;
  };
  if (!load.is_once()) {  // Made beforehand, which is not timed.
    for (std::uint64_t index = 0; index < load.settings().keys; ++index)
      strand_of(KeyedLoad::key_of(index));
  }
  load.begin();
  Message message;
  while (load.next(message))
    asio::post(strand_of(message.key), [&load, message] { load.handle(message); });
  if (load.is_once()) strands.clear();
  load.await();
  pool.join();
}

}  // namespace ordo::bench

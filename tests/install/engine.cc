// A program of somebody else: it includes Ordo as installed, never the source tree.
#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <map>
#include <string>

#include <ordo/engine.h>

namespace {

struct Joiner {
  std::map<ordo::CorrelationId, std::string> words;

  void handle(const char& letter, const ordo::TaskTurn& turn) { words[turn.id] += letter; }
  void finished(char&, const ordo::TaskTurn&) noexcept {}
  void failed(char&, const ordo::TaskTurn&, std::exception_ptr) noexcept {}
};

}  // namespace

int main() {
  ordo::PartitionEngine<char, Joiner> engine({.partitions = 2},
                                             [](std::size_t) { return Joiner(); });
  for (const char letter : {'a', 'b', 'c'}) {
    engine.submit(1, char{letter});
    engine.submit(2, char{letter});
  }
  engine.flush();
  const bool complete = engine.drain(std::chrono::seconds(30)).complete();
  const std::string one = engine.handler(engine.partition_of(1)).words[1];
  const std::string two = engine.handler(engine.partition_of(2)).words[2];
  std::cout << one << ' ' << two << '\n';
  return complete && one == "abc" && two == "abc" ? 0 : 1;
}

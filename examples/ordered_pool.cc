// A pool that lives for a while: one thread pushes, another pops, the outputs come in the order of
// the inputs. An input that fails is reported, with what was thrown, and holds up nobody.
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include <ordo/pool.h>

namespace {

std::string parse(const std::string& text) {
  const int number = std::stoi(text);  // Throws for what is not a number.
  if (number < 0) throw std::out_of_range("negative");
  return text + " doubled is " + std::to_string(2 * number);
}

void report(const std::string& text, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    std::cerr << "failed: '" << text << "' (" << e.what() << ")\n";
  }
}

}  // namespace

int main() {
  ordo::Pool<std::string, std::string> pool(
      parse, {.workers = 4, .preserve_order = true, .on_error = report});

  // Pushing waits while the window is full, so it has a thread of its own.
  std::jthread feeder([&pool] {
    for (const char* text : {"20", "3", "three", "100", "-1", "7"})
      pool.push(text);
    pool.close();
  });
  while (const auto line = pool.pop())
    std::cout << *line << '\n';

  const ordo::PoolStats stats = pool.stats();
  std::cout << stats.admitted << " admitted, " << stats.delivered << " delivered, " << stats.failed
            << " failed; at most " << stats.window << " at a time, by " << stats.workers_max
            << " workers\n";
  return stats.delivered == 4 && stats.failed == 2 ? 0 : 1;
}

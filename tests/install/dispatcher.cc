// A program of somebody else: it includes Ordo as installed, never the source tree.
#include <chrono>
#include <iostream>
#include <map>
#include <mutex>
#include <string>

#include <ordo/dispatcher.h>

int main() {
  std::mutex mutex;
  std::map<std::string, std::string> carts;
  ordo::Dispatcher<std::string, char> dispatcher(
      [&](const std::string& cart, const char& item) {
        const std::lock_guard lock(mutex);
        carts[cart] += item;
      },
      {.threads = 2});
  for (const char item : {'a', 'b', 'c'}) {
    dispatcher.dispatch("one", item);
    dispatcher.dispatch("two", item);
  }
  const auto undone = dispatcher.shutdown(std::chrono::seconds(30));
  std::cout << carts["one"] << ' ' << carts["two"] << '\n';
  return undone.empty() && carts["one"] == "abc" && carts["two"] == "abc" ? 0 : 1;
}

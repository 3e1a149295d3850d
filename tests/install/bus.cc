// A program of somebody else: it includes Ordo as installed, never the source tree.
#include <iostream>
#include <string>

#include <ordo/bus.h>

int main() {
  ordo::Bus<std::string> bus;
  auto detector = bus.subscribe("detector", ordo::Priority::critical, {.capacity = 5});
  auto audit = bus.subscribe("audit");
  for (const char* frame : {"one", "two", "three"}) {
    if (bus.publish(frame).sent != 2) return 1;
  }
  bus.close();
  std::string seen;
  while (auto frame = detector.pop())
    seen += **frame + ' ';
  std::cout << seen << '\n';
  return seen == "one two three " && bus.stats().subscribers.at("audit").queued == 3 ? 0 : 1;
}

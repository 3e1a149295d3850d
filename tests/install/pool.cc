// A program of somebody else: it includes Ordo as installed, never the source tree.
#include <iostream>
#include <string>

#include <ordo/pool.h>

int main() {
  ordo::Pool<int, std::string> pool([](int n) { return std::to_string(n * n); },
                                    {.workers = 2, .preserve_order = true});
  std::string squares;
  for (int n = 1; n <= 3; ++n) {
    if (!pool.push(n)) return 1;
  }
  pool.close();
  while (auto square = pool.pop())
    squares += *square + ' ';
  std::cout << squares << '\n';
  return squares == "1 4 9 " ? 0 : 1;
}

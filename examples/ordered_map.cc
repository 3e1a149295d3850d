// The one-liner: a function of every element, in parallel, the results in the order of the range.
#include <iostream>
#include <string>
#include <vector>

#include <ordo/pool.h>

int main() {
  const std::vector<std::string> words = {"apple", "cherry", "fig", "banana"};

  const auto lines =
      ordo::map_ordered(words,
                        [](const std::string& word) {
                          return word + ": " + std::to_string(word.size()) + " letters";
                        },
                        {.workers = 4});

  for (const std::string& line : lines)
    std::cout << line << '\n';
}

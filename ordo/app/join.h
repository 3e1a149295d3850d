// join(): words with something between them.
//
// Threads: a pure function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ordo::app {

inline std::string join(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += between;
    text += word;
  }
  return text;
}

}  // namespace ordo::app

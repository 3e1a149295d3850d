// The inputs of a corpus, and inputs made of them.
//
//   const std::vector<std::string> inputs = corpus("http");
//   check_http_stream(mutated(inputs, random));
//
// Threads: pure functions, but for the files they read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace ordo::fuzz {

// Of a folder below ORDO_FUZZ_CORPUS, by name.
inline std::vector<std::string> corpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(ORDO_FUZZ_CORPUS) / folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// A piece is cut out, doubled or taken from another input, or some bytes are changed.
inline std::string mutated(const std::vector<std::string>& inputs, std::mt19937& random) {
  std::string text = inputs[random() % inputs.size()];
  const std::string& other = inputs[random() % inputs.size()];
  for (unsigned changes = 1 + random() % 4; changes > 0 && !text.empty(); --changes) {
    const std::size_t from = random() % text.size();
    const std::size_t size = random() % 64;
    switch (random() % 4) {
      case 0:
        text.erase(from, size);
        break;
      case 1:
        text.insert(from, text.substr(from, size));
        break;
      case 2:
        if (!other.empty()) text.insert(from, other.substr(random() % other.size(), size));
        break;
      default:
        text[from] = static_cast<char>(random());
        break;
    }
  }
  return text;
}

}  // namespace ordo::fuzz

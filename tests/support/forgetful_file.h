// ForgetfulFile: one file of a ForgetfulDisk, and what a power cut leaves of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace ordo::testing_support {

struct Overwrite {
  std::size_t at;
  std::string old;
};

struct ForgetfulFile {
  std::string bytes;
  std::size_t synced_size = 0;
  std::vector<Overwrite> unsynced;  // Within synced_size, oldest first.
  std::string cut_off;              // The end, which a cut that was not synced may bring back.
  bool is_ahead = false;            // Its length is on the disk before its bytes are.

  void sync() {
    synced_size = bytes.size();
    unsynced.clear();
    cut_off.clear();
  }
};
using FilePtr = std::shared_ptr<ForgetfulFile>;

inline std::uint64_t up_to(std::mt19937_64& random, std::uint64_t most) {
  return std::uniform_int_distribution<std::uint64_t>(0, most)(random);
}
// All behind `synced` is there or zeros, each sector by itself; then only zeros.
inline void lose_sectors(std::string& bytes, std::size_t synced, std::mt19937_64& random) {
  constexpr std::size_t kSector = 512;
  const std::uint64_t odds = up_to(random, 4);  // Of being lost, in quarters.
  for (std::size_t at = synced; at < bytes.size();) {
    const std::size_t end = std::min(bytes.size(), (at / kSector + 1) * kSector);
    if (up_to(random, 3) < odds) std::fill(bytes.begin() + at, bytes.begin() + end, '\0');
    at = end;
  }
  bytes.append(up_to(random, std::size_t{100} << 10), '\0');
}
inline FilePtr survivor(const std::string& path, const ForgetfulFile& node,
                        std::mt19937_64& random) {
  auto left = std::make_shared<ForgetfulFile>();
  left->bytes = node.bytes;
  if (up_to(random, 1) == 0) left->bytes += node.cut_off;
  // Newest first, so that each is put back over what it replaced.
  for (auto each = node.unsynced.rbegin(); each != node.unsynced.rend(); ++each) {
    const std::size_t lost = up_to(random, 2) == 0 ? up_to(random, each->old.size())
                                                   : (up_to(random, 1) * each->old.size());
    const std::size_t from = each->old.size() - lost;
    left->bytes.replace(each->at + from, lost, each->old, from, lost);
  }
  if (node.is_ahead) {
    lose_sectors(left->bytes, node.synced_size, random);
    left->sync();
    return left;
  }
  const std::size_t tail = left->bytes.size() - node.synced_size;
  const std::size_t kept = up_to(random, 2) == 0 ? 0 : up_to(random, tail);
  left->bytes.resize(node.synced_size + kept);
  if (path.ends_with(".log") && kept > 0 && up_to(random, 3) == 0) {
    const std::size_t strange = std::min<std::size_t>(kept, 1 + up_to(random, 63));
    for (std::size_t i = 0; i < strange; ++i)
      left->bytes[left->bytes.size() - 1 - i] = static_cast<char>(random());
  }
  left->sync();
  return left;
}

}  // namespace ordo::testing_support

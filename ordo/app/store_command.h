// run_doctor(), run_repair(): `ordo doctor` and `ordo repair`, from words to exit status.
//
// Threads: call them from main().
#pragma once

#include <string>

namespace ordo::app {

struct StoreWords {
  std::string directory{};  // Empty, of doctor: look at this machine instead.
  std::string config{};     // For that.
  std::string witness{};    // Empty: beside the directory.
  bool accept_loss = false;
};

inline constexpr int kExitDamaged = 1;  // Something is missing or damaged, and was named.

// Says what a data directory holds and what is wrong with it, or whether a broker could run here;
// changes nothing.
int run_doctor(const StoreWords& words);

// Makes it usable again, without what is missing if that is accepted.
int run_repair(const StoreWords& words);

}  // namespace ordo::app

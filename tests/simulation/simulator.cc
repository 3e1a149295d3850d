// simulator: runs seeds through the broker's core and says which promise broke.
//
//   simulator --seed 17                     one seed, with everything that happened
//   simulator --first 1 --count 5000        many; fails if a promise broke or a mark was missed
//   simulator ... --histories FOLDER --every 50   writes the history of every 50th seed
//   simulator ... --no-marks                does not ask for marks
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>

#include "ordo/core/clock.h"
#include "tests/simulation/marks.h"
#include "tests/simulation/world.h"

namespace ordo::simulation {
namespace {

struct Arguments {
  std::uint64_t first = 1;
  std::uint64_t count = 1'000;
  std::uint64_t history_every = 50;
  std::string histories;
  bool is_traced = false;
  bool wants_marks = true;
};

volatile std::sig_atomic_t current_seed = 0;

// A check of the core's own failed: name the seed before the process ends.
void name_seed(int) {
  char text[64];
  const int size =
      std::snprintf(text, sizeof text, "aborted in seed %ld\n", static_cast<long>(current_seed));
  if (write(STDERR_FILENO, text, static_cast<std::size_t>(size)) < 0) std::_Exit(2);
  std::_Exit(1);
}

bool parse(int count, char** values, Arguments& arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string_view name = values[i];
    const auto number = [&] { return std::strtoull(values[++i], nullptr, 10); };
    if (name == "--no-marks") {
      arguments.wants_marks = false;
    } else if (i + 1 == count) {
      return false;
    } else if (name == "--seed") {
      arguments.first = number();
      arguments.count = 1;
      arguments.is_traced = true;
      arguments.wants_marks = false;
    } else if (name == "--first") {
      arguments.first = number();
    } else if (name == "--count") {
      arguments.count = number();
    } else if (name == "--every") {
      arguments.history_every = number();
    } else if (name == "--histories") {
      arguments.histories = values[++i];
    } else {
      return false;
    }
  }
  return true;
}

int run(const Arguments& arguments) {
  Marks marks;
  const TimePoint begin = system_clock().now();
  if (!arguments.histories.empty()) std::filesystem::create_directories(arguments.histories);
  for (std::uint64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
    current_seed = static_cast<std::sig_atomic_t>(seed);
    WorldOptions options;
    options.is_traced = arguments.is_traced;
    if (seed % arguments.history_every == 0) options.history_folder = arguments.histories;
    const std::string violation = World(make_plan(seed), marks, options).run();
    if (!violation.empty()) {
      std::printf("seed %llu: %s\nrun it again with --seed %llu\n",
                  static_cast<unsigned long long>(seed), violation.c_str(),
                  static_cast<unsigned long long>(seed));
      return 1;
    }
  }
  const double seconds = std::chrono::duration<double>(system_clock().now() - begin).count();
  std::printf("%llu seeds, no promise broken, %.0f seeds/s\n",
              static_cast<unsigned long long>(arguments.count),
              static_cast<double>(arguments.count) / seconds);
  if (!arguments.wants_marks) return 0;
  for (std::size_t i = 0; i < kMarkCount; ++i)
    std::printf("%10llu  %s\n", static_cast<unsigned long long>(marks.count(static_cast<Mark>(i))),
                std::string(kMarkTexts[i]).c_str());
  for (const Mark mark : marks.never_hit())
    std::printf("never reached: %s\n",
                std::string(kMarkNames[static_cast<std::size_t>(mark)]).c_str());
  return marks.never_hit().empty() ? 0 : 1;
}

}  // namespace
}  // namespace ordo::simulation

int main(int count, char** values) {
  ordo::simulation::Arguments arguments;
  if (!ordo::simulation::parse(count, values, arguments)) {
    std::fprintf(stderr, "simulator: --seed N | --first N --count N [--histories FOLDER]\n");
    return 2;
  }
  if (arguments.is_traced) std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::signal(SIGABRT, ordo::simulation::name_seed);
  std::signal(SIGSEGV, ordo::simulation::name_seed);
  return ordo::simulation::run(arguments);
}

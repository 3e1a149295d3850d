// ORDO_EXPECT_RIGHT, ORDO_EXPECT_WRONG: what a test says about all schedules of a small case.
//
//   ORDO_EXPECT_RIGHT(World, {.store_buffers = true});       // no schedule breaks World
//   ORDO_EXPECT_WRONG(World, {}, "deadlock");                // some schedule does, in this way
//
// The number of schedules goes to the test's output and to its XML properties.
#pragma once

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/schedule_explorer.h"

namespace ordo::test {

inline std::string steps_of(const Exploration& found) {
  std::string text;
  for (const std::string& step : found.trace)
    text += "  " + step + "\n";
  return text;
}

inline void report(const char* world, const ExploreOptions& options, const Exploration& found) {
  std::printf("  %s%s: %llu states, %llu executions, %.3g schedules%s%s\n", world,
              options.store_buffers ? " (store buffers)" : "",
              static_cast<unsigned long long>(found.states),
              static_cast<unsigned long long>(found.executions), found.schedules,
              found.failure.empty() ? "" : ", refuted: ", found.failure.c_str());
}

template <class World>
void expect_right(const char* name, const ExploreOptions& options) {
  const Exploration found = explore<World>(options);
  report(name, options, found);
  EXPECT_EQ(found.failure, "") << steps_of(found);
  EXPECT_TRUE(found.failure != "" || found.complete) << "more states than state_limit";
}

template <class World>
void expect_wrong(const char* name, const ExploreOptions& options, const std::string& how) {
  const Exploration found = explore<World>(options);
  report(name, options, found);
  EXPECT_NE(found.failure, "") << "the planted fault was not found";
  EXPECT_NE(found.failure.find(how), std::string::npos)
      << "the planted fault was not found, but: '" << found.failure << "'\n"
      << steps_of(found);
}

}  // namespace ordo::test

// The explorer runs fibers on one thread: there is nothing in it for the thread sanitizer to see,
// and it does not follow ucontext.
#if defined(__SANITIZE_THREAD__)
#define ORDO_EXPECT_RIGHT(World, ...) GTEST_SKIP() << "one real thread: nothing to sanitize"
#define ORDO_EXPECT_WRONG(World, ...) GTEST_SKIP() << "one real thread: nothing to sanitize"
#else
#define ORDO_EXPECT_RIGHT(World, ...) ::ordo::test::expect_right<World>(#World, __VA_ARGS__)
#define ORDO_EXPECT_WRONG(World, options, how) \
  ::ordo::test::expect_wrong<World>(#World, options, how)
#endif

// BrokerProgram: a real `ordo serve` for a test, and the commands that talk to it.
//
//   const Folder folder;
//   BrokerProgram broker(folder);
//   const Finished end = broker.run({"topics", "create", "orders"});
//   EXPECT_EQ(end.out, "created projects/ordo/topics/orders\n");
//
// Threads: one owner.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "map_program.h"

namespace ordo::flow {

using Words = std::vector<std::string>;

class BrokerProgram {
 public:
  // On a free port, or on the one that is given.
  explicit BrokerProgram(const Folder& folder, const std::string& at = "127.0.0.1:0")
      : program_({"serve", "--listen", at, "--data", folder.file("data"), "--fsync", "os"}) {
    constexpr int kLinesMax = 20;
    for (int i = 0; i < kLinesMax; ++i) {
      const std::string line = program_.read_line();
      const std::size_t variable = line.find("PUBSUB_EMULATOR_HOST=");
      if (variable != std::string::npos) host_ = line.substr(line.find('=') + 1);
      if (line.find("Ctrl-C") != std::string::npos) return;
    }
    ADD_FAILURE() << "the broker does not start";
  }

  const std::string& host() const { return host_; }

  // `words` and where the broker is.
  Words to_here(Words words) const {
    words.emplace_back("--host");
    words.push_back(host_);
    return words;
  }
  Finished run(const Words& words, std::string_view input = {}) const {
    return run_ordo(to_here(words), input);
  }
  // The same, and it goes well. Returns what was printed.
  std::string good(const Words& words, std::string_view input = {}) const {
    const Finished end = run(words, input);
    EXPECT_EQ(end.status, 0) << ::testing::PrintToString(words) << end.err;
    return end.out;
  }

  Finished stop() {
    program_.signal(SIGTERM);
    return program_.finish();
  }

 private:
  Program program_;
  std::string host_;
};

}  // namespace ordo::flow

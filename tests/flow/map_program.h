// Program: runs the real `ordo` for a test, with pipes at all ends.
//
//   const Finished end = run_ordo({"map", "-j4", "cat"}, "a\nb\n");
//   EXPECT_EQ(end.out, "a\nb\n");
//
//   Program program({"map", "--server", "cat"});
//   program.write("a\n");
//   EXPECT_EQ(program.read_line(), "a");     // it answers while its input is open
//   program.signal(SIGINT);
//   EXPECT_EQ(program.finish().status, 130);
//
// Nothing here waits for a fixed time; everything gives up after a minute.
#pragma once

#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "ordo/app/unique_fd.h"

namespace ordo::flow {

struct Finished {
  int status = -1;  // The exit status; 1000 + signal when it was killed.
  std::string out;
  std::string err;
  long peak_kilobytes = 0;
};

class Program {
 public:
  // `err`: where its standard error goes instead of a pipe.
  explicit Program(const std::vector<std::string>& arguments, int err = -1);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  void write(std::string_view text);
  void close_input() { in_.reset(); }
  std::string read_line();  // Without its newline; "" at the end.
  void close_output() { out_.reset(); }
  void signal(int number) const { ::kill(pid_, number); }
  pid_t pid() const { return pid_; }

  // Writes `input`, closes it, and reads and waits until the program has ended.
  Finished finish(std::string_view input = {});

 private:
  pid_t pid_ = -1;
  app::UniqueFd in_, out_, err_;
  std::string buffer_;  // Read and not yet handed out.
};

Finished run_ordo(const std::vector<std::string>& arguments, std::string_view input = {});

// A folder of its own for each test, removed at its end.
class Folder {
 public:
  Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string read(const std::string& name) const;
  void write(const std::string& name, const std::string& text) const;
  std::string fifo(const std::string& name) const;  // Makes one.

 private:
  std::string path_;
};

// Reads one line from a FIFO, which waits for a writer.
class FifoReader {
 public:
  explicit FifoReader(const std::string& path);
  std::string read_line();

 private:
  app::UniqueFd fd_;
  std::string buffer_;
};

// "1\n2\n...count\n"
std::string numbers(int count, int first = 1);
std::vector<std::string> split_lines(const std::string& text);

// The process is gone; looks again for a while, as orphans are reaped by others.
bool is_gone(const std::string& pid);

}  // namespace ordo::flow

// LineReader: cuts what comes from a file descriptor into lines, without waiting on its own.
//
//   LineReader reader(STDIN_FILENO, {.separator = '\n', .line_bytes_max = 1 << 20});
//   while (true) {
//     std::string_view line;
//     switch (reader.next(line)) {
//       case LineReader::Next::line: use(line); break;
//       case LineReader::Next::cut: complain(line); break;  // the beginning of a line too long
//       case LineReader::Next::more: poll(...); reader.fill(); break;
//       case LineReader::Next::end: return;
//     }
//   }
//
// Bytes pass unharmed, NUL included. A last line without separator is a line; an empty input has
// none. What stands behind the limit of a line that is too long is skipped, and reading goes on.
//
// Threads: one owner.
// Bounds:  line_bytes_max plus one read (64 KiB), doubled while the buffer grows.
// Cost:    every byte is searched once and copied at most once per line that spans two reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ordo::app {

class LineReader {
 public:
  struct Options {
    char separator = '\n';
    std::size_t line_bytes_max = std::size_t{128} << 20;
  };
  enum class Next { line, cut, more, end };

  LineReader(int fd, Options options) : fd_(fd), options_(options) {}

  // The next line, valid until the next call of fill(). `more`: call fill().
  Next next(std::string_view& line);

  // Reads once; blocks when nothing is there to be read. Returns 0, or errno.
  int fill();

  std::uint64_t bytes_read() const { return bytes_read_; }
  bool at_end() const { return ended_ && begin_ == end_; }

 private:
  Next take(std::size_t length, std::size_t consumed, std::string_view& line);
  void make_room();

  int fd_;
  Options options_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;     // Of what was not yet handed out.
  std::size_t searched_ = 0;  // No separator in [begin_, searched_).
  std::size_t end_ = 0;       // Of what was read.
  std::uint64_t bytes_read_ = 0;
  bool skipping_ = false;  // In the rest of a line that was cut.
  bool ended_ = false;
};

}  // namespace ordo::app

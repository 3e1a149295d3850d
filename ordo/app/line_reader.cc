#include "ordo/app/line_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace ordo::app {
namespace {
constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr std::size_t kKeptBytes = std::size_t{1} << 20;  // A larger buffer is given back.
}  // namespace

LineReader::Next LineReader::take(std::size_t length, std::size_t consumed,
                                  std::string_view& line) {
  line = std::string_view(buffer_.data() + begin_, length);
  begin_ += consumed;
  searched_ = begin_;
  return Next::line;
}

LineReader::Next LineReader::next(std::string_view& line) {
  while (true) {
    const char* from = buffer_.data() + searched_;
    const void* hit =
        searched_ < end_ ? std::memchr(from, options_.separator, end_ - searched_) : nullptr;
    const bool found = hit != nullptr;
    const std::size_t stop =
        found ? static_cast<std::size_t>(static_cast<const char*>(hit) - buffer_.data()) : end_;
    if (skipping_) {
      begin_ = searched_ = found ? stop + 1 : end_;
      skipping_ = !found && !ended_;
      if (found) continue;
      return ended_ ? Next::end : Next::more;
    }
    const std::size_t length = stop - begin_;
    if (length > options_.line_bytes_max) {
      skipping_ = !found;
      take(options_.line_bytes_max, found ? length + 1 : length, line);
      return Next::cut;
    }
    if (found) return take(length, length + 1, line);
    searched_ = end_;
    if (!ended_) return Next::more;
    return length == 0 ? Next::end : take(length, length, line);
  }
}

void LineReader::make_room() {
  if (begin_ == end_) {
    begin_ = searched_ = end_ = 0;
    if (buffer_.size() > kKeptBytes) std::vector<char>().swap(buffer_);
  }
  if (buffer_.size() - end_ >= kReadBytes) return;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    searched_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < kReadBytes) {
    buffer_.resize(std::max(2 * buffer_.size(), end_ + 2 * kReadBytes));
  }
}

int LineReader::fill() {
  if (ended_) return 0;
  make_room();
  ssize_t got = 0;
  do {
    got = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno == EAGAIN ? 0 : errno;
  if (got == 0) ended_ = true;
  end_ += static_cast<std::size_t>(got);
  bytes_read_ += static_cast<std::uint64_t>(got);
  return 0;
}

}  // namespace ordo::app

#include "ordo/app/journal.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

#include <sys/stat.h>

#include "ordo/app/line_reader.h"
#include "ordo/app/write_all.h"
#include "ordo/core/hash.h"

namespace ordo::app {
namespace {

constexpr std::string_view kMagic = "# ordo joblog 1 command=";
constexpr std::uint64_t kNumberMax = std::uint64_t{1} << 36;
constexpr std::size_t kFieldCount = 7;

std::string hex(std::uint64_t value, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; value >>= 4)
    text[i] = "0123456789abcdef"[value & 15];
  return text;
}

std::string check_sum(std::string_view text) {
  return hex(hash_bytes(text), 8);
}

std::uint64_t kept_hash(std::uint64_t hash) {
  return (hash & ~std::uint64_t{1}) | 2;
}

std::optional<std::uint64_t> parse(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error file_error(const std::string& path, const std::string& doing, int error) {
  return {ErrorCode::failed_precondition, "cannot " + doing + " the journal '" + path +
                                              "': " + ::strerrordesc_np(error) +
                                              "; give --joblog a file that can be written"};
}

Error wrong_kind(const std::string& path, bool is_directory) {
  const std::string what = is_directory ? "is a directory" : "is not a regular file";
  return {ErrorCode::failed_precondition,
          "the journal '" + path + "' " + what + "; give --joblog the name of a file"};
}

Error damage(const std::string& path, std::uint64_t number) {
  return {ErrorCode::data_loss, "the journal '" + path + "' is damaged in line " +
                                    std::to_string(number) +
                                    "; repair or remove it, nothing was run"};
}

// For a first line that is not the header.
Error foreign(const std::string& path, std::string_view line, const std::string& header) {
  if (line.starts_with(kMagic) && line.size() == header.size()) {
    return {ErrorCode::failed_precondition,
            "the journal '" + path +
                "' was written for another command; repeat that command, or give this one a "
                "journal of its own"};
  }
  return {ErrorCode::failed_precondition,
          "'" + path + "' is not a journal of ordo map; it is left as it is"};
}

// Not flock(): that would be shared with a child until it has begun to run its command, and held
// for a moment after this process was killed.
bool lock(const UniqueFd& file) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file.get(), F_SETLK, &whole) == 0;
}

std::string header_of(const std::string& command) {
  return std::string(kMagic) + hex(hash_bytes(command), 16);
}

void append_number(std::uint64_t number, std::string& text) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text.append(digits.data(), end);
}

void append_seconds(std::chrono::nanoseconds time, std::string& text) {
  const auto micros = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  append_number(micros / 1'000'000, text);
  const std::string fraction = std::to_string(1'000'000 + micros % 1'000'000);
  text += '.';
  text.append(fraction, 1);
}

void append_record(const JobResult& result, std::uint64_t output_end, std::string& text) {
  const std::size_t begin = text.size();
  append_number(result.number, text);
  text += '\t' + hex(result.hash, 16) + '\t';
  append_seconds(result.runtime, text);
  text += '\t';
  append_number(result.attempts, text);
  text += '\t' + ending_word(result) + '\t';
  append_number(output_end, text);
  text += '\t';
  text += check_sum(std::string_view(text).substr(begin)) + '\n';
}

}  // namespace

Result<Journal> Journal::open(const std::string& path, const JournalOptions& options) {
  Journal journal;
  const int flags = options.read_only ? O_RDONLY : O_RDWR | O_CREAT | O_APPEND;
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd < 0) {
    if (options.read_only && errno == ENOENT) return journal;
    if (errno == EISDIR) return wrong_kind(path, true);
    return file_error(path, "open", errno);
  }
  journal.file_ = UniqueFd(fd);
  struct stat info {};
  if (::fstat(journal.file_.get(), &info) != 0) return file_error(path, "examine", errno);
  if (!S_ISREG(info.st_mode)) return wrong_kind(path, S_ISDIR(info.st_mode));
  if (!options.read_only && !lock(journal.file_)) {
    return Error{ErrorCode::aborted, "the journal '" + path +
                                         "' is in use by another run; wait for it to end, or give "
                                         "this one a journal of its own"};
  }
  journal.rerun_failed_ = options.mode == JournalMode::resume_failed;
  if (Result<bool> read = journal.read(path, options); !read) return read.error();
  return journal;
}

Result<bool> Journal::read(const std::string& path, const JournalOptions& options) {
  const std::string header = header_of(options.command);
  LineReader reader(file_.get(), {.separator = '\n', .line_bytes_max = 4096});
  std::uint64_t number = 0;
  std::uint64_t good_bytes = 0;
  bool torn = false;  // The line before this one was no record.
  while (true) {
    std::string_view line;
    const LineReader::Next next = reader.next(line);
    if (next == LineReader::Next::more) {
      if (const int error = reader.fill(); error != 0) return file_error(path, "read", error);
      continue;
    }
    if (next == LineReader::Next::end) break;
    ++number;
    if (torn) return damage(path, number - 1);
    const bool whole =
        next == LineReader::Next::line && good_bytes + line.size() < reader.bytes_read();
    if (whole && (number == 1 ? line == header : take_record(line))) {
      good_bytes += line.size() + 1;
    } else if (number == 1 && !header.starts_with(line)) {
      return foreign(path, line, header);
    } else {
      torn = true;
    }
  }
  if (options.mode == JournalMode::fresh && !lines_.empty()) {
    return Error{ErrorCode::already_exists,
                 "the journal '" + path +
                     "' holds records of an earlier run; continue that run with --resume, or "
                     "remove the file to begin again"};
  }
  if (options.read_only) return true;
  if (torn && ::ftruncate(file_.get(), static_cast<off_t>(good_bytes)) != 0) {
    return file_error(path, "repair", errno);
  }
  if (good_bytes > 0) return true;
  if (const int error = write_all(file_.get(), header + '\n'); error != 0) {
    return file_error(path, "write to", error);
  }
  return true;
}

bool Journal::take_record(std::string_view text) {
  std::array<std::string_view, kFieldCount> fields;
  std::string_view rest = text;
  for (std::size_t i = 0; i < kFieldCount; ++i) {
    const std::size_t tab = rest.find('\t');
    if ((tab == std::string_view::npos) != (i + 1 == kFieldCount)) return false;
    fields[i] = rest.substr(0, tab);
    if (tab != std::string_view::npos) rest.remove_prefix(tab + 1);
  }
  if (fields[6] != check_sum(text.substr(0, text.size() - fields[6].size()))) return false;
  const auto number = parse(fields[0], 10);
  const auto hash = parse(fields[1], 16);
  const auto output_end = parse(fields[5], 10);
  if (!number || !hash || !output_end || *number == 0 || *number > kNumberMax) return false;
  if (lines_.size() < *number) lines_.resize(*number, 0);
  std::uint64_t& line = lines_[*number - 1];
  const bool failed = fields[4] != "ok";
  if (line == 0 || (rerun_failed_ && (line & 1) != 0))
    done_count_ += rerun_failed_ && failed ? 0 : 1;
  line = kept_hash(*hash) | (failed ? 1 : 0);
  output_end_ = *output_end;
  return true;
}

Journal::Past Journal::past(std::uint64_t number, std::uint64_t hash) const {
  if (number == 0 || number > lines_.size() || lines_[number - 1] == 0) return Past::unknown;
  const std::uint64_t line = lines_[number - 1];
  if ((line & ~std::uint64_t{1}) != kept_hash(hash)) return Past::changed;
  return rerun_failed_ && (line & 1) != 0 ? Past::unknown : Past::done;
}

int Journal::append(std::span<const JobResult> results, std::uint64_t output_end) {
  text_.clear();
  for (const JobResult& result : results) {
    if (result.ending == Ending::cancelled) continue;
    output_end += result.out.size();
    append_record(result, output_end, text_);
  }
  return write_all(file_.get(), text_);
}

int Journal::sync() {
  return ::fdatasync(file_.get()) == 0 ? 0 : errno;
}

}  // namespace ordo::app

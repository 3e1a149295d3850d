#include "bench/gateway/dialect.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace ordo::bench {
namespace {

constexpr std::string_view kNew = "NEW ACME BUY 100 99.5";
constexpr std::uint64_t kQuantity = 100;
constexpr std::string_view kFill = "FILL 1";
constexpr std::string_view kStatus = "STATUS";
constexpr std::string_view kCancel = "CANCEL";

struct Instruction {
  std::int64_t correlation_id;
  std::string_view payload;
  std::string_view decision;  // What the answer has to be; the route: how it has to begin.
};

// What has to be decided at each step of an order's life. How many are open after each FILL is told
// exactly, so that an order whose instructions changed places in the server is noticed.
std::array<std::string, kOrderSteps> decisions_by_step() {
  std::array<std::string, kOrderSteps> decisions;
  decisions.front() = "route:";
  for (std::uint64_t step = 1; step < kOrderSteps; ++step) {
    const std::string open = std::to_string(kQuantity - (step + 1) / 2);
    decisions[step] = (step % 2 == 1 ? "filled:" : "status:partially-filled:") + open;
  }
  decisions.back() = "cancelled";
  return decisions;
}

bool is_decided(std::string_view decision, std::string_view expected) {
  return expected.ends_with(':') ? decision.starts_with(expected) : decision == expected;
}

// The request number `sequence` of a connection; `once`: about an id that never comes again.
Instruction instruction_of(std::size_t connection, std::uint64_t sequence, bool once = false) {
  if (once) {
    const auto id = (static_cast<std::int64_t>(connection) << 32) + 1;
    return {id + static_cast<std::int64_t>(sequence), kStatus, "reject:unknown-order"};
  }
  const std::uint64_t place = connection * kIdsPerConnection + sequence % kIdsPerConnection;
  const std::uint64_t turn = sequence / kIdsPerConnection;
  const std::uint64_t step = turn % kOrderSteps;
  const std::uint64_t life = turn / kOrderSteps;
  const auto id = static_cast<std::int64_t>(1 + place + life * 1'000'000);
  static const std::array<std::string, kOrderSteps> decisions = decisions_by_step();
  const std::string_view decision = decisions[step];
  if (step == 0) return {id, kNew, decision};
  if (step == kOrderSteps - 1) return {id, kCancel, decision};
  return {id, step % 2 == 1 ? kFill : kStatus, decision};
}

void append_number(std::string& out, std::int64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

// Reads a decimal number at the front of `text` and takes it off with the space behind it.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  if (!text.starts_with(' ')) return false;
  text.remove_prefix(1);
  return true;
}

class OrdoText : public Dialect {
 public:
  explicit OrdoText(std::size_t connection) : connection_(connection) {}

  void ask(std::uint64_t sequence, std::string& out) override {
    const Instruction instruction = instruction_of(connection_, sequence);
    append_number(out, static_cast<std::int64_t>(sequence));
    out += ' ';
    append_number(out, instruction.correlation_id);
    out += ' ';
    out += instruction.payload;
    out += '\n';
  }

  // OK <request-id> <correlation-id> <partition> <decision> t0=<ns> t1=<ns>
  Answer read(std::string_view bytes) override {
    const void* end = std::memchr(bytes.data(), '\n', bytes.size());
    if (end == nullptr) return {};
    Answer answer;
    answer.size = static_cast<std::size_t>(static_cast<const char*>(end) - bytes.data()) + 1;
    std::string_view line = bytes.substr(0, answer.size - 1);
    const bool ok = line.starts_with("OK ");
    line.remove_prefix(std::min<std::size_t>(line.size(), ok ? 3 : 4));
    std::int64_t id = 0;
    std::uint32_t partition = 0;
    if (!take_number(line, answer.sequence)) return answer;
    if (!ok || !take_number(line, id) || !take_number(line, partition)) return answer;
    const Instruction asked = instruction_of(connection_, answer.sequence);
    const std::string_view decision = line.substr(0, line.find(' '));
    answer.good = id == asked.correlation_id && is_decided(decision, asked.decision);
    return answer;
  }

 private:
  const std::size_t connection_;
};

template <class Number>
void append_raw(std::string& out, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof bytes);
}

template <class Number>
Number raw_at(std::string_view bytes, std::size_t place) {
  Number number;
  std::memcpy(&number, bytes.data() + place, sizeof number);
  return number;
}

constexpr std::size_t kFrameHead = 8;
constexpr std::size_t kReplyHead = 32;  // Of the body: ids, partition, times.

void ask_binary(const Instruction& instruction, std::uint64_t sequence, std::string& out) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, sequence).ptr;
  const auto length = static_cast<std::size_t>(end - digits);
  const char head[4] = {1, 1, static_cast<char>(length), 0};
  out.append(head, sizeof head);
  append_raw(out, static_cast<std::uint32_t>(8 + length + instruction.payload.size()));
  append_raw(out, instruction.correlation_id);
  out.append(digits, length);
  out += instruction.payload;
}

// The whole frame at the front of `bytes`, or nothing.
std::string_view frame_of(std::string_view bytes) {
  if (bytes.size() < kFrameHead) return {};
  const std::size_t size = kFrameHead + raw_at<std::uint32_t>(bytes, 4);
  return bytes.size() < size ? std::string_view() : bytes.substr(0, size);
}

class OrdoBinary : public Dialect {
 public:
  OrdoBinary(std::size_t connection, bool once) : connection_(connection), once_(once) {}

  void ask(std::uint64_t sequence, std::string& out) override {
    ask_binary(instruction_of(connection_, sequence, once_), sequence, out);
  }

  Answer read(std::string_view bytes) override {
    const std::string_view frame = frame_of(bytes);
    if (frame.empty()) return {};
    Answer answer{.size = frame.size()};
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(frame[2]));
    if (frame.size() < kFrameHead + kReplyHead + length) return answer;
    const std::string_view token = frame.substr(kFrameHead + kReplyHead, length);
    const auto number = std::from_chars(token.data(), token.data() + token.size(), answer.sequence);
    if (number.ec != std::errc()) return answer;
    const bool ok = static_cast<unsigned char>(frame[1]) == 129;
    const Instruction asked = instruction_of(connection_, answer.sequence, once_);
    answer.good = ok && raw_at<std::int64_t>(frame, kFrameHead) == asked.correlation_id &&
                  is_decided(frame.substr(kFrameHead + kReplyHead + length), asked.decision);
    return answer;
  }

  bool ids_come_again() const override { return !once_; }

 private:
  const std::size_t connection_;
  const bool once_;
};

// The frames of OrdoBinary come back byte by byte.
class Echo : public Dialect {
 public:
  explicit Echo(std::size_t connection) : connection_(connection) {}

  void ask(std::uint64_t sequence, std::string& out) override {
    ask_binary(instruction_of(connection_, sequence), sequence, out);
  }

  Answer read(std::string_view bytes) override {
    const std::string_view frame = frame_of(bytes);
    if (frame.empty()) return {};
    expected_.clear();
    ask_binary(instruction_of(connection_, next_), next_, expected_);
    return {.size = frame.size(), .sequence = next_++, .good = frame == expected_};
  }

 private:
  const std::size_t connection_;
  std::uint64_t next_ = 0;
  std::string expected_{};
};

// Replies of redis come in the order of the requests and do not name them.
class Redis : public Dialect {
 public:
  enum class Command : std::uint8_t { ping, set, get };

  Redis(Command command, std::size_t connection) : command_(command), connection_(connection) {
    if (command == Command::ping) expected_ = "+PONG\r\n";
    if (command == Command::set) expected_ = "+OK\r\n";
    if (command == Command::get) {
      expected_ = '$';
      append_number(expected_, static_cast<std::int64_t>(kRedisValue.size()));
      expected_ += "\r\n";
      expected_ += kRedisValue;
      expected_ += "\r\n";
    }
  }

  void ask(std::uint64_t sequence, std::string& out) override {
    if (command_ == Command::ping) {
      out += "*1\r\n$4\r\nPING\r\n";
      return;
    }
    // A GET finds what an earlier load of SETs has left.
    const bool set = command_ == Command::set;
    out += set ? "*3\r\n$3\r\nSET\r\n" : "*2\r\n$3\r\nGET\r\n";
    char key[] = "$16\r\nkey:000000000000\r\n";
    std::uint64_t number = connection_ * kIdsPerConnection + sequence % kIdsPerConnection;
    for (char* digit = key + 20; number != 0; number /= 10)
      *digit-- = static_cast<char>('0' + number % 10);
    out.append(key, sizeof key - 1);
    if (!set) return;
    out += '$';
    append_number(out, static_cast<std::int64_t>(kRedisValue.size()));
    out += "\r\n";
    out += kRedisValue;
    out += "\r\n";
  }

  Answer read(std::string_view bytes) override {
    if (bytes.size() >= expected_.size() && bytes.starts_with(expected_))
      return {.size = expected_.size(), .sequence = next_++, .good = true};
    if (expected_.starts_with(bytes.substr(0, expected_.size()))) return {};
    const std::size_t end = bytes.find("\r\n");  // Something else: an error, or a nil.
    if (end == std::string_view::npos) return {};
    return {.size = end + 2, .sequence = next_++, .good = false};
  }

 private:
  const Command command_;
  const std::size_t connection_;
  std::string expected_{};
  std::uint64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Dialect> make_dialect(std::string_view name, std::size_t connection) {
  using Command = Redis::Command;
  if (name == "ordo_binary") return std::make_unique<OrdoBinary>(connection, false);
  if (name == "ordo_once") return std::make_unique<OrdoBinary>(connection, true);
  if (name == "ordo_text") return std::make_unique<OrdoText>(connection);
  if (name == "redis_ping") return std::make_unique<Redis>(Command::ping, connection);
  if (name == "redis_set") return std::make_unique<Redis>(Command::set, connection);
  if (name == "redis_get") return std::make_unique<Redis>(Command::get, connection);
  if (name == "echo") return std::make_unique<Echo>(connection);
  return nullptr;
}

}  // namespace ordo::bench

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <unistd.h>

#include "ordo/adapters/order_tcp/client.h"
#include "ordo/app/gateway_command.h"
#include "ordo/app/line_reader.h"
#include "ordo/app/map_options.h"
#include "ordo/app/write_all.h"
#include "ordo/core/log.h"
#include "ordo/gateway/request.h"

namespace ordo::app {
namespace {

using order_tcp::ClientReply;
using order_tcp::ReplyType;

constexpr std::size_t kLineBytesMax = std::size_t{64} * 1024;

// As the text protocol has it, whichever was spoken.
std::string text_of(const ClientReply& reply) {
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  switch (reply.type) {
    case ReplyType::pong:
      return "PONG\n";
    case ReplyType::stats:
      return "STATS " + reply.words + "\n";
    case ReplyType::resumed:
      return "RESUMED " + std::to_string(reply.correlation_id) + "\n";
    case ReplyType::ok:
      return "OK " + reply.request_id + " " + std::to_string(reply.correlation_id) + " " +
             std::to_string(reply.partition) + " " + reply.words +
             " t0=" + std::to_string(reply.began_ns) + " t1=" + std::to_string(reply.ended_ns) +
             "\n";
    case ReplyType::rej:
      break;
  }
  const std::string partition =
      reply.partition == gateway::kNoPartition ? "-" : std::to_string(reply.partition);
  std::string text = "REJ " + or_dash(reply.request_id) + " ";
  text += reply.request_id.empty() ? "-" : std::to_string(reply.correlation_id);
  text += " " + partition + " " + std::string(gateway::name_of(reply.refusal));
  if (!reply.words.empty()) text += " " + reply.words;
  return text + "\n";
}

// One conversation: lines in, replies out, as they come.
class Conversation {
 public:
  Conversation(order_tcp::Client client, const ClientOptions& options)
      : client_(std::move(client)),
        options_(options) {}

  int hold() {
    while (error_.empty() && !(input_ended_ && outstanding_ == 0)) {
      const bool wants_line = !input_ended_ && outstanding_ < options_.window;
      pollfd ends[] = {{wants_line ? STDIN_FILENO : -1, POLLIN, 0},
                       {client_.descriptor(), POLLIN, 0}};
      if (::poll(ends, 2, -1) < 0 && errno != EINTR) return complain(::strerrordesc_np(errno));
      if (ends[1].revents != 0) take_replies();
      if (error_.empty() && ends[0].revents != 0) take_lines();
    }
    if (!error_.empty() && outstanding_ > 0) {
      error_ += "; " + std::to_string(outstanding_) + " requests were not answered";
      complain(error_);
      return kExitUndone;
    }
    if (!error_.empty()) return complain(error_);
    return rejected_ > 0 ? kExitUndone : 0;
  }

 private:
  static int complain(const std::string& message) {
    log_line("ordo: " + message);
    return kExitError;
  }

  void fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
  }

  // Reads once, and sends the lines that are whole, as many as the window allows. The others stay
  // in the reader and are sent when replies have made room.
  void take_lines() {
    if (!has_lines_) {
      if (const int error = lines_.fill(); error != 0 && error != EINTR) {
        return fail(std::string("cannot read standard input: ") + ::strerrordesc_np(error));
      }
    }
    send_lines();
  }

  void send_lines() {
    std::string_view line;
    has_lines_ = true;
    while (outstanding_ < options_.window) {
      const LineReader::Next next = lines_.next(line);
      if (next == LineReader::Next::end) {
        input_ended_ = true;
        break;
      }
      if (next == LineReader::Next::more) {
        has_lines_ = false;
        break;
      }
      ++number_;
      if (next == LineReader::Next::cut) {
        return fail("line " + std::to_string(number_) + " is longer than 64 KiB");
      }
      send_line(line);
      if (!error_.empty()) return;
    }
    if (const Status sent = client_.flush(); !sent) fail(sent.error().message);
  }

  void send_line(std::string_view line) {
    const std::string_view whole = line;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) return;
    ++outstanding_;
    if (options_.raw) {
      client_.send_bytes(whole);  // With its CR: without, the next one would be taken for it.
      client_.send_bytes("\n");
      return;
    }
    std::int64_t id = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), id);
    const auto digits = static_cast<std::size_t>(end - line.data());
    if (error != std::errc() || digits + 1 >= line.size() || line[digits] != ' ') {
      --outstanding_;
      return fail("line " + std::to_string(number_) +
                  " is not '<correlation-id> <payload>': " + printable(line, 80));
    }
    client_.send(std::to_string(number_), id, line.substr(digits + 1));
  }

  void take_replies() {
    Result<ClientReply> reply = client_.receive();
    if (!reply) return fail(reply.error().message);
    std::string text;
    for (std::optional<ClientReply> next = std::move(*reply); next; next = client_.received()) {
      text += text_of(*next);
      if (next->type == ReplyType::rej) ++rejected_;
      if (outstanding_ > 0) --outstanding_;
    }
    if (write_all(STDOUT_FILENO, text) != 0) return fail("cannot write to standard output");
    if (has_lines_) send_lines();
  }

  order_tcp::Client client_;
  const ClientOptions& options_;
  LineReader lines_{STDIN_FILENO, {.separator = '\n', .line_bytes_max = kLineBytesMax}};
  bool has_lines_ = false;  // The reader may hold whole lines.
  bool input_ended_ = false;
  std::uint64_t number_ = 0;  // Of the line.
  std::size_t outstanding_ = 0;
  std::uint64_t rejected_ = 0;
  std::string error_;
};

}  // namespace

int run_gateway_client(const ClientOptions& options) {
  const auto complain = [](const std::string& message) {
    log_line("ordo: " + message);
    return kExitError;
  };
  if (options.raw && options.binary) {
    return complain("--raw and --binary exclude each other; raw lines are text");
  }
  const Result<HostPort> to = parse_host_port("--connect", options.connect);
  if (!to) return complain(to.error().message);
  using order_tcp::Encoding;
  Result<order_tcp::Client> client =
      order_tcp::Client::connect({.host = to->host,
                                  .port = to->port,
                                  .encoding = options.binary ? Encoding::binary : Encoding::text});
  if (!client) {
    return complain(client.error().message + "; is 'ordo gateway' running there?");
  }
  return Conversation(std::move(*client), options).hold();
}

}  // namespace ordo::app

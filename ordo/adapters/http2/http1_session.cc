#include "ordo/adapters/http2/http1_session.h"

#include <array>
#include <charconv>
#include <utility>

#include "ordo/core/log.h"

namespace ordo::http2 {
namespace {

std::string_view phrase_of(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

// What the session itself says.
bool is_own_header(std::string_view name) {
  return name == "connection" || name == "transfer-encoding" || name == "content-length";
}

// A line of a response may not be ended by what a handler puts into it.
void append_clean(std::string& text, std::string_view value) {
  for (const char character : value)
    text.push_back(character == '\r' || character == '\n' || character == '\0' ? ' ' : character);
}

}  // namespace

Http1Session::Http1Session(SessionContext& context, TimePoint opened_at)
    : context_(context),
      account_(std::make_shared<OutputAccount>(context.limits, context.output)),
      parser_(context.limits, kept_bytes_, context.budget),
      now_(opened_at),
      input_deadline_(opened_at + context.limits.handshake_timeout) {}

Http1Session::~Http1Session() {
  cancel_exchange();
}

void Http1Session::receive(std::string_view bytes, TimePoint now) {
  now_ = now;
  if (is_closing_) return;
  if (exchange_) {
    held_.append(bytes);
  } else {
    parse(bytes);
  }
}

void Http1Session::parse(std::string_view bytes) {
  while (!bytes.empty() && !exchange_ && !is_closing_) {
    const bool was_untouched = parser_.is_untouched();
    const bool was_head = parser_.state() == Http1Parser::State::head;
    const Http1Parser::State state = parser_.feed(bytes);
    if (state == Http1Parser::State::failed) {
      context_.counters.malformed.add();
      refuse(parser_.error_status(), parser_.error_words());
      return;
    }
    if (state == Http1Parser::State::complete) {
      begin_exchange();
    } else {
      const bool is_body_begun = was_head && state == Http1Parser::State::body;
      const bool is_head_begun = was_untouched && !parser_.is_untouched() && has_served_;
      if (is_body_begun || is_head_begun) input_deadline_ = now_ + context_.limits.request_timeout;
      if (state == Http1Parser::State::body && bytes.empty() && parser_.take_wish_to_continue())
        say("HTTP/1.1 100 Continue\r\n\r\n");
    }
  }
  held_.append(bytes);
}

void Http1Session::begin_exchange() {
  context_.counters.requests.add();
  has_served_ = true;
  is_keep_alive_ = parser_.is_keep_alive() && !is_draining_;
  is_answered_ = is_head_said_ = is_chunked_ = false;
  input_deadline_ = TimePoint::max();
  RequestHead head = parser_.take_head();
  head.peer = context_.peer;
  is_without_body_ = head.method == "HEAD";
  exchange_ =
      std::make_shared<Exchange>(std::move(head), parser_.take_body(), context_.mailbox, account_);
  exchange_->attach(this);
  context_.routes.now().serve(exchange_);
}

void Http1Session::take(Part&& part) {
  if (is_answered_) return;
  std::size_t body_bytes = 0;
  for (const Chunk& chunk : part.body)
    body_bytes += chunk.size();
  if (!is_head_said_) say_head(part, body_bytes);
  for (Chunk& chunk : part.body)
    say_chunk(std::move(chunk));
  if (part.is_end) {
    if (is_chunked_ && !is_without_body_) say("0\r\n\r\n");
    is_answered_ = true;
  }
  context_.touch();
}

void Http1Session::say_head(const Part& part, std::size_t body_bytes) {
  is_head_said_ = true;
  const unsigned status = part.status == 0 ? 200 : part.status;
  std::string text = "HTTP/1.1 " + std::to_string(status) + " ";
  text.append(phrase_of(status)).append("\r\n");
  for (std::size_t i = 0; i < part.headers.size(); ++i) {
    const Header header = part.headers[i];
    if (is_own_header(header.name)) continue;
    append_clean(text, header.name);
    text.append(": ");
    append_clean(text, header.value);
    text.append("\r\n");
  }
  const bool has_no_body = status == 204 || status == 304;
  if (has_no_body) {
    is_without_body_ = true;
  } else if (part.is_end) {
    text.append("content-length: ").append(std::to_string(body_bytes)).append("\r\n");
  } else if (parser_.is_old()) {
    is_keep_alive_ = false;  // The end of the connection is the end of the body.
  } else {
    is_chunked_ = true;
    text.append("transfer-encoding: chunked\r\n");
  }
  if (!is_keep_alive_) text.append("connection: close\r\n");
  if (is_keep_alive_ && parser_.is_old()) text.append("connection: keep-alive\r\n");
  text.append("\r\n");
  say(std::move(text));
}

void Http1Session::say_chunk(Chunk&& chunk) {
  const std::size_t queued = chunk.queued_bytes();
  if (is_without_body_ || chunk.size() == 0) {
    output_.push_back({.queued_bytes = queued});
    return;
  }
  if (is_chunked_) {
    std::array<char, 20> digits{};
    char* const end =
        std::to_chars(digits.data(), digits.data() + digits.size(), chunk.size(), 16).ptr;
    say(std::string(digits.data(), end) + "\r\n");
  }
  output_.push_back({.slice = std::move(chunk.slice), .queued_bytes = queued});
  if (is_chunked_) say("\r\n");
}

void Http1Session::say(std::string text) {
  output_.push_back({.slice = Slice::of(std::move(text))});
}

void Http1Session::fill(OutputQueue& output, TimePoint now) {
  now_ = now;
  bool is_room_told = false;
  for (;;) {
    while (!output_.empty() && output.size() < context_.limits.output_pause_bytes) {
      Piece piece = std::move(output_.front());
      output_.pop_front();
      output.share(std::move(piece.slice));
      if (exchange_ && piece.queued_bytes > 0)
        is_room_told = exchange_->note_sent(piece.queued_bytes) || is_room_told;
    }
    const bool is_all_said = exchange_ && is_head_said_ && is_without_body_ && !is_answered_;
    if (output_.empty() && is_all_said) cancel_exchange();  // Nothing that it sends is wanted.
    if (!output_.empty() || !exchange_ || !is_answered_) break;
    end_exchange();
  }
  if (is_room_told && exchange_ && !is_answered_) tell_writable();
}

// Who does not go on leaves a body that is cut short.
void Http1Session::tell_writable() {
  try {
    exchange_->tell_writable();
  } catch (...) {
    log_line("a handler failed when there was room: " + reason_of_exception());
    is_keep_alive_ = false;
    cancel_exchange();
    context_.touch();
  }
}

void Http1Session::end_exchange() {
  exchange_->attach(nullptr);
  exchange_.reset();
  parser_.reset();
  input_deadline_ = now_ + context_.limits.idle_timeout;
  if (!is_keep_alive_ || is_draining_) {
    is_closing_ = true;
    return;
  }
  const std::string bytes = std::exchange(held_, {});
  parse(bytes);
  if (is_input_ended_ && !exchange_) is_closing_ = true;
}

void Http1Session::refuse(unsigned status, std::string_view words) {
  is_broken_ = true;
  is_keep_alive_ = false;
  is_without_body_ = is_chunked_ = is_head_said_ = is_answered_ = false;
  Part part;
  part.status = status;
  part.headers.add("content-type", "text/plain; charset=utf-8");
  part.body.push_back({.slice = Slice::of(std::string(words))});
  part.is_end = true;
  take(std::move(part));
  is_closing_ = true;
}

void Http1Session::end_input(TimePoint now) {
  now_ = now;
  is_input_ended_ = true;
  if (!exchange_) is_closing_ = true;
  if (exchange_ && exchange_->ends_with_its_client()) {
    is_keep_alive_ = false;
    cancel_exchange();
  }
}

void Http1Session::cancel_exchange() {
  if (!exchange_) return;
  exchange_->attach(nullptr);
  if (is_answered_) return;
  is_answered_ = true;
  context_.counters.cancelled.add();
  exchange_->mark_cancelled();
  try {
    exchange_->tell_cancelled();
  } catch (...) {
    log_line("a handler failed when its client had gone: " + reason_of_exception());
  }
}

TimePoint Http1Session::next_deadline() const {
  return is_closing_ ? TimePoint::max() : input_deadline_;
}

void Http1Session::on_time(TimePoint now) {
  now_ = now;
  if (now < next_deadline()) return;
  context_.counters.timed_out.add();
  if (parser_.is_untouched()) {
    is_closing_ = true;
  } else {
    refuse(408, "the request did not come in time\n");
  }
  context_.touch();
}

void Http1Session::end_idle(TimePoint now) {
  now_ = now;
  is_closing_ = true;
}

void Http1Session::drain(TimePoint now) {
  now_ = now;
  is_draining_ = true;
  if (!exchange_ && parser_.is_untouched()) is_closing_ = true;
  if (exchange_ && !is_head_said_) is_keep_alive_ = false;
}

}  // namespace ordo::http2

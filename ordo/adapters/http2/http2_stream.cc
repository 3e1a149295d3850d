#include "ordo/adapters/http2/http2_stream.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "ordo/adapters/http2/grpc_text.h"
#include "ordo/adapters/http2/http2_provider.h"
#include "ordo/core/log.h"

namespace ordo::http2 {
namespace {

// What a call or a request that is under way takes, about, beside its head.
constexpr std::size_t kOwnBytes = std::size_t{3} * 1024;

constexpr std::size_t kTypeBytesMax = 128;

constexpr std::string_view kTooMuchUnread =
    "too many bytes of answers wait for the client of this connection to take them";

// Those of HTTP/1.1 about the connection: HTTP/2 does not have them.
bool is_of_connection(std::string_view name) {
  return name == "connection" || name == "transfer-encoding" || name == "keep-alive" ||
         name == "upgrade" || name == "proxy-connection";
}

// Headers as the library takes them; the texts have to live until it has been called.
class Fields {
 public:
  Fields() { fields_.reserve(kUsual); }

  void add(std::string_view name, std::string_view value) {
    // The library takes no const, and does not write.
    fields_.push_back({reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
                       reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())),
                       name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  void add(const HeaderList& headers) {
    for (std::size_t i = 0; i < headers.size(); ++i) {
      if (!is_of_connection(headers[i].name)) add(headers[i].name, headers[i].value);
    }
  }
  const nghttp2_nv* data() const { return fields_.data(); }
  std::size_t size() const { return fields_.size(); }

 private:
  static constexpr std::size_t kUsual = 8;
  std::vector<nghttp2_nv> fields_;
};

struct Digits {
  explicit Digits(std::uint64_t number) {
    end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  }
  std::string_view view() const {
    return {text.data(), static_cast<std::size_t>(end - text.data())};
  }
  std::array<char, 20> text{};
  char* end = nullptr;
};

}  // namespace

Http2Stream::Http2Stream(Http2Session& session, std::int32_t id)
    : session_(session),
      id_(id),
      share_(session.context().limits, session.kept_bytes(), session.context().budget),
      kept_(session.context().limits, session.kept_bytes(), session.context().budget),
      sent_at_(session.now()) {
  constexpr std::size_t kHeadersUsual = 12;
  constexpr std::size_t kCharactersUsual = 256;
  head_.headers.reserve(kHeadersUsual, kCharactersUsual);
}

Http2Stream::~Http2Stream() {
  if (call_) call_->attach(nullptr);
  if (exchange_) exchange_->attach(nullptr);
}

void Http2Stream::add_header(std::string_view name, std::string_view value) {
  header_bytes_ += name.size() + value.size() + HeaderList::kFieldBytes;
  if (header_bytes_ > session_.context().limits.header_bytes_max) {
    // Too much; but what it is has to be known, for the refusal. Some clients say so last.
    const bool is_type = name == "content-type" && looks_like_grpc(value) &&
                         value.size() <= kTypeBytesMax && !head_.headers.find(name);
    if (is_type) head_.headers.add(name, value);
    return;
  }
  if (!name.starts_with(':')) {
    head_.headers.add(name, value);
  } else if (name == ":path") {
    head_.path = value;
  } else if (name == ":method") {
    head_.method = value;
  } else if (name == ":authority") {
    head_.headers.add("host", value);
  }
}

void Http2Stream::end_headers() {
  head_.peer = session_.context().peer;
  input_deadline_ = session_.now() + session_.context().limits.request_timeout;
  const std::string content_type(head_.headers.find("content-type").value_or(""));
  is_head_request_ = head_.method == "HEAD";
  if (looks_like_grpc(content_type)) {
    begin_call(content_type);
  } else if (header_bytes_ > session_.context().limits.header_bytes_max) {
    session_.context().counters.requests.add();
    refuse(431, "the request's headers are too long\n");
  } else if (const char* reason = take_room_for_head()) {
    session_.context().counters.requests.add();
    refuse(503, std::string(reason) + "\n");
  } else if (session_.account()->is_full()) {
    session_.context().counters.requests.add();
    refuse(503, std::string(kTooMuchUnread) + "\n");
  } else {
    session_.context().counters.requests.add();
  }
  session_.expect_by(next_deadline());
}

// A few bytes of a client can be a long head: many of those that stay are bounded as input is.
const char* Http2Stream::take_room_for_head() {
  const std::size_t head = std::min(header_bytes_, session_.context().limits.header_bytes_max);
  const char* const reason = share_.grow_or_begin(kOwnBytes + head);
  if (reason == nullptr) return nullptr;
  const RequestHead dropped = std::exchange(head_, {});  // Not needed to say no.
  return reason;
}

void Http2Stream::begin_call(std::string_view content_type) {
  SessionContext& context = session_.context();
  context.counters.calls.add();
  if (!is_grpc_content_type(content_type))
    return refuse(415, "the content-type of a gRPC call is application/grpc\n");
  if (head_.method != "POST") return refuse(405, "the method of a gRPC call is POST\n");
  is_grpc_ = true;
  if (const char* reason = take_room_for_head()) return fail(ErrorCode::resource_exhausted, reason);
  call_ = std::make_shared<Call>(std::move(head_), context.mailbox, session_.account());
  call_->set_details_bytes_max(session_.details_bytes_max());
  call_->attach(this);
  if (session_.account()->is_full()) return fail(ErrorCode::unavailable, kTooMuchUnread);
  if (header_bytes_ > context.limits.header_bytes_max) {
    return fail(ErrorCode::invalid_argument,
                "received metadata size exceeds the limit (" + std::to_string(header_bytes_) +
                    " vs. " + std::to_string(context.limits.header_bytes_max) + ")");
  }
  deframer_.emplace(context.limits, session_.kept_bytes(), context.budget);
  if (const char* reason = read_call_headers(*call_))
    return fail(ErrorCode::invalid_argument, reason);
  if (is_output_ended_) return;
  const Routes& routes = context.routes.now();
  method_ = routes.find(call_->path());
  if (method_ == nullptr) {
    const Error refusal = routes.refusal_of(call_->path());
    return fail(refusal.code, refusal.message);
  }
  if (method_->unary) return;
  input_deadline_ = TimePoint::max();
  try {
    handler_ = method_->streaming(call_);
  } catch (...) {
    fail(ErrorCode::internal, reason_of_exception());
  }
}

const char* Http2Stream::read_call_headers(Call& call) {
  if (const auto text = call.headers().find("grpc-timeout")) {
    const auto timeout = parse_timeout(*text);
    if (!timeout) return "grpc-timeout is not 1 to 8 digits and one of H, M, S, m, u, n";
    call.set_deadline(session_.now() + *timeout);
  }
  const std::string_view encoding = call.headers().find("grpc-encoding").value_or("identity");
  if (encoding == "gzip") {
    deframer_->allow_gzip();
    const auto accepted = call.headers().find("grpc-accept-encoding").value_or("");
    if (accepted.find("gzip") != std::string_view::npos) call.compress_replies();
  } else if (encoding != "identity") {
    Part part =
        final_part(static_cast<int>(ErrorCode::unimplemented),
                   "grpc-encoding is " + std::string(encoding) + "; allowed is identity or gzip",
                   {}, {{"grpc-accept-encoding", "identity,gzip"}});
    take(std::move(part));
  }
  return nullptr;
}

void Http2Stream::add_data(std::string_view bytes) {
  if (is_output_ended_) {
    session_.consume(id_, bytes.size());  // Nobody wants it, and it costs nothing.
  } else if (is_input_held_) {
    if (const char* reason = kept_.append(bytes, 0)) fail(ErrorCode::resource_exhausted, reason);
  } else {
    take_data(bytes);
  }
}

void Http2Stream::take_data(std::string_view bytes) {
  if (is_grpc_) return take_messages(bytes);
  const Limits& limits = session_.context().limits;
  session_.consume(id_, bytes.size());
  if (kept_.size() + bytes.size() > limits.message_bytes_max)
    return refuse(413, "the request's body is too long\n");
  if (const char* reason = kept_.append(bytes, 2 * (kept_.size() + bytes.size())))
    refuse(503, std::string(reason) + "\n");
}

void Http2Stream::take_messages(std::string_view bytes) {
  const std::size_t size = bytes.size();
  while (!is_output_ended_ && !is_input_held_) {
    const auto message = deframer_->next(bytes);
    if (!message) break;
    handle_message(*message);
    deframer_->drop_message();
  }
  if (deframer_->error()) fail(deframer_->error()->code, deframer_->error()->message);
  if (is_output_ended_) bytes = {};
  session_.consume(id_, size - bytes.size());
  if (bytes.empty()) return;
  // Held in the middle: the rest waits.
  if (const char* reason = kept_.append(bytes, 0)) fail(ErrorCode::resource_exhausted, reason);
}

void Http2Stream::handle_message(std::string_view message) {
  ++message_count_;
  try {
    if (handler_) {
      handler_->on_message(message);
    } else if (message_count_ == 1) {
      method_->unary(call_, message);
    } else {
      fail(ErrorCode::unimplemented, "a unary method takes one message; more were given");
    }
  } catch (...) {
    fail(ErrorCode::internal, reason_of_exception());
  }
}

void Http2Stream::end_input() {
  is_input_ended_ = true;
  input_deadline_ = TimePoint::max();
  if (is_output_ended_) return;
  if (is_input_held_) {
    is_end_held_ = true;
  } else {
    finish_input();
  }
}

void Http2Stream::finish_input() {
  if (!is_grpc_) return begin_exchange();
  if (deframer_->is_in_message())
    return fail(ErrorCode::invalid_argument, "the call ended in the middle of a message");
  if (!handler_) {
    if (message_count_ == 0)
      fail(ErrorCode::unimplemented, "a unary method takes one message; none was given");
    return;
  }
  try {
    handler_->on_half_close();
  } catch (...) {
    fail(ErrorCode::internal, reason_of_exception());
  }
}

void Http2Stream::begin_exchange() {
  SessionContext& context = session_.context();
  exchange_ = std::make_shared<Exchange>(std::move(head_), kept_.release(), context.mailbox,
                                         session_.account());
  exchange_->attach(this);
  context.routes.now().serve(exchange_);
}

void Http2Stream::hold_input(bool is_held) {
  if (std::exchange(is_input_held_, is_held) && !is_held) release_held();
}

void Http2Stream::release_held() {
  if (is_output_ended_) return;
  const std::string bytes = kept_.release();
  const bool has_end = std::exchange(is_end_held_, false);  // Behind all of these, however held.
  if (!bytes.empty()) take_data(bytes);
  if (has_end && is_input_held_) {
    is_end_held_ = true;
  } else if (has_end && !is_output_ended_) {
    finish_input();
  }
  session_.context().touch();
}

// ---------------------------------------------------------------- output

void Http2Stream::refuse(unsigned status, std::string_view words) {
  session_.context().counters.malformed.add();
  Part part;
  part.status = status;
  part.headers.add("content-type", "text/plain; charset=utf-8");
  part.body.push_back({.slice = Slice::of(std::string(words))});
  part.is_end = true;
  take(std::move(part));
}

void Http2Stream::fail(ErrorCode code, std::string_view message) {
  if (is_output_ended_) return;
  take(final_part(static_cast<int>(code), message, {}, {}));
  tell_cancelled();  // Nothing that the handler sends arrives.
}

void Http2Stream::take(Part&& part) {
  if (is_output_ended_) return;
  if (output_.empty()) sent_at_ = session_.now();
  for (Chunk& chunk : part.body) {
    output_bytes_ += chunk.size();
    output_.push_back(std::move(chunk));
  }
  if (part.is_end) {
    is_output_ended_ = true;
    grpc_status_ = part.grpc_status;
    trailers_ = std::move(part.trailers);
    session_.expect_by(sent_at_ + session_.context().limits.write_timeout);
  }
  if (!is_head_sent_) {
    const bool is_trailers_only =
        is_grpc_ && part.is_end && output_.empty() && part.headers.empty();
    is_trailers_only ? submit_trailers_only() : submit_head(part);
    is_head_sent_ = true;
  } else if (is_deferred_) {
    nghttp2_session_resume_data(session_.library(), id_);
    is_deferred_ = false;
  }
  session_.context().touch();
}

void Http2Stream::submit_head(const Part& part) {
  const Digits status(part.status == 0 ? 200 : part.status);
  const Digits length(output_bytes_);
  Fields fields;
  fields.add(":status", status.view());
  if (is_grpc_) {
    fields.add("content-type", "application/grpc");
    if (part.is_gzip) fields.add("grpc-encoding", "gzip");
  } else if (part.is_end && !part.headers.find("content-length")) {
    fields.add("content-length", length.view());
  }
  fields.add(part.headers);
  if (is_head_request_) {
    output_.clear();
    output_bytes_ = 0;
    is_cut_ = !is_output_ended_;
    is_output_ended_ = true;
  }
  if (is_output_ended_ && output_.empty() && !is_grpc_) {
    nghttp2_submit_response(session_.library(), id_, fields.data(), fields.size(), nullptr);
    return;
  }
  const nghttp2_data_provider provider = provider_of(*this);
  nghttp2_submit_response(session_.library(), id_, fields.data(), fields.size(), &provider);
}

void Http2Stream::submit_trailers_only() {
  const Digits code(static_cast<std::uint64_t>(std::max(grpc_status_, 0)));
  Fields fields;
  fields.add(":status", "200");
  fields.add("content-type", "application/grpc");
  fields.add("grpc-status", code.view());
  fields.add(trailers_);
  nghttp2_submit_response(session_.library(), id_, fields.data(), fields.size(), nullptr);
}

void Http2Stream::submit_trailers() {
  const Digits code(static_cast<std::uint64_t>(std::max(grpc_status_, 0)));
  Fields fields;
  fields.add("grpc-status", code.view());
  fields.add(trailers_);
  nghttp2_submit_trailer(session_.library(), id_, fields.data(), fields.size());
}

Http2Stream::Ready Http2Stream::ready(std::size_t size_max) {
  if (output_bytes_ == 0 && !is_output_ended_) {
    is_deferred_ = true;
    return {.is_waiting = true};
  }
  const std::size_t size = std::min(size_max, output_bytes_);
  return {.size = size, .is_last = is_output_ended_ && size == output_bytes_};
}

void Http2Stream::move_to(OutputQueue& output, std::size_t size) {
  sent_at_ = session_.now();
  output_bytes_ -= size;
  std::size_t done = 0;
  while (size > 0) {
    Chunk& chunk = output_[output_first_];
    const std::size_t count = std::min(size, chunk.size() - output_begin_);
    std::size_t begin = output_begin_;
    std::size_t left = count;
    if (begin < chunk.prefix_size) {
      const std::size_t of_prefix = std::min<std::size_t>(chunk.prefix_size - begin, left);
      output.copy({chunk.prefix.data() + begin, of_prefix});
      begin += of_prefix;
      left -= of_prefix;
    }
    if (left > 0) {
      output.share({chunk.slice.owner, chunk.slice.bytes.substr(begin - chunk.prefix_size, left)});
    }
    output_begin_ += count;
    size -= count;
    done += count;
    if (output_begin_ < chunk.size()) continue;
    done += Chunk::kOwnBytes;
    output_begin_ = 0;
    chunk.slice = {};
    ++output_first_;
  }
  constexpr std::size_t kGoneMax = 64;
  const bool is_worth_it = output_first_ == output_.size() ||
                           (output_first_ > kGoneMax && output_first_ > output_.size() / 2);
  if (is_worth_it) {
    output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(output_first_));
    output_first_ = 0;
  }
  Conversation* const conversation =
      call_ ? static_cast<Conversation*>(call_.get()) : exchange_.get();
  if (conversation != nullptr && conversation->note_sent(done)) session_.tell_writable_later(id_);
}

// ---------------------------------------------------------------- time, and the end

void Http2Stream::tell_writable() {
  if (is_output_ended_) return;
  try {
    if (handler_) handler_->on_writable();
    if (exchange_) exchange_->tell_writable();
  } catch (...) {
    fail(ErrorCode::internal, reason_of_exception());
  }
}

void Http2Stream::ask_round_end() {
  if (!std::exchange(is_round_asked_, true)) session_.tell_round_end_to(id_);
}

void Http2Stream::tell_round_end() {
  is_round_asked_ = false;
  if (is_output_ended_ || !handler_) return;
  try {
    handler_->on_round_end();
  } catch (...) {
    fail(ErrorCode::internal, reason_of_exception());
  }
}

void Http2Stream::cancel() {
  if (call_) call_->attach(nullptr);
  if (exchange_) exchange_->attach(nullptr);
  const bool is_done = is_output_ended_ && !is_cut_;
  if (is_done || (!call_ && !exchange_)) return;
  is_output_ended_ = true;
  session_.context().counters.cancelled.add();
  tell_cancelled();
}

// Nobody is left to be told of an exception.
void Http2Stream::tell_cancelled() {
  if (call_) call_->mark_cancelled();
  if (exchange_) exchange_->mark_cancelled();
  try {
    if (handler_) handler_->on_cancelled();
    if (exchange_) exchange_->tell_cancelled();
  } catch (...) {
    log_line("a handler failed when its client had gone: " + reason_of_exception());
  }
}

TimePoint Http2Stream::next_deadline() const {
  TimePoint first = input_deadline_;
  if (call_ && !is_output_ended_) first = std::min(first, call_->deadline());
  if (is_output_ended_) first = std::min(first, sent_at_ + session_.context().limits.write_timeout);
  return first;
}

void Http2Stream::on_time(TimePoint now) {
  if (now < next_deadline()) return;
  if (is_output_ended_) {
    // All is said, and the client does not take it, or does not end.
    nghttp2_submit_rst_stream(session_.library(), NGHTTP2_FLAG_NONE, id_, NGHTTP2_CANCEL);
    input_deadline_ = TimePoint::max();
    sent_at_ = now;
  } else if (call_ && now >= call_->deadline()) {
    session_.context().counters.cancelled.add();
    fail(ErrorCode::deadline_exceeded, "Deadline Exceeded");
  } else if (is_grpc_) {
    fail(ErrorCode::deadline_exceeded, "the request did not come in time");
  } else {
    refuse(408, "the request did not come in time\n");
  }
}

}  // namespace ordo::http2

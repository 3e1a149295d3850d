#include "ordo/adapters/http2/http2_session.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nghttp2/nghttp2.h>

#include "ordo/adapters/http2/http2_provider.h"
#include "ordo/adapters/http2/http2_stream.h"
#include "ordo/core/check.h"

namespace ordo::http2 {
namespace {

constexpr std::array<std::uint8_t, 8> kDrainPing = {'o', 'r', 'd', 'o', 'e', 'n', 'd', 0};
constexpr std::array<std::uint8_t, 8> kKeepalivePing = {'o', 'r', 'd', 'o', 'l', 'i', 'v', 'e'};
// For clients that do not answer: requests on their way meet the last GOAWAY then.
constexpr auto kDrainPingTime = std::chrono::seconds(1);
// Above what one read can bring, so that the meter decides.
constexpr std::size_t kAcksMax = 16'384;
constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 40;
// Of what a client says before its first request, so much is remembered.
constexpr std::size_t kGreetingBytesMax = 256;
// What a session takes: asleep, and awake without its HPACK tables, of which a byte takes three.
constexpr std::size_t kAsleepBytes = std::size_t{2} * 1024;
constexpr std::size_t kAwakeBytes = std::size_t{24} * 1024;
constexpr std::size_t kTableFactor = 3;
// GOAWAY: nothing was served, and nothing is wrong.
constexpr std::string_view kGoodbye("\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0", 17);
// The most that we send in the headers of an answer.
constexpr std::size_t kHeaderBytesSentMax = std::size_t{1} << 20;
// What a client takes of them that has not said. Those of Node take 65,535.
constexpr std::size_t kHeaderBytesUnsaid = 60'000;
// Of a status, beside its details.
constexpr std::size_t kHeaderBytesOther = 2'048;

std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

// What the library calls. None of these throws; handlers' exceptions are caught by the stream.
struct Http2Callbacks {
  static Http2Session& session_of(void* user) { return *static_cast<Http2Session*>(user); }

  static Http2Stream* stream_of(nghttp2_session* library, std::int32_t id) {
    return static_cast<Http2Stream*>(nghttp2_session_get_stream_user_data(library, id));
  }

  static int on_begin_headers(nghttp2_session* /*library*/, const nghttp2_frame* frame,
                              void* user) {
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
      session_of(user).open(frame->hd.stream_id);
    return 0;
  }

  // NOLINTNEXTLINE(readability-function-size): as the library calls it.
  static int on_header(nghttp2_session* library, const nghttp2_frame* frame,
                       const std::uint8_t* name, std::size_t name_size, const std::uint8_t* value,
                       std::size_t value_size, std::uint8_t /*flags*/, void* /*user*/) {
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    if (Http2Stream* const stream = stream_of(library, frame->hd.stream_id))
      stream->add_header(text_of(name, name_size), text_of(value, value_size));
    return 0;
  }

  // NOLINTNEXTLINE(readability-function-size): as the library calls it.
  static int on_data_chunk(nghttp2_session* library, std::uint8_t /*flags*/, std::int32_t id,
                           const std::uint8_t* bytes, std::size_t size, void* user) {
    // Streams that wait do not hold up the others: only the stream's own window stays closed.
    nghttp2_session_consume_connection(library, size);
    if (Http2Stream* const stream = stream_of(library, id)) {
      stream->add_data(text_of(bytes, size));
    } else {
      session_of(user).consume(id, size);
    }
    return 0;
  }

  static int on_frame_recv(nghttp2_session* library, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_SETTINGS && frame->hd.type != NGHTTP2_WINDOW_UPDATE)
      session_of(user).is_new_ = false;
    if (frame->hd.type == NGHTTP2_PING) on_ping(frame->ping, session_of(user));
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    Http2Stream* const stream = stream_of(library, frame->hd.stream_id);
    if (stream == nullptr) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
      stream->end_headers();
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) stream->end_input();
    return 0;
  }

  static void on_ping(const nghttp2_ping& ping, Http2Session& session) {
    if ((ping.hd.flags & NGHTTP2_FLAG_ACK) == 0) return;
    if (std::equal(kDrainPing.begin(), kDrainPing.end(), ping.opaque_data))
      session.send_last_goaway();
  }

  static int on_frame_send(nghttp2_session* library, const nghttp2_frame* frame, void* user) {
    Http2Session& session = session_of(user);
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
      const std::uint32_t code = frame->rst_stream.error_code;
      if (code == NGHTTP2_NO_ERROR || code == NGHTTP2_CANCEL) return 0;
      if (const char* reason = session.meter_.note_reset(session.now_)) session.calm(reason);
      return 0;
    }
    if (frame->hd.type == NGHTTP2_DATA) session.meter_.grant(2);
    const bool is_response = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (!is_response || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    const Http2Stream* const stream = stream_of(library, frame->hd.stream_id);
    // All is said before the client has: it need not go on.
    if (stream != nullptr && !stream->is_input_ended())
      nghttp2_submit_rst_stream(library, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    return 0;
  }

  static int on_invalid_frame(nghttp2_session* /*library*/, const nghttp2_frame* /*frame*/,
                              int /*error*/, void* user) {
    Http2Session& session = session_of(user);
    session.is_new_ = false;
    session.context_.counters.malformed.add();
    if (const char* reason = session.meter_.note_reset(session.now_)) session.calm(reason);
    return 0;
  }

  static int on_stream_close(nghttp2_session* library, std::int32_t id, std::uint32_t /*code*/,
                             void* user) {
    if (Http2Stream* const stream = stream_of(library, id)) session_of(user).close(*stream);
    return 0;
  }

  // NOLINTNEXTLINE(readability-function-size): as the library calls it.
  static ssize_t read_data(nghttp2_session* /*library*/, std::int32_t /*id*/,
                           std::uint8_t* /*buffer*/, std::size_t size_max, std::uint32_t* flags,
                           nghttp2_data_source* source, void* user) {
    Http2Session& session = session_of(user);
    if (session.output_->size() >= session.context_.limits.output_pause_bytes)
      return NGHTTP2_ERR_PAUSE;
    auto& stream = *static_cast<Http2Stream*>(source->ptr);
    const Http2Stream::Ready ready = stream.ready(size_max);
    if (ready.is_waiting) return NGHTTP2_ERR_DEFERRED;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (ready.is_last) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (stream.has_trailers()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        stream.submit_trailers();
      }
    }
    return static_cast<ssize_t>(ready.size);
  }

  // NOLINTNEXTLINE(readability-function-size): as the library calls it.
  static int send_data(nghttp2_session* /*library*/, nghttp2_frame* /*frame*/,
                       const std::uint8_t* frame_header, std::size_t size,
                       nghttp2_data_source* source, void* user) {
    constexpr std::size_t kFrameHeaderBytes = 9;
    OutputQueue& output = *session_of(user).output_;
    output.copy(text_of(frame_header, kFrameHeaderBytes));
    static_cast<Http2Stream*>(source->ptr)->move_to(output, size);
    return 0;
  }

  static void set(nghttp2_session_callbacks* callbacks) {
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
  }

  static nghttp2_session* make(const Limits& limits, Http2Session& owner) {
    nghttp2_session_callbacks* callbacks = nullptr;
    ORDO_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
    set(callbacks);
    nghttp2_option* options = nullptr;
    ORDO_CHECK(nghttp2_option_new(&options) == 0);
    nghttp2_option_set_no_auto_window_update(options, 1);
    nghttp2_option_set_no_recv_client_magic(options, 1);
    nghttp2_option_set_no_closed_streams(options, 1);
    nghttp2_option_set_max_outbound_ack(options, kAcksMax);
    nghttp2_option_set_max_send_header_block_length(options, 2 * kHeaderBytesSentMax);
    nghttp2_option_set_max_continuations(options, limits.continuations_max);
    // The meter counts resets, under our time; the library would look at a clock of its own.
    nghttp2_option_set_stream_reset_rate_limit(options, kUnlimited, kUnlimited);
    nghttp2_session* library = nullptr;
    ORDO_CHECK(nghttp2_session_server_new2(&library, callbacks, &owner, options) == 0);
    nghttp2_option_del(options);
    nghttp2_session_callbacks_del(callbacks);
    return library;
  }
};

void Http2Session::LibraryDeleter::operator()(nghttp2_session* session) const {
  nghttp2_session_del(session);
}

Http2Session::Http2Session(SessionContext& context, TimePoint now)
    : context_(context),
      meter_(context.limits),
      account_(std::make_shared<OutputAccount>(context.limits, context.output)),
      now_(now),
      opened_at_(now),
      heard_at_(now) {
  make_library();
  next_deadline_ = first_deadline();
}

void Http2Session::make_library() {
  const Limits& limits = context_.limits;
  library_.reset(Http2Callbacks::make(limits, *this));
  const std::array<nghttp2_settings_entry, 3> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streams_max},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.stream_window_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(limits.header_bytes_max)},
  }};
  nghttp2_submit_settings(library(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(library(), NGHTTP2_FLAG_NONE, 0,
                                        static_cast<std::int32_t>(limits.connection_window_bytes));
}

// What was said and sent before is said to the library again, and dropped.
void Http2Session::wake() {
  make_library();
  drop_output();
  nghttp2_session_mem_recv(library(), reinterpret_cast<const std::uint8_t*>(greeting_.data()),
                           greeting_.size());
  drop_output();
}

void Http2Session::drop_output() {
  const std::uint8_t* bytes = nullptr;
  while (nghttp2_session_mem_send(library(), &bytes) > 0) {
  }
}

void Http2Session::note_greeting(std::string_view bytes) {
  if (!is_new_) return;
  if (greeting_.size() + bytes.size() <= kGreetingBytesMax) {
    greeting_.append(bytes);
  } else {
    is_new_ = false;
  }
}

void Http2Session::sleep_if_new() {
  if (!is_new_) {
    if (!greeting_.empty()) greeting_ = {};
    return;
  }
  const bool may_sleep = !is_dead_ && !is_broken_ && !is_draining_ && is_idle();
  if (!may_sleep || !library_) return;
  // Wants to read: it has found nothing wrong, and means to go on.
  nghttp2_session* const library = library_.get();
  if (nghttp2_session_want_read(library) != 0 && nghttp2_session_want_write(library) == 0)
    library_.reset();
}

std::size_t Http2Session::idle_bytes() const {
  nghttp2_session* const library = library_.get();
  if (library == nullptr) return kAsleepBytes;
  return kAwakeBytes + kTableFactor * (nghttp2_session_get_hd_inflate_dynamic_table_size(library) +
                                       nghttp2_session_get_hd_deflate_dynamic_table_size(library));
}

Http2Session::~Http2Session() {
  for (const auto& stream : streams_)
    stream->cancel();
}

void Http2Session::receive(std::string_view bytes, TimePoint now) {
  if (!wants_input()) return;
  now_ = now;
  heard_at_ = now;
  pinged_at_ = TimePoint::max();
  if (const char* reason = meter_.look(bytes, now)) {
    calm(reason);
    return;
  }
  if (!meter_.is_in_block()) {
    in_block_since_ = TimePoint::max();
  } else if (in_block_since_ == TimePoint::max()) {
    in_block_since_ = now;
    expect_by(now + context_.limits.request_timeout);
  }
  nghttp2_session* const library = this->library();
  note_greeting(bytes);
  const ssize_t taken = nghttp2_session_mem_recv(
      library, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (taken >= 0) return;
  context_.counters.malformed.add();
  break_off(taken == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR);
}

void Http2Session::end_input(TimePoint now) {
  now_ = now;
  is_dead_ = true;  // Nobody reads what we could still say.
}

void Http2Session::fill(OutputQueue& output, TimePoint now) {
  now_ = now;
  if (!library_) {
    if (!std::exchange(is_leaving_, false)) return;
    output.copy(kGoodbye);
    is_dead_ = true;
    return;
  }
  tell_round_ends();
  output_ = &output;
  while (!is_dead_ && output.size() < context_.limits.output_pause_bytes) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(library(), &bytes);
    if (size < 0) is_dead_ = true;
    if (size <= 0) break;
    output.copy(text_of(bytes, static_cast<std::size_t>(size)));
  }
  output_ = nullptr;
  for (const std::int32_t id : std::exchange(writable_, {})) {
    if (Http2Stream* const stream = Http2Callbacks::stream_of(library(), id))
      stream->tell_writable();
  }
  sleep_if_new();
}

void Http2Session::tell_round_ends() {
  if (round_ends_.empty() || is_dead_) return;
  for (const std::int32_t id : std::exchange(round_ends_, {})) {
    if (Http2Stream* const stream = Http2Callbacks::stream_of(library(), id))
      stream->tell_round_end();
  }
}

nghttp2_data_provider provider_of(Http2Stream& stream) {
  nghttp2_data_provider provider{};
  provider.source.ptr = &stream;
  provider.read_callback = Http2Callbacks::read_data;
  return provider;
}

bool Http2Session::is_over() const {
  if (is_dead_) return true;
  nghttp2_session* const library = library_.get();
  if (library == nullptr) return false;
  return nghttp2_session_want_read(library) == 0 && nghttp2_session_want_write(library) == 0;
}

void Http2Session::on_time(TimePoint now) {
  now_ = now;
  for (std::size_t i = 0; i < streams_.size(); ++i)
    streams_[i]->on_time(now);
  const Limits& limits = context_.limits;
  const bool is_slow_to_begin = !meter_.has_frame() && now >= opened_at_ + limits.handshake_timeout;
  const bool is_block_late =
      in_block_since_ != TimePoint::max() && now >= in_block_since_ + limits.request_timeout;
  if (is_slow_to_begin || is_block_late) {
    context_.counters.timed_out.add();
    break_off(NGHTTP2_NO_ERROR);
  } else if (streams_.empty()) {
    if (now >= heard_at_ + limits.idle_timeout && !is_broken_) {
      context_.counters.timed_out.add();
      break_off(NGHTTP2_NO_ERROR);
    }
  } else {
    check_keepalive();
  }
  if (now >= goaway_at_) send_last_goaway();
  next_deadline_ = first_deadline();
}

void Http2Session::check_keepalive() {
  const Limits& limits = context_.limits;
  if (pinged_at_ != TimePoint::max()) {
    if (now_ < pinged_at_ + limits.keepalive_timeout) return;
    context_.counters.timed_out.add();
    is_dead_ = true;
  } else if (now_ >= heard_at_ + limits.keepalive_interval) {
    pinged_at_ = now_;
    nghttp2_submit_ping(library(), NGHTTP2_FLAG_NONE, kKeepalivePing.data());
  }
}

TimePoint Http2Session::first_deadline() {
  const Limits& limits = context_.limits;
  TimePoint first = goaway_at_;
  if (!meter_.has_frame()) first = std::min(first, opened_at_ + limits.handshake_timeout);
  if (in_block_since_ != TimePoint::max())
    first = std::min(first, in_block_since_ + limits.request_timeout);
  if (streams_.empty()) {
    first = std::min(first, heard_at_ + limits.idle_timeout);
  } else if (pinged_at_ != TimePoint::max()) {
    first = std::min(first, pinged_at_ + limits.keepalive_timeout);
  } else {
    first = std::min(first, heard_at_ + limits.keepalive_interval);
  }
  for (const auto& stream : streams_)
    first = std::min(first, stream->next_deadline());
  return first;
}

void Http2Session::expect_by(TimePoint deadline) {
  next_deadline_ = std::min(next_deadline_, deadline);
}

void Http2Session::consume(std::int32_t stream, std::size_t bytes) {
  nghttp2_session_consume_stream(library(), stream, bytes);
}

std::size_t Http2Session::details_bytes_max() {
  constexpr std::uint32_t kUnsaid = 0xffff'ffff;
  const std::uint32_t said =
      nghttp2_session_get_remote_settings(library(), NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE);
  const std::size_t bytes =
      said == kUnsaid ? kHeaderBytesUnsaid : std::min<std::size_t>(said, kHeaderBytesSentMax);
  // As base64 three bytes become four.
  const std::size_t details = (bytes - std::min(bytes, kHeaderBytesOther)) / 4 * 3;
  return std::max(details, Call::kDetailsBytesMin);
}

// A notice first, and the last GOAWAY when the client has seen it: what it sent in between counts.
void Http2Session::drain(TimePoint now) {
  if (std::exchange(is_draining_, true)) return;
  now_ = now;
  nghttp2_submit_shutdown_notice(library());
  nghttp2_submit_ping(library(), NGHTTP2_FLAG_NONE, kDrainPing.data());
  goaway_at_ = now + kDrainPingTime;
  expect_by(goaway_at_);
}

void Http2Session::end_idle(TimePoint now) {
  now_ = now;
  if (is_broken_) return;
  if (library_) return break_off(NGHTTP2_NO_ERROR);
  is_broken_ = is_leaving_ = true;
  context_.touch();
}

void Http2Session::send_last_goaway() {
  if (std::exchange(goaway_at_, TimePoint::max()) == TimePoint::max()) return;
  nghttp2_submit_goaway(library(), NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(library()), NGHTTP2_NO_ERROR,
                        nullptr, 0);
  context_.touch();
}

void Http2Session::calm(const char* reason) {
  if (is_broken_) return;
  context_.counters.calmed.add();
  const std::string_view words = reason;
  nghttp2_submit_goaway(
      library(), NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(library()),
      NGHTTP2_ENHANCE_YOUR_CALM, reinterpret_cast<const std::uint8_t*>(words.data()), words.size());
  break_off(NGHTTP2_ENHANCE_YOUR_CALM);
}

void Http2Session::break_off(std::uint32_t code) {
  is_broken_ = true;
  nghttp2_session_terminate_session(library(), code);
  context_.touch();
}

Http2Stream& Http2Session::open(std::int32_t id) {
  has_served_ = true;
  is_new_ = false;
  streams_.push_back(std::make_unique<Http2Stream>(*this, id));
  Http2Stream& stream = *streams_.back();
  stream.index = streams_.size() - 1;
  nghttp2_session_set_stream_user_data(library(), id, &stream);
  if (streams_.size() == 1) expect_by(heard_at_ + context_.limits.keepalive_interval);
  return stream;
}

void Http2Session::close(Http2Stream& stream) {
  stream.cancel();
  nghttp2_session_set_stream_user_data(library(), stream.id(), nullptr);
  const std::size_t index = stream.index;
  const std::unique_ptr<Http2Stream> leaving = std::move(streams_[index]);
  if (index + 1 < streams_.size()) {
    streams_[index] = std::move(streams_.back());
    streams_[index]->index = index;
  }
  streams_.pop_back();
  if (streams_.empty()) expect_by(heard_at_ + context_.limits.idle_timeout);
}

}  // namespace ordo::http2

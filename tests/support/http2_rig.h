// Http2Client: a client by libnghttp2, without a socket. Http2Rig: one and a Connection of ours,
// joined by memory, under a time that the test moves.
//
//   Http2Rig rig;
//   rig.routes.unary("/test.Echo/Say", ...);
//   const int stream = rig.client.call("/test.Echo/Say", {framed("hello")}, true);
//   rig.run();                                       // until neither side has anything to say
//   EXPECT_EQ(rig.client.answer(stream).trailer("grpc-status"), "0");
//
// Threads: one owner: the test's, which is the I/O thread of the connection as well.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "ordo/adapters/http2/connection.h"
#include "ordo/core/check.h"

namespace ordo::testing_support {

using http2::HeaderList;

// A gRPC message with its five bytes.
inline std::string framed(std::string_view message, bool is_compressed = false) {
  const std::size_t size = message.size();
  std::string text = {static_cast<char>(is_compressed ? 1 : 0), static_cast<char>(size >> 24),
                      static_cast<char>(size >> 16), static_cast<char>(size >> 8),
                      static_cast<char>(size)};
  return text.append(message);
}

// Everything one read from the socket would bring, at once.
inline std::string taken_from(http2::Connection& connection, TimePoint now) {
  std::string bytes;
  for (;;) {
    connection.fill(now);
    if (connection.output().empty()) return bytes;
    std::array<iovec, 64> pieces{};
    const std::size_t count = connection.output().gather(pieces);
    std::size_t size = 0;
    for (std::size_t i = 0; i < count; ++i) {
      bytes.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
      size += pieces[i].iov_len;
    }
    connection.sent(size, now);
  }
}

struct Answer {
  std::map<std::string, std::string> headers;   // The first block.
  std::map<std::string, std::string> trailers;  // The second.
  std::string body;
  int blocks = 0;
  bool is_ended = false;
  std::optional<std::uint32_t> closed_with;

  std::string header(const std::string& name) const { return value(headers, name); }
  // gRPC's status may stand in the only block.
  std::string trailer(const std::string& name) const {
    return blocks > 1 ? value(trailers, name) : value(headers, name);
  }
  // The messages of the body, without their five bytes.
  std::vector<std::string> messages() const {
    std::vector<std::string> all;
    std::string_view rest = body;
    while (rest.size() >= 5) {
      std::size_t size = 0;
      for (const char byte : rest.substr(1, 4))
        size = size << 8 | static_cast<unsigned char>(byte);
      ORDO_CHECK(rest.size() >= 5 + size);
      all.emplace_back(rest.substr(5, size));
      rest.remove_prefix(5 + size);
    }
    ORDO_CHECK(rest.empty());
    return all;
  }

 private:
  static std::string value(const std::map<std::string, std::string>& map, const std::string& name) {
    const auto found = map.find(name);
    return found == map.end() ? "(none)" : found->second;
  }
};

class Http2Client {
 public:
  Http2Client() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_option* options = nullptr;
    nghttp2_option_new(&options);
    nghttp2_option_set_no_auto_window_update(options, 1);
    nghttp2_option_set_peer_max_concurrent_streams(options, 100'000);
    nghttp2_session_client_new2(&session_, callbacks, this, options);
    nghttp2_option_del(options);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
  }
  Http2Client(const Http2Client&) = delete;
  Http2Client& operator=(const Http2Client&) = delete;
  ~Http2Client() { nghttp2_session_del(session_); }

  nghttp2_session* session() { return session_; }

  std::int32_t request(const HeaderList& headers, std::string body, bool is_ended) {
    std::vector<nghttp2_nv> fields = {field(":authority", "localhost")};
    for (std::size_t i = 0; i < headers.size(); ++i)
      fields.push_back(field(headers[i].name, headers[i].value));
    auto source = std::make_unique<Source>(Source{std::move(body), is_ended});
    nghttp2_data_provider provider{};
    provider.source.ptr = source.get();
    provider.read_callback = read_source;
    const bool has_body = !source->text.empty() || !is_ended;
    const std::int32_t id = nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                                   has_body ? &provider : nullptr, nullptr);
    ORDO_CHECK(id > 0);
    sources_[id] = std::move(source);
    return id;
  }

  std::int32_t get(std::string_view path, std::string_view method = "GET") {
    return request(
        {
            {":method", method},
            {":scheme", "http"},
            {":path", path},
        },
        "", true);
  }

  // `body` is what is sent at first; is_ended: nothing follows.
  std::int32_t call(std::string_view path, std::string body, bool is_ended,
                    const HeaderList& more = {}) {
    HeaderList headers = {{":method", "POST"},
                          {":scheme", "http"},
                          {":path", path},
                          {"content-type", "application/grpc"},
                          {"te", "trailers"}};
    for (std::size_t i = 0; i < more.size(); ++i)
      headers.add(more[i].name, more[i].value);
    return request(headers, std::move(body), is_ended);
  }

  void send(std::int32_t id, std::string_view bytes, bool is_ended) {
    Source& source = *sources_.at(id);
    source.text.append(bytes);
    source.is_ended = is_ended;
    nghttp2_session_resume_data(session_, id);
  }
  void reset(std::int32_t id) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  }

  // What it has read, it gives room for, unless a test wants a slow one.
  bool is_reading = true;

  std::string take_output() {
    std::string bytes;
    const std::uint8_t* data = nullptr;
    for (ssize_t size = 0; (size = nghttp2_session_mem_send(session_, &data)) > 0;)
      bytes.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
    return bytes;
  }
  void receive(std::string_view bytes) {
    const ssize_t taken = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ORDO_CHECK(taken == static_cast<ssize_t>(bytes.size()));
  }

  Answer& answer(std::int32_t id) { return answers_[id]; }
  std::optional<std::uint32_t> goaway() const { return goaway_; }
  const std::string& goaway_words() const { return goaway_words_; }
  int goaway_count() const { return goaway_count_; }
  int ping_count() const { return ping_count_; }

 private:
  struct Source {
    std::string text;
    bool is_ended = false;
    std::size_t sent = 0;
  };

  static nghttp2_nv field(std::string_view name, std::string_view value) {
    return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
            reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(),
            value.size(), NGHTTP2_NV_FLAG_NONE};
  }
  static Http2Client& self(void* user) { return *static_cast<Http2Client*>(user); }

  static ssize_t read_source(nghttp2_session*, std::int32_t, std::uint8_t* buffer, std::size_t size,
                             std::uint32_t* flags, nghttp2_data_source* from, void*) {
    auto& source = *static_cast<Source*>(from->ptr);
    const std::size_t count = std::min(size, source.text.size() - source.sent);
    if (count == 0 && !source.is_ended) return NGHTTP2_ERR_DEFERRED;
    std::copy_n(source.text.data() + source.sent, count, reinterpret_cast<char*>(buffer));
    source.sent += count;
    if (source.is_ended && source.sent == source.text.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(count);
  }
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* user) {
    Answer& answer = self(user).answers_[frame->hd.stream_id];
    auto& map = answer.blocks == 0 ? answer.headers : answer.trailers;
    map[std::string(reinterpret_cast<const char*>(name), name_size)] =
        std::string(reinterpret_cast<const char*>(value), value_size);
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Http2Client& client = self(user);
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      ++client.goaway_count_;
      client.goaway_ = frame->goaway.error_code;
      if (frame->goaway.opaque_data_len > 0) {
        client.goaway_words_.assign(reinterpret_cast<const char*>(frame->goaway.opaque_data),
                                    frame->goaway.opaque_data_len);
      }
    }
    if (frame->hd.type == NGHTTP2_PING) ++client.ping_count_;
    if (frame->hd.stream_id == 0) return 0;
    Answer& answer = client.answers_[frame->hd.stream_id];
    if (frame->hd.type == NGHTTP2_HEADERS) ++answer.blocks;
    const bool has_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (has_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) answer.is_ended = true;
    return 0;
  }
  static int on_data(nghttp2_session* session, std::uint8_t, std::int32_t id,
                     const std::uint8_t* bytes, std::size_t size, void* user) {
    self(user).answers_[id].body.append(reinterpret_cast<const char*>(bytes), size);
    if (self(user).is_reading) nghttp2_session_consume(session, id, size);
    return 0;
  }
  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t code, void* user) {
    self(user).answers_[id].closed_with = code;
    return 0;
  }

  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, std::unique_ptr<Source>> sources_;
  std::map<std::int32_t, Answer> answers_;
  std::optional<std::uint32_t> goaway_;
  std::string goaway_words_;
  int goaway_count_ = 0;
  int ping_count_ = 0;
};

// A connection of ours, and what it needs.
class ConnectionRig {
 public:
  explicit ConnectionRig(http2::Limits given = {}, std::size_t budget_bytes = std::size_t{1} << 30)
      : limits(given),
        budget(budget_bytes) {
    mailbox->make_this_threads_own();
  }

  http2::Connection& connection() {
    if (!connection_) {
      routes_in_force_.emplace(routes);
      connection_ = std::make_unique<http2::Connection>(
          http2::SessionContext{.limits = limits,
                                .routes = *routes_in_force_,
                                .budget = budget,
                                .counters = counters,
                                .mailbox = mailbox,
                                .peer = std::make_shared<const std::string>("test:1"),
                                .output = output},
          store, now);
    }
    return *connection_;
  }
  void lose_connection() { connection_.reset(); }

  // Gives `bytes` in pieces of `piece_size`; true: all were wanted.
  bool give(std::string_view bytes, std::size_t piece_size = ~std::size_t{0}) {
    while (!bytes.empty()) {
      if (!connection().wants_input()) return false;
      // On the heap, so that a sanitizer sees a byte that is read behind the end.
      const std::vector<char> piece(
          bytes.begin(),
          bytes.begin() + static_cast<std::ptrdiff_t>(std::min(piece_size, bytes.size())));
      connection().receive({piece.data(), piece.size()}, now);
      bytes.remove_prefix(piece.size());
    }
    return true;
  }
  std::string take() { return taken_from(connection(), now); }
  void pass(std::chrono::nanoseconds time) {
    now += time;
    if (now >= connection().next_deadline()) connection().on_time(now);
  }

  http2::Limits limits;
  http2::Routes routes;
  http2::InputBudget budget;
  std::shared_ptr<http2::OutputBudget> output =
      std::make_shared<http2::OutputBudget>(~std::size_t{0});
  http2::SessionCounters counters;
  http2::BufferStore store;
  std::shared_ptr<http2::Mailbox> mailbox = std::make_shared<http2::Mailbox>([] {});
  TimePoint now{std::chrono::hours(1)};

 private:
  std::optional<http2::RouteSwitch> routes_in_force_;
  std::unique_ptr<http2::Connection> connection_;
};

class Http2Rig : public ConnectionRig {
 public:
  using ConnectionRig::ConnectionRig;

  // Until neither side has anything to say.
  void run(std::size_t piece_size = ~std::size_t{0}) {
    for (;;) {
      const std::string up = client.take_output();
      give(up, piece_size);
      const std::string down = take();
      client.receive(down);
      if (up.empty() && down.empty()) return;
    }
  }

  Http2Client client;
};

}  // namespace ordo::testing_support

#include "bench/wire/lean_connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>

#include "bench/wire/plan.h"

namespace ordo::bench {
namespace {

constexpr std::size_t kInputBytes = std::size_t{256} * 1024;
constexpr std::int32_t kWindowBytes = std::int32_t{64} << 20;
constexpr std::size_t kMessageHeadBytes = 5;

nghttp2_nv header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));  // It does not write.
  };
  return {bytes(name), bytes(value), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

// Whether there is something to do within the time.
bool await(int socket, short events, std::uint64_t wait_ns) {
  pollfd one = {socket, events, 0};
  const timespec wait = {static_cast<time_t>(wait_ns / 1'000'000'000),
                         static_cast<long>(wait_ns % 1'000'000'000)};
  return ::ppoll(&one, 1, &wait, nullptr) > 0;
}

int connect_to(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    give_up("cannot connect to port " + std::to_string(port));
  const int is_on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &is_on, sizeof(is_on));
  return socket;
}

}  // namespace

struct LeanConnection::Call {
  std::int32_t stream = 0;
  std::string output{};  // What was not sent yet, from `sent` on.
  std::size_t sent = 0;
  bool is_last = false;     // Nothing comes behind it.
  bool is_waiting = false;  // The library asks again when told to.
  std::string input{};      // The beginning of a message.
  std::string status{};
};

// What the library calls.
struct LeanCallbacks {
  using Call = LeanConnection::Call;

  static Call* call_of(nghttp2_session* library, std::int32_t stream) {
    return static_cast<Call*>(nghttp2_session_get_stream_user_data(library, stream));
  }

  // NOLINTNEXTLINE(readability-function-size): as the library calls it.
  static ssize_t read(nghttp2_session* /*library*/, std::int32_t /*stream*/, std::uint8_t* buffer,
                      std::size_t size_max, std::uint32_t* flags, nghttp2_data_source* source,
                      void* /*user*/) {
    Call& call = *static_cast<Call*>(source->ptr);
    const std::size_t size = std::min(size_max, call.output.size() - call.sent);
    if (size == 0 && !call.is_last) {
      call.is_waiting = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    std::memcpy(buffer, call.output.data() + call.sent, size);
    call.sent += size;
    if (call.sent == call.output.size()) {
      call.output.clear();
      call.sent = 0;
      if (call.is_last) *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return static_cast<ssize_t>(size);
  }

  // NOLINTNEXTLINE(readability-function-size): as the library calls it.
  static int on_header(nghttp2_session* library, const nghttp2_frame* frame,
                       const std::uint8_t* name, std::size_t name_size, const std::uint8_t* value,
                       std::size_t value_size, std::uint8_t /*flags*/, void* /*user*/) {
    const std::string_view text(reinterpret_cast<const char*>(name), name_size);
    Call* const call = call_of(library, frame->hd.stream_id);
    if (call != nullptr && (text == "grpc-status" || text == "grpc-message"))
      call->status.append(reinterpret_cast<const char*>(value), value_size);
    return 0;
  }

  // NOLINTNEXTLINE(readability-function-size): as the library calls it.
  static int on_data(nghttp2_session* library, std::uint8_t /*flags*/, std::int32_t stream,
                     const std::uint8_t* bytes, std::size_t size, void* user) {
    if (Call* const call = call_of(library, stream))
      static_cast<LeanConnection*>(user)->take(*call, {reinterpret_cast<const char*>(bytes), size});
    return 0;
  }

  static int on_close(nghttp2_session* library, std::int32_t stream, std::uint32_t code,
                      void* user) {
    const std::unique_ptr<Call> call(call_of(library, stream));
    if (call == nullptr) return 0;
    if (call->status != "0")
      give_up("a call ended with status " + call->status + ", code " + std::to_string(code));
    static_cast<LeanConnection*>(user)->events_.on_end(stream);
    return 0;
  }

  static nghttp2_session* make(LeanConnection& owner) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session* library = nullptr;
    if (nghttp2_session_client_new(&library, callbacks, &owner) != 0) give_up("no memory");
    nghttp2_session_callbacks_del(callbacks);
    return library;
  }
};

void LeanConnection::LibraryDeleter::operator()(nghttp2_session* session) const {
  nghttp2_session_del(session);
}

LeanConnection::LeanConnection(std::uint16_t port, Events events)
    : events_(std::move(events)),
      socket_(connect_to(port)),
      input_(new char[kInputBytes]) {
  library_.reset(LeanCallbacks::make(*this));
  const nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindowBytes};
  nghttp2_submit_settings(library_.get(), NGHTTP2_FLAG_NONE, &window, 1);
  nghttp2_session_set_local_window_size(library_.get(), NGHTTP2_FLAG_NONE, 0, kWindowBytes);
}

LeanConnection::~LeanConnection() {
  ::close(socket_);
}

std::int32_t LeanConnection::call(const char* path, std::string_view message) {
  return begin(path, message, true);
}

std::int32_t LeanConnection::open(const char* path, std::string_view message) {
  return begin(path, message, false);
}

std::int32_t LeanConnection::begin(const char* path, std::string_view message, bool is_last) {
  auto call = std::make_unique<Call>();
  add(*call, message);
  call->is_last = is_last;
  const std::array<nghttp2_nv, 6> headers = {
      header(":method", "POST"), header(":scheme", "http"),
      header(":path", path),     header(":authority", "localhost"),
      header("te", "trailers"),  header("content-type", "application/grpc")};
  nghttp2_data_provider provider{};
  provider.source.ptr = call.get();
  provider.read_callback = LeanCallbacks::read;
  const std::int32_t stream = nghttp2_submit_request(library_.get(), nullptr, headers.data(),
                                                     headers.size(), &provider, call.get());
  if (stream < 0) give_up("a call cannot begin");
  call->stream = stream;
  call.release();  // NOLINT(bugprone-unused-return-value): the library has it; on_close() frees it.
  return stream;
}

LeanConnection::Call& LeanConnection::call_of(std::int32_t stream) const {
  Call* const call = LeanCallbacks::call_of(library_.get(), stream);
  if (call == nullptr) give_up("the stream has ended");
  return *call;
}

void LeanConnection::add(Call& call, std::string_view message) {
  const auto size = static_cast<std::uint32_t>(message.size());
  const std::array<char, kMessageHeadBytes> head = {
      0, static_cast<char>(size >> 24), static_cast<char>(size >> 16), static_cast<char>(size >> 8),
      static_cast<char>(size)};
  call.output.append(head.data(), head.size()).append(message);
}

void LeanConnection::send(std::int32_t stream, std::string_view message) {
  Call& call = call_of(stream);
  add(call, message);
  if (std::exchange(call.is_waiting, false)) nghttp2_session_resume_data(library_.get(), stream);
}

void LeanConnection::half_close(std::int32_t stream) {
  Call& call = call_of(stream);
  call.is_last = true;
  if (std::exchange(call.is_waiting, false)) nghttp2_session_resume_data(library_.get(), stream);
}

// As much as the socket takes within the time.
void LeanConnection::write(std::uint64_t wait_ns) {
  for (;;) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(library_.get(), &bytes);
    if (size < 0) give_up("nothing can be sent");
    if (size == 0) break;
    output_.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
  if (output_.empty()) return;
  ssize_t sent = ::send(socket_, output_.data(), output_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno == EAGAIN && await(socket_, POLLOUT | POLLIN, wait_ns)) sent = 0;
  if (sent < 0 && errno != EAGAIN) give_up("the server has gone");
  output_.erase(0, static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
}

void LeanConnection::turn(std::uint64_t wait_ns) {
  write(wait_ns);
  if (!await(socket_, POLLIN, output_.empty() ? wait_ns : 0)) return;
  const ssize_t size = ::recv(socket_, input_.get(), kInputBytes, MSG_DONTWAIT);
  if (size == 0 || (size < 0 && errno != EAGAIN)) give_up("the server has gone");
  if (size < 0) return;
  if (nghttp2_session_mem_recv(library_.get(), reinterpret_cast<const std::uint8_t*>(input_.get()),
                               static_cast<std::size_t>(size)) < 0)
    give_up("what the server sent is not HTTP/2");
}

void LeanConnection::take(Call& call, std::string_view bytes) {
  const bool is_begun = !call.input.empty();
  if (is_begun) call.input.append(bytes);
  std::string_view rest = is_begun ? std::string_view(call.input) : bytes;
  while (rest.size() >= kMessageHeadBytes) {
    std::uint32_t size = 0;
    std::memcpy(&size, rest.data() + 1, sizeof(size));
    size = ntohl(size);
    if (rest.size() - kMessageHeadBytes < size) break;
    events_.on_message(call.stream, rest.substr(kMessageHeadBytes, size));
    rest.remove_prefix(kMessageHeadBytes + size);
  }
  if (is_begun) {
    call.input.erase(0, call.input.size() - rest.size());
  } else {
    call.input.assign(rest);
  }
}

}  // namespace ordo::bench

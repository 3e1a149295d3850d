// PushReceiver: an HTTP server that is pushed to, and answers as a test wants it to.
//
//   PushReceiver receiver([](const PushedRequest& request, PushPeer& peer) {
//     peer.answer(request.data == "bad" ? 503 : 200);
//   });
//   config.push = broker::PushConfig{.endpoint = receiver.url("/orders")};
//   ASSERT_TRUE(eventually([&] { return receiver.requests().size() == 3; }));
//
// Its port is its own from the start, but with Listens::later nobody listens there until listen().
//
// Threads: one for each connection; they call the script, side by side.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace ordo::testing_support {

inline std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<int, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<int>(i);
  std::string bytes;
  bytes.reserve(text.size());
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    const int digit = values[static_cast<unsigned char>(c)];
    if (digit < 0) break;
    group = group << 6 | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits & 255);
  }
  return bytes;
}

struct PushedRequest {
  std::string head;  // Request line and headers.
  std::string body;
  std::string data;  // Of a wrapped message; so are the others.
  std::string key;
  std::string id;
  int attempt = 0;  // 0: not said.

  static std::string text_field(const std::string& json, const std::string& name) {
    const std::string mark = "\"" + name + "\":\"";
    const std::size_t at = json.find(mark);
    if (at == std::string::npos) return {};
    const std::size_t begin = at + mark.size();
    return json.substr(begin, json.find('"', begin) - begin);
  }
  void read_fields() {
    data = from_base64(text_field(body, "data"));
    key = text_field(body, "orderingKey");
    id = text_field(body, "messageId");
    const std::string mark = "\"deliveryAttempt\":";
    if (const std::size_t at = body.find(mark); at != std::string::npos)
      attempt = std::stoi(body.substr(at + mark.size()));
  }
};

// Holds the answers of an endpoint back until a test lets them go.
class HeldAnswers {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [&] { return is_released_; });
  }
  void release() {
    const std::lock_guard lock(mutex_);
    is_released_ = true;
    released_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable released_;
  bool is_released_ = false;
};

// The connection that a request came by.
class PushPeer {
 public:
  explicit PushPeer(int socket) : socket_(socket) {}

  // False: the other side takes no more.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  void answer(int status) const {
    send("HTTP/1.1 " + std::to_string(status) + " Said\r\nContent-Length: 0\r\n\r\n");
  }
  // What comes after that is not read.
  void close() {
    is_closed_ = true;
    ::shutdown(socket_, SHUT_RDWR);
  }
  bool is_closed() const { return is_closed_; }

 private:
  const int socket_;
  bool is_closed_ = false;
};

class PushReceiver {
 public:
  using Script = std::function<void(const PushedRequest& request, PushPeer& peer)>;
  enum class Listens : std::uint8_t { at_once, later };

  explicit PushReceiver(Script script, Listens when = Listens::at_once)
      : script_(std::move(script)),
        listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    if (when == Listens::at_once) listen();
  }
  PushReceiver(const PushReceiver&) = delete;
  PushReceiver& operator=(const PushReceiver&) = delete;
  ~PushReceiver() { stop(); }

  void listen() {
    EXPECT_EQ(::listen(listener_, 128), 0);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  // Closes all connections; scripts that wait must have been let go.
  void stop() {
    if (listener_ < 0) return;
    ::shutdown(listener_, SHUT_RDWR);
    if (acceptor_.joinable()) acceptor_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const Line& line : lines_)
        ::shutdown(line.socket, SHUT_RDWR);
    }
    for (Line& line : lines_) {
      line.thread.join();
      ::close(line.socket);
    }
    ::close(listener_);
    listener_ = -1;
  }

  std::string url(const std::string& path = "/") const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  std::uint16_t port() const { return port_; }
  std::vector<PushedRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::size_t count() const { return requests().size(); }
  // What came of a key, in order.
  std::vector<std::string> data_of(const std::string& key) const {
    std::vector<std::string> data;
    for (const PushedRequest& request : requests()) {
      if (request.key == key) data.push_back(request.data);
    }
    return data;
  }
  std::size_t connection_count() const {
    const std::lock_guard lock(mutex_);
    return lines_.size();
  }
  // Requests with their script, now and at most at the same time.
  int busy_now() const { return busy_.load(); }
  int busy_max() const { return busy_max_.load(); }

 private:
  struct Line {
    int socket = -1;
    std::thread thread;
  };

  void accept_all() {
    for (;;) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (socket < 0) return;
      const std::lock_guard lock(mutex_);
      lines_.push_back({socket, std::thread([this, socket] { serve(socket); })});
    }
  }

  void serve(int socket) {
    PushPeer peer(socket);
    std::string input;
    while (!peer.is_closed()) {
      const std::size_t end = input.find("\r\n\r\n");
      std::size_t body_size = 0;
      if (end != std::string::npos) {
        const std::size_t at = input.find("Content-Length: ");
        if (at < end) body_size = std::stoul(input.substr(at + 16));
      }
      if (end == std::string::npos || input.size() < end + 4 + body_size) {
        std::array<char, 65'536> buffer;
        const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), 0);
        if (count <= 0) break;
        input.append(buffer.data(), static_cast<std::size_t>(count));
        continue;
      }
      PushedRequest request{input.substr(0, end), input.substr(end + 4, body_size), {}, {}, {}};
      request.read_fields();
      input.erase(0, end + 4 + body_size);
      run_script(request, peer);
    }
    ::shutdown(socket, SHUT_RDWR);
  }

  void run_script(const PushedRequest& request, PushPeer& peer) {
    const int busy = busy_.fetch_add(1) + 1;
    int most = busy_max_.load();
    while (most < busy && !busy_max_.compare_exchange_weak(most, busy)) {
    }
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    script_(request, peer);
    busy_.fetch_sub(1);
  }

  const Script script_;
  int listener_;
  std::uint16_t port_ = 0;
  std::thread acceptor_;
  std::atomic<int> busy_{0};
  std::atomic<int> busy_max_{0};
  mutable std::mutex mutex_;  // Guards all below.
  std::vector<PushedRequest> requests_;
  std::list<Line> lines_;
};

}  // namespace ordo::testing_support

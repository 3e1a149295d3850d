#include "ordo/adapters/push_http/post_connection.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

namespace ordo::push_http {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

// Heads of the kind "wait, there is more to come" before the real one.
constexpr int kInterimMax = 8;

bool is_accepted(unsigned status) {
  return status == 102 || status == 200 || status == 201 || status == 202 || status == 204;
}

}  // namespace

// What is done with the socket. An answer ends a step: what comes in of an earlier one, such as of
// a socket that was closed or a name that is still being looked up, finds another number and does
// nothing.
class PostConnection::Wire : public std::enable_shared_from_this<PostConnection::Wire> {
 public:
  Wire(asio::io_context& context, const PostLimits& limits, std::string host, std::uint16_t port)
      : limits_(limits),
        host_(std::move(host)),
        port_(port),
        resolver_(context),
        socket_(context),
        timer_(context),
        buffer_(limits.head_bytes_max + limits.body_bytes_max) {}

  void post(std::string request, std::chrono::nanoseconds time_max, Events events) {
    ++step_;
    request_ = std::move(request);
    events_ = std::move(events);
    was_used_ = socket_.is_open();
    interim_count_ = 0;
    error_code ignored;
    if (was_used_) socket_.cancel(ignored);  // It rested.
    wait(time_max, [this] { fail(PostOutcome::timed_out); });
    if (was_used_) {
      write();
    } else {
      look_up();
    }
  }

  void rest(std::chrono::nanoseconds time_max, std::function<void()> gone) {
    ++step_;
    const auto end = [this, gone = std::move(gone)] {
      close();
      gone();
    };
    wait(time_max, end);
    socket_.async_wait(Tcp::socket::wait_read,
                       [self = shared_from_this(), step = step_, end](error_code) {
                         if (step == self->step_) end();
                       });
  }

  void abort() {
    if (events_.answered) return fail(PostOutcome::aborted);
    free(false);
  }

  void drop() {
    events_ = {};
    close();
  }

 private:
  // Nobody hears of what was under way.
  void close() {
    ++step_;
    error_code ignored;
    timer_.cancel();
    resolver_.cancel();
    socket_.close(ignored);
  }

  // Calls `late` unless the step ends before.
  template <class Late>
  void wait(std::chrono::nanoseconds time_max, const Late& late) {
    timer_.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(time_max));
    timer_.async_wait([self = shared_from_this(), step = step_, late](error_code error) {
      if (!error && step == self->step_) late();
    });
  }

  // Addresses, and the name of this machine, need nobody to be asked.
  void look_up() {
    error_code error;
    const asio::ip::address address = asio::ip::make_address(host_, error);
    if (!error) return connect(std::vector<Tcp::endpoint>{{address, port_}});
    if (host_ == "localhost") {
      return connect(std::vector<Tcp::endpoint>{{asio::ip::address_v4::loopback(), port_},
                                                {asio::ip::address_v6::loopback(), port_}});
    }
    resolver_.async_resolve(host_, std::to_string(port_),
                            [self = shared_from_this(), step = step_](
                                error_code failed, const Tcp::resolver::results_type& found) {
                              if (step != self->step_) return;
                              if (failed) return self->fail(PostOutcome::unreachable);
                              std::vector<Tcp::endpoint> endpoints;
                              for (const auto& entry : found)
                                endpoints.push_back(entry.endpoint());
                              self->connect(std::move(endpoints));
                            });
  }

  void connect(std::vector<Tcp::endpoint> endpoints) {
    endpoints_ = std::move(endpoints);
    asio::async_connect(
        socket_, endpoints_,
        [self = shared_from_this(), step = step_](error_code error, const Tcp::endpoint&) {
          if (step != self->step_) return;
          if (error) return self->fail(PostOutcome::unreachable);
          error_code ignored;
          self->socket_.set_option(Tcp::no_delay(true), ignored);
          self->write();
        });
  }

  void write() {
    asio::async_write(socket_, asio::buffer(request_),
                      [self = shared_from_this(), step = step_](error_code error, std::size_t) {
                        if (step != self->step_) return;
                        if (error) return self->fail(self->broken());
                        self->read_head();
                      });
  }

  void read_head() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(limits_.head_bytes_max));
    parser_->body_limit(boost::none);  // How long it says it is does not change what its head says.
    http::async_read_header(
        socket_, buffer_, *parser_,
        [self = shared_from_this(), step = step_](error_code error, std::size_t count) {
          if (step != self->step_) return;
          if (error) return self->fail(count == 0 ? self->broken() : PostOutcome::broken);
          self->take_head();
        });
  }

  void take_head() {
    const unsigned status = parser_->get().result_int();
    const bool is_interim = status >= 100 && status < 200;
    if (is_interim && status != 101 && !is_accepted(status)) {
      if (++interim_count_ > kInterimMax) return fail(PostOutcome::broken);
      return read_head();
    }
    const bool may_follow = !is_interim && parser_->keep_alive();
    answer({is_accepted(status) ? PostOutcome::accepted : PostOutcome::refused, status});
    if (!may_follow) {
      free(false);
    } else if (parser_->is_done()) {
      free(buffer_.size() == 0);
    } else {
      read_rest();
    }
  }

  void read_rest() {
    if (parser_->content_length().value_or(0) > limits_.body_bytes_max) return free(false);
    parser_->body_limit(limits_.body_bytes_max);
    wait(limits_.body_time_max, [this] { free(false); });
    http::async_read(socket_, buffer_, *parser_,
                     [self = shared_from_this(), step = step_](error_code error, std::size_t) {
                       if (step != self->step_) return;
                       self->free(!error && self->buffer_.size() == 0);
                     });
  }

  PostOutcome broken() const { return was_used_ ? PostOutcome::stale : PostOutcome::broken; }

  void fail(PostOutcome outcome) {
    answer({outcome, 0});
    free(false);
  }

  void answer(const PostResult& result) {
    ++step_;
    timer_.cancel();
    if (const auto answered = std::exchange(events_.answered, {})) answered(result);
  }

  void free(bool is_usable) {
    if (is_usable) {
      ++step_;
      timer_.cancel();
      request_ = {};
      parser_.reset();
    } else {
      close();  // What is under way may still look at them.
    }
    if (const auto freed = std::exchange(events_.freed, {})) freed(is_usable);
  }

  const PostLimits limits_;
  const std::string host_;
  const std::uint16_t port_;
  Tcp::resolver resolver_;
  Tcp::socket socket_;
  asio::steady_timer timer_;
  std::uint64_t step_ = 0;
  std::string request_;
  std::vector<Tcp::endpoint> endpoints_;
  Events events_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::response_parser<http::string_body>> parser_;
  int interim_count_ = 0;
  bool was_used_ = false;
};

PostConnection::PostConnection(asio::io_context& context, const PostLimits& limits,
                               std::string host, std::uint16_t port)
    : wire_(std::make_shared<Wire>(context, limits, std::move(host), port)) {}

// NOLINTNEXTLINE(bugprone-exception-escape): what cannot be cancelled is a bug of ours.
PostConnection::~PostConnection() {
  wire_->drop();
}

void PostConnection::post(std::string request, std::chrono::nanoseconds time_max, Events events) {
  wire_->post(std::move(request), time_max, std::move(events));
}

void PostConnection::rest(std::chrono::nanoseconds time_max, std::function<void()> gone) {
  wire_->rest(time_max, std::move(gone));
}

void PostConnection::abort() {
  const std::shared_ptr<Wire> wire = wire_;  // Whoever hears of it may destroy this.
  wire->abort();
}

}  // namespace ordo::push_http

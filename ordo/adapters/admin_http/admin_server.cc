#include "ordo/adapters/admin_http/admin_server.h"

#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "ordo/core/host_check.h"
#include "ordo/core/log.h"
#include "ordo/runtime/threads.h"

namespace ordo::admin_http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

http::response<http::string_body> response_of(AdminReply reply, unsigned version, bool keep) {
  http::response<http::string_body> response(static_cast<http::status>(reply.status), version);
  response.set(http::field::content_type, reply.content_type);
  response.set(http::field::cache_control, "no-store");
  response.set("X-Content-Type-Options", "nosniff");
  response.keep_alive(keep);
  response.body() = std::move(reply.body);
  response.prepare_payload();
  return response;
}

}  // namespace

class AdminServer::Service {
 public:
  Service(AdminOptions options, Handler handler)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        acceptor_(context_),
        pause_(context_) {}

  Status start() {
    error_code error;
    const asio::ip::address address = asio::ip::make_address(options_.address, error);
    if (error) {
      return Error{ErrorCode::invalid_argument,
                   "'" + options_.address + "' is not a numeric address such as 127.0.0.1"};
    }
    const Tcp::endpoint endpoint(address, options_.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(Tcp::acceptor::max_listen_connections, error);
    if (error) {
      return Error{ErrorCode::unavailable, "cannot listen on " + options_.address + ":" +
                                               std::to_string(options_.port) + ": " +
                                               error.message()};
    }
    port_ = acceptor_.local_endpoint().port();
    accept();
    thread_ = Thread("ordo-admin", [this](const std::stop_token&) { context_.run(); });
    return {};
  }

  void stop() {
    context_.stop();
    thread_.join();
  }

  std::uint16_t port() const { return port_; }

 private:
  class Session;

  void accept() {
    acceptor_.async_accept([this](error_code error, Tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return accept_later();
      if (open_ < options_.connections_max) greet(std::move(socket));
      accept();
    });
  }

  // Out of descriptors, most likely: trying again at once would only burn the processor.
  void accept_later() {
    pause_.expires_after(std::chrono::milliseconds(100));
    pause_.async_wait([this](error_code error) {
      if (!error) accept();
    });
  }

  void greet(Tcp::socket socket);

  AdminReply answer(http::verb method, std::string_view host, std::string_view target) const {
    if (!is_own_host(host)) {
      return {.status = 421, .body = "this server answers to its address and to localhost only\n"};
    }
    if (method != http::verb::get && method != http::verb::head) {
      return {.status = 405, .body = "only GET and HEAD are answered here\n"};
    }
    try {
      return handler_(target.substr(0, target.find('?')));
    } catch (const std::exception& error) {
      return {.status = 500, .body = printable(error.what()) + "\n"};
    } catch (...) {
      return {.status = 500, .body = "something was thrown that is no std::exception\n"};
    }
  }

  const AdminOptions options_;
  const Handler handler_;
  std::uint16_t port_ = 0;
  asio::io_context context_{1};
  Tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::size_t open_ = 0;
  Thread thread_;
};

// One connection: reads a request, answers it, and again. Keeps itself alive while it waits.
class AdminServer::Service::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Service& service, Tcp::socket socket) : service_(service), stream_(std::move(socket)) {
    ++service_.open_;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { --service_.open_; }

  void read() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(service_.options_.header_bytes_max));
    parser_->body_limit(0);
    stream_.expires_after(service_.options_.idle_timeout);
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_read(error); });
  }

 private:
  void on_read(error_code error) {
    if (error == http::error::body_limit) {
      return write({.status = 413, .body = "a request here has no body\n"}, false);
    }
    if (error == http::error::header_limit) {
      return write({.status = 431, .body = "the request's headers are too long\n"}, false);
    }
    if (error && error.category() == make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message) {
      return write({.status = 400, .body = "not a request: " + error.message() + "\n"}, false);
    }
    if (error) return;  // Gone, or silent for too long.
    const auto& request = parser_->get();
    is_head_ = request.method() == http::verb::head;
    const auto host = request[http::field::host];
    const auto target = request.target();
    write(service_.answer(request.method(), {host.data(), host.size()},
                          {target.data(), target.size()}),
          request.keep_alive());
  }

  void write(AdminReply reply, bool keep) {
    response_ = response_of(std::move(reply), 11, keep);
    if (is_head_) response_.body().clear();  // The length stays what GET would say.
    stream_.expires_after(service_.options_.idle_timeout);
    http::async_write(stream_, response_,
                      [self = shared_from_this(), keep](error_code error, std::size_t) {
                        if (error) return;
                        if (keep) return self->read();
                        self->stream_.socket().shutdown(Tcp::socket::shutdown_send, error);
                      });
  }

  Service& service_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  bool is_head_ = false;
};

void AdminServer::Service::greet(Tcp::socket socket) {
  std::make_shared<Session>(*this, std::move(socket))->read();
}

AdminServer::AdminServer(AdminOptions options, Handler handler)
    : service_(std::make_unique<Service>(std::move(options), std::move(handler))) {}

AdminServer::~AdminServer() {
  service_->stop();
}

Status AdminServer::start() {
  return service_->start();
}

void AdminServer::stop() {
  service_->stop();
}

std::uint16_t AdminServer::port() const {
  return service_->port();
}

}  // namespace ordo::admin_http

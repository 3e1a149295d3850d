#include "ordo/adapters/sockets/io_loop.h"

#include <cerrno>
#include <latch>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <boost/asio/post.hpp>
#include <sys/eventfd.h>

#include "ordo/core/check.h"

namespace ordo::sockets {
namespace {

constexpr std::uint64_t kBellNumber = ~std::uint64_t{0};
// In a row, before Asio may look at its other work: new connections, the order to stop, timers.
constexpr int kRoundsMax = 32;

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): each thread's own.
thread_local const IoLoop* this_threads_loop = nullptr;

Error explain(const char* what) {
  return {ErrorCode::resource_exhausted,
          std::string(what) + ": " + std::system_category().message(errno)};
}

}  // namespace

IoLoop::IoLoop(std::string name, Owner& owner)
    : name_(std::move(name)),
      owner_(owner),
      work_(boost::asio::make_work_guard(context_)),
      ready_set_(context_) {}

// NOLINTNEXTLINE(bugprone-exception-escape): without memory to end a thread, the process ends.
IoLoop::~IoLoop() {
  end([] {});
}

Status IoLoop::start() {
  bell_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell_) return explain("eventfd");
  Descriptor set(::epoll_create1(EPOLL_CLOEXEC));
  if (!set) return explain("epoll_create1");
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;  // Rung again is ready again: nobody needs to read it.
  event.data.u64 = kBellNumber;
  if (::epoll_ctl(set.get(), EPOLL_CTL_ADD, bell_.get(), &event) != 0) return explain("epoll_ctl");
  boost::system::error_code error;
  ready_set_.assign(set.get(), error);
  if (error) return Error{ErrorCode::resource_exhausted, "epoll: " + error.message()};
  set.release();
  thread_ = Thread(name_, [this](const std::stop_token&) { run(); });
  return {};
}

void IoLoop::run() {
  this_threads_loop = this;
  wait_for_ready();
  context_.run();
}

bool IoLoop::is_this_thread() const {
  return this_threads_loop == this;
}

void IoLoop::call(const std::function<void()>& function) {
  std::latch done(1);
  boost::asio::post(context_, [&] {
    function();
    done.count_down();
  });
  done.wait();
}

void IoLoop::ring() noexcept {
  const std::uint64_t one = 1;
  // Full is rung as well.
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof(one));
}

void IoLoop::end(const std::function<void()>& last) {
  if (!thread_.joinable()) return;
  call([&] {
    last();
    context_.stop();
  });
  thread_.join();
}

bool IoLoop::watch(int socket, std::uint64_t number, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  return ::epoll_ctl(ready_set_.native_handle(), EPOLL_CTL_ADD, socket, &event) == 0;
}

void IoLoop::rewatch(int socket, std::uint64_t number, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  const int set = ::epoll_ctl(ready_set_.native_handle(), EPOLL_CTL_MOD, socket, &event);
  ORDO_CHECK(set == 0);
}

void IoLoop::wait_for_ready() {
  ready_set_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                        [this](const boost::system::error_code& error) {
                          if (error) return;
                          run_rounds();
                          wait_for_ready();
                        });
}

void IoLoop::run_rounds() {
  const TimePoint limit = system_clock().now() + kRoundsTimeMax;
  for (int round = 0; round < kRoundsMax; ++round) {
    if (round > 0 && system_clock().now() >= limit) return;
    const int count = ::epoll_wait(ready_set_.native_handle(), events_.data(), kEventsMax, 0);
    if (count <= 0) return;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events_[static_cast<std::size_t>(i)];
      if (event.data.u64 == kBellNumber) {
        owner_.on_bell();
      } else {
        owner_.on_ready(event.data.u64, event.events);
      }
    }
    owner_.end_round(limit);
    if (owner_.gives_way()) return;
  }
}

}  // namespace ordo::sockets

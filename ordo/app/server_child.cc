#include "ordo/app/server_child.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ordo/app/child_run.h"
#include "ordo/core/check.h"

namespace ordo::app {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr std::size_t kErrorBytesMax = std::size_t{1} << 20;
constexpr std::size_t kKeptBytes = std::size_t{1} << 20;

void set_nonblocking(const UniqueFd& fd) {
  ORDO_CHECK(::fcntl(fd.get(), F_SETFL, O_NONBLOCK) == 0);
}

bool would_block() {
  return errno == EINTR || errno == EAGAIN;
}

std::string first_line_of(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

bool ServerChild::start() {
  Pipe in = make_pipe();
  Pipe out = in.read_end ? make_pipe() : Pipe{};
  Pipe err = out.read_end ? make_pipe() : Pipe{};
  if (!err.read_end) {
    start_error_ = errno;
    return false;
  }
  std::vector<char*> argv;
  argv.reserve(words_.size() + 1);
  for (std::string& word : words_)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  start_error_ = settings_.spawner->start({.file = settings_.file.c_str(),
                                           .argv = argv.data(),
                                           .in = in.read_end.get(),
                                           .out = out.write_end.get(),
                                           .err = err.write_end.get()},
                                          pid_);
  if (start_error_ != 0) {
    pid_ = -1;
    return false;
  }
  in_ = std::move(in.write_end);
  out_ = std::move(out.read_end);
  err_ = std::move(err.read_end);
  set_nonblocking(in_);
  set_nonblocking(out_);
  set_nonblocking(err_);
  answers_.clear();
  taken_ = searched_ = 0;
  answered_ever_ = suspected_ = false;
  return true;
}

// Answers that come when nothing was asked.
bool ServerChild::chatters() {
  if (taken_ < answers_.size()) return true;
  pollfd out{out_.get(), POLLIN, 0};
  return ::poll(&out, 1, 0) > 0 && (out.revents & POLLIN) != 0;
}

ServerEnd ServerChild::ask(std::span<const Job> jobs, std::vector<ServerAnswer>& answers) {
  if (settings_.stop->requested()) return end_child(ServerEnd::stopped, SIGTERM);
  if (!running() && !start()) return ServerEnd::not_started;
  if (chatters()) return end_child(ServerEnd::chattered, SIGTERM);
  lines_.clear();
  written_ = 0;
  for (const Job& job : jobs) {
    lines_ += job.line;
    lines_ += settings_.separator;
  }
  const ServerEnd end = collect(jobs.size(), answers);
  if (lines_.capacity() > kKeptBytes) std::string().swap(lines_);
  if (end != ServerEnd::answered) return end;
  if (taken_ < answers_.size()) return end_child(ServerEnd::chattered, SIGTERM);
  answers_.clear();
  taken_ = searched_ = 0;
  if (answers_.capacity() > kKeptBytes) std::string().swap(answers_);
  return ServerEnd::answered;
}

ServerEnd ServerChild::collect(std::size_t count, std::vector<ServerAnswer>& answers) {
  TimePoint began = settings_.clock->now();
  std::size_t answered = 0;
  const auto restart_timers = [&](TimePoint now) {
    deadline_ = settings_.timeout ? now + *settings_.timeout : TimePoint::max();
    silence_ = answered_ever_ ? TimePoint::max() : now + settings_.flush_wait;
  };
  restart_timers(began);
  if (!write_lines()) in_.reset();
  while (true) {
    const std::size_t before = answered;
    ServerAnswer answer;
    while (answered < count && next_answer(answer.out)) {
      answer.err = std::exchange(errors_, {});
      answers.push_back(std::move(answer));
      answer = {};
      ++answered;
      answered_ever_ = true;
    }
    if (answered > before) {
      if (suspected_) return end_child(ServerEnd::never_flushes, SIGTERM);
      const TimePoint now = settings_.clock->now();
      const auto share = (now - began) / static_cast<std::int64_t>(answered - before);
      for (std::size_t i = 1; i <= answered - before; ++i)
        answers.end()[-std::ptrdiff_t(i)].runtime = share;
      began = now;
      restart_timers(now);
    }
    if (answered == count) return ServerEnd::answered;
    if (answers_.size() - taken_ > settings_.answer_bytes_max) {
      return end_child(ServerEnd::overflowed, SIGTERM);
    }
    if (const auto end = wait_and_read()) return *end;
  }
}

std::optional<ServerEnd> ServerChild::wait_and_read() {
  std::array<pollfd, 4> fds{{{out_.get(), POLLIN, 0},
                             {err_.get(), POLLIN, 0},
                             {written_ < lines_.size() ? in_.get() : -1, POLLOUT, 0},
                             {settings_.stop->fd(), POLLIN, 0}}};
  const TimePoint wake = std::min(deadline_, silence_);
  const int timeout = wake == TimePoint::max() ? -1 : poll_timeout(wake, settings_.clock->now());
  const int ready = ::poll(fds.data(), fds.size(), timeout);
  ORDO_CHECK(ready >= 0 || errno == EINTR);
  if (ready < 0) return std::nullopt;
  if (fds[3].revents != 0) return end_child(ServerEnd::stopped, SIGTERM);
  if (fds[1].revents != 0) read_errors();
  if (fds[2].revents != 0 && !write_lines()) in_.reset();
  if (fds[0].revents != 0) {
    if (read_answers()) return std::nullopt;
    return end_child(ServerEnd::died, 0);  // It closed its output: there will be no answer.
  }
  if (ready > 0) return std::nullopt;
  if (settings_.clock->now() >= deadline_) return end_child(ServerEnd::timed_out, SIGTERM);
  return on_silence();
}

std::optional<ServerEnd> ServerChild::on_silence() {
  const TimePoint now = settings_.clock->now();
  if (now < silence_) return std::nullopt;
  silence_ = now + settings_.flush_wait;
  // What it said before it began to wait may have come after our look.
  int unread = 0;
  if (!suspected_ && waits_for_input() && ::ioctl(out_.get(), FIONREAD, &unread) == 0 &&
      unread == 0) {
    suspected_ = true;
    in_.reset();
  }
  return std::nullopt;
}

// True when the child has taken everything and is blocked reading its standard input. One with
// several threads may be at work in another of them.
bool ServerChild::waits_for_input() const {
  int unread = 0;
  if (written_ < lines_.size() || ::ioctl(in_.get(), FIONREAD, &unread) != 0 || unread > 0) {
    return false;
  }
  const std::string folder = "/proc/" + std::to_string(pid_);
  struct stat tasks {};
  if (::stat((folder + "/task").c_str(), &tasks) != 0 || tasks.st_nlink > 3) return false;
  const std::string call = first_line_of(folder + "/syscall");
  if (call.starts_with("0 0x0 ")) return true;  // read(0, ...)
  return call.empty() && first_line_of(folder + "/wchan").find("pipe_read") != std::string::npos;
}

bool ServerChild::write_lines() {
  while (written_ < lines_.size()) {
    if (!in_) return false;
    const ssize_t put = ::write(in_.get(), lines_.data() + written_, lines_.size() - written_);
    if (put < 0) return would_block();
    written_ += static_cast<std::size_t>(put);
  }
  return true;
}

bool ServerChild::read_answers() {
  const std::size_t size = answers_.size();
  answers_.resize(size + kReadBytes);
  const ssize_t got = ::read(out_.get(), answers_.data() + size, kReadBytes);
  answers_.resize(size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return got > 0 || (got < 0 && would_block());
}

void ServerChild::read_errors() {
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(err_.get(), buffer.data(), buffer.size());
  if (got > 0) {
    errors_.append(buffer.data(), static_cast<std::size_t>(got));
    if (errors_.size() > kErrorBytesMax) errors_.erase(0, errors_.size() - kErrorBytesMax / 2);
  } else if (got == 0 || !would_block()) {
    err_.reset();
  }
}

bool ServerChild::next_answer(std::string& answer) {
  if (searched_ == answers_.size()) return false;
  const void* hit =
      std::memchr(answers_.data() + searched_, settings_.separator, answers_.size() - searched_);
  if (hit == nullptr) {
    if (taken_ > 0) {
      answers_.erase(0, taken_);
      taken_ = 0;
    }
    searched_ = answers_.size();
    return false;
  }
  const auto end = static_cast<std::size_t>(static_cast<const char*>(hit) - answers_.data()) + 1;
  answer.assign(answers_, taken_, end - taken_);
  taken_ = searched_ = end;
  return true;
}

void ServerChild::drain_errors() {
  while (err_) {
    pollfd err{err_.get(), POLLIN, 0};
    if (::poll(&err, 1, 0) <= 0) return;
    read_errors();
  }
}

// Ends the child with `signal` (0: it is ending by itself), after the grace by force.
ServerEnd ServerChild::end_child(ServerEnd end, int signal) {
  in_.reset();
  if (!running()) return end;
  if (signal != 0) ::kill(-pid_, signal);
  await_exit(settings_.kill_grace);
  drain_errors();
  kill_and_reap();
  return end;
}

std::string ServerChild::finish() {
  in_.reset();
  if (running() && !await_exit(settings_.kill_grace)) {
    ::kill(-pid_, SIGTERM);
    await_exit(settings_.kill_grace);
  }
  drain_errors();
  kill_and_reap();
  return std::exchange(errors_, {});
}

bool ServerChild::await_exit(std::chrono::nanoseconds time) {
  const UniqueFd handle = exit_handle(pid_);
  const TimePoint deadline = settings_.clock->now() + time;
  bool discard = true;
  while (handle && !settings_.stop->forced() && settings_.clock->now() < deadline) {
    std::array<pollfd, 4> fds{{{handle.get(), POLLIN, 0},
                               {err_.get(), POLLIN, 0},
                               {discard ? out_.get() : -1, POLLIN, 0},
                               {settings_.stop->force_fd(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), poll_timeout(deadline, settings_.clock->now())) < 0)
      continue;
    if (fds[1].revents != 0) read_errors();
    if (fds[2].revents != 0) {  // Nobody asks for this any more; the pipe must not fill up.
      discard = read_answers();
      answers_.clear();
    }
    if (fds[0].revents != 0) return true;
  }
  return false;
}

void ServerChild::kill_and_reap() {
  in_.reset();
  out_.reset();
  err_.reset();
  if (!running()) return;
  ::kill(-pid_, SIGKILL);  // Whoever of its group is left. It is not reaped, so the number is its.
  pid_t got = 0;
  do {
    got = ::waitpid(pid_, &wait_status_, 0);
  } while (got < 0 && errno == EINTR);
  ORDO_CHECK(got == pid_);
  pid_ = -1;
}

}  // namespace ordo::app

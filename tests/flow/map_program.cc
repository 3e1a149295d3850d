#include "map_program.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ordo/app/spawn.h"
#include "ordo/core/check.h"
#include "ordo/core/clock.h"

namespace ordo::flow {
namespace {

constexpr int kPatienceMilliseconds = 60'000;

// Appends what can be read. False at the end.
bool read_some(app::UniqueFd& fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) fd.reset();
  return static_cast<bool>(fd);
}

bool await_input(const app::UniqueFd& fd) {
  pollfd wait{fd.get(), POLLIN, 0};
  return ::poll(&wait, 1, kPatienceMilliseconds) > 0;
}

std::string take_line(app::UniqueFd& fd, std::string& buffer) {
  while (buffer.find('\n') == std::string::npos) {
    if (fd && !await_input(fd)) {
      ADD_FAILURE() << "a line is awaited and does not come";
      fd.reset();
    }
    if (!fd || !read_some(fd, buffer)) break;
  }
  const std::size_t end = buffer.find('\n');
  const std::string line = buffer.substr(0, end);
  buffer.erase(0, end == std::string::npos ? end : end + 1);
  return line;
}

}  // namespace

Program::Program(const std::vector<std::string>& arguments, int err) {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGINT, SIG_DFL);  // Ignored, and so by children too, where a script runs us with `&`.
  app::Pipe in = app::make_pipe();
  app::Pipe out = app::make_pipe();
  app::Pipe errors = app::make_pipe();
  std::vector<std::string> words = arguments;
  std::string name = "ordo";
  std::vector<char*> argv{name.data()};
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  sigset_t none;
  sigemptyset(&none);
  const app::Spawner spawner(none);
  ORDO_CHECK(spawner.start({.file = ORDO_PROGRAM,
                            .argv = argv.data(),
                            .in = in.read_end.get(),
                            .out = out.write_end.get(),
                            .err = err >= 0 ? err : errors.write_end.get()},
                           pid_) == 0);
  in_ = std::move(in.write_end);
  out_ = std::move(out.read_end);
  err_ = std::move(errors.read_end);
  ORDO_CHECK(::fcntl(in_.get(), F_SETFL, O_NONBLOCK) == 0);
}

Program::~Program() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Program::write(std::string_view text) {
  while (!text.empty()) {
    pollfd wait{in_.get(), POLLOUT, 0};
    ORDO_CHECK(::poll(&wait, 1, kPatienceMilliseconds) > 0);
    const ssize_t put = ::write(in_.get(), text.data(), text.size());
    if (put < 0 && errno == EPIPE) return;
    if (put > 0) text.remove_prefix(static_cast<std::size_t>(put));
  }
}

std::string Program::read_line() {
  return take_line(out_, buffer_);
}

Finished Program::finish(std::string_view input) {
  Finished end;
  end.out = std::move(buffer_);
  if (input.empty()) in_.reset();
  while (out_ || err_) {
    std::array<pollfd, 3> fds{
        {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}, {in_.get(), POLLOUT, 0}}};
    if (::poll(fds.data(), fds.size(), kPatienceMilliseconds) <= 0) {
      ADD_FAILURE() << "ordo does not end; it wrote: " << end.out.substr(0, 2000) << end.err;
      ::kill(pid_, SIGKILL);
    }
    if (fds[0].revents != 0) read_some(out_, end.out);
    if (fds[1].revents != 0) read_some(err_, end.err);
    if (fds[2].revents != 0) {
      const ssize_t put = ::write(in_.get(), input.data(), input.size());
      if (put > 0) input.remove_prefix(static_cast<std::size_t>(put));
      if (input.empty() || (put < 0 && errno == EPIPE)) in_.reset();
    }
  }
  int status = 0;
  rusage usage{};
  ORDO_CHECK(::wait4(pid_, &status, 0, &usage) == pid_);
  pid_ = -1;
  end.status = WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
  end.peak_kilobytes = usage.ru_maxrss;
  return end;
}

Finished run_ordo(const std::vector<std::string>& arguments, std::string_view input) {
  return Program(arguments).finish(input);
}

Folder::Folder() {
  std::string pattern = testing::TempDir() + "ordo-map.XXXXXX";
  ORDO_CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

Folder::~Folder() {
  std::filesystem::remove_all(path_);
}

std::string Folder::read(const std::string& name) const {
  std::ifstream in(file(name), std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void Folder::write(const std::string& name, const std::string& text) const {
  std::ofstream(file(name), std::ios::binary) << text;
}

std::string Folder::fifo(const std::string& name) const {
  ORDO_CHECK(::mkfifo(file(name).c_str(), 0600) == 0);
  return file(name);
}

// Also open for writing, so that it has no end when one writer closes it.
FifoReader::FifoReader(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
  ORDO_CHECK(fd_);
}

std::string FifoReader::read_line() {
  return take_line(fd_, buffer_);
}

std::string numbers(int count, int first) {
  std::string text;
  for (int i = first; i < first + count; ++i)
    text += std::to_string(i) + '\n';
  return text;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

bool is_gone(const std::string& pid) {
  using namespace std::chrono_literals;
  const TimePoint deadline = system_clock().now() + 10s;
  const auto number = static_cast<pid_t>(std::stoi(pid));
  while (::kill(number, 0) == 0) {
    if (system_clock().now() > deadline) return false;
    std::this_thread::yield();
  }
  return errno == ESRCH;
}

}  // namespace ordo::flow

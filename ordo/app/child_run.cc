#include "ordo/app/child_run.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <poll.h>

#include <sys/wait.h>

#include "ordo/core/check.h"

namespace ordo::app {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
// After SIGKILL only a process that left the group can still hold the output.
constexpr std::chrono::nanoseconds kAfterKill = std::chrono::seconds(1);

class Run {
 public:
  Run(const ChildLimits& limits, const StopSignal& stop, const Clock& clock)
      : limits_(limits),
        stop_(stop),
        clock_(clock) {}

  ChildRun operator()(const Spawner& spawner, const ChildCommand& command);

 private:
  enum class Phase { running, terminating, killed, abandoned };

  bool start(const Spawner& spawner, const ChildCommand& command);
  void not_started(int error);
  void pump();
  void wait_for_exit();
  void poll_once(UniqueFd& extra);
  void act_on_time();
  void read_from(UniqueFd& pipe, std::string& text);
  void write_input();
  void end_early(Ending ending);
  void kill_now();
  void reap();

  const ChildLimits& limits_;
  const StopSignal& stop_;
  const Clock& clock_;
  ChildRun run_;
  Phase phase_ = Phase::running;
  TimePoint deadline_ = TimePoint::max();  // Of the phase.
  pid_t pid_ = -1;
  bool reaped_ = false;
  bool exited_ = false;  // Known without reaping.
  UniqueFd in_, out_, err_;
  std::string_view input_;
};

ChildRun Run::operator()(const Spawner& spawner, const ChildCommand& command) {
  if (start(spawner, command)) {
    pump();
    if (phase_ != Phase::abandoned) wait_for_exit();
    reap();
  }
  return std::move(run_);
}

void Run::not_started(int error) {
  run_.ending = Ending::not_started;
  run_.code = error;
  run_.message = std::string("the command could not be started: ") + ::strerrordesc_np(error);
  if (error == EMFILE) run_.message += "; use fewer --workers or raise 'ulimit -n'";
  if (error == EAGAIN) run_.message += "; use fewer --workers or raise 'ulimit -u'";
  if (error == E2BIG) run_.message += "; give the line to COMMAND with --stdin or --server";
}

bool Run::start(const Spawner& spawner, const ChildCommand& command) {
  Pipe out = make_pipe();
  Pipe err = out.read_end ? make_pipe() : Pipe{};
  Pipe in = err.read_end && command.input ? make_pipe() : Pipe{};
  if (!err.read_end || (command.input && !in.read_end)) {
    not_started(errno);
    return false;
  }
  const int error = spawner.start({.file = command.file,
                                   .argv = command.argv,
                                   .in = in.read_end.get(),
                                   .out = out.write_end.get(),
                                   .err = err.write_end.get(),
                                   .environment = command.environment},
                                  pid_);
  if (error != 0) {
    not_started(error);
    return false;
  }
  out_ = std::move(out.read_end);
  err_ = std::move(err.read_end);
  if (command.input) {
    input_ = *command.input;
    in_ = std::move(in.write_end);
    ORDO_CHECK(::fcntl(in_.get(), F_SETFL, O_NONBLOCK) == 0);
    if (input_.empty()) in_.reset();
  }
  if (limits_.timeout) deadline_ = clock_.now() + *limits_.timeout;
  return true;
}

// Until both outputs are closed by all who hold them.
void Run::pump() {
  UniqueFd none;
  while ((out_ || err_) && phase_ != Phase::abandoned)
    poll_once(none);
  in_.reset();
}

// The child closed its output; most often it is just ending.
void Run::wait_for_exit() {
  int status = 0;
  if (phase_ == Phase::running && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    reaped_ = true;
    if (run_.ending == Ending::succeeded) run_.ending = ending_of(status, run_.code);
    return;
  }
  UniqueFd handle = exit_handle(pid_);
  if (!handle) return;  // No descriptor left: reap() waits without a deadline.
  while (!exited_ && phase_ != Phase::abandoned)
    poll_once(handle);
}

void Run::poll_once(UniqueFd& extra) {
  const bool calm = phase_ == Phase::running;
  const int stop_fd = calm ? stop_.fd() : phase_ == Phase::terminating ? stop_.force_fd() : -1;
  std::array<pollfd, 5> fds{{{out_.get(), POLLIN, 0},
                             {err_.get(), POLLIN, 0},
                             {in_.get(), POLLOUT, 0},
                             {extra.get(), POLLIN, 0},
                             {stop_fd, POLLIN, 0}}};
  const int timeout = deadline_ == TimePoint::max() ? -1 : poll_timeout(deadline_, clock_.now());
  const int ready = ::poll(fds.data(), fds.size(), timeout);
  ORDO_CHECK(ready >= 0 || errno == EINTR);
  if (ready < 0) return;
  if (fds[0].revents != 0) read_from(out_, run_.out);
  if (fds[1].revents != 0) read_from(err_, run_.err);
  if (fds[2].revents != 0) write_input();
  if (fds[3].revents != 0) exited_ = true;
  if (fds[4].revents != 0) {
    if (calm) {
      end_early(Ending::cancelled);
    } else {
      kill_now();
    }
  }
  act_on_time();
}

void Run::act_on_time() {
  if (deadline_ == TimePoint::max() || clock_.now() < deadline_) return;
  switch (phase_) {
    case Phase::running:
      end_early(Ending::timed_out);
      break;
    case Phase::terminating:
      kill_now();
      break;
    case Phase::killed:
      phase_ = Phase::abandoned;
      deadline_ = TimePoint::max();
      break;
    case Phase::abandoned:
      break;
  }
}

void Run::read_from(UniqueFd& pipe, std::string& text) {
  thread_local std::array<char, kReadBytes> buffer;
  const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    pipe.reset();
    return;
  }
  const std::size_t room = limits_.output_bytes_max - text.size();
  text.append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
  if (static_cast<std::size_t>(got) > room && phase_ == Phase::running) {
    end_early(Ending::overflowed);
    run_.message = "more than " + std::to_string(limits_.output_bytes_max) +
                   " bytes of output; raise the limit with --max-output";
  }
}

void Run::write_input() {
  const ssize_t put = ::write(in_.get(), input_.data(), input_.size());
  if (put < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (put < 0) {  // It does not want the rest; its own ending tells whether that is well.
    in_.reset();
    return;
  }
  input_.remove_prefix(static_cast<std::size_t>(put));
  if (input_.empty()) in_.reset();
}

void Run::end_early(Ending ending) {
  run_.ending = ending;
  phase_ = Phase::terminating;
  in_.reset();
  if (stop_.forced()) {
    kill_now();
    return;
  }
  ::kill(-pid_, SIGTERM);
  ::kill(-pid_, SIGCONT);
  deadline_ = clock_.now() + limits_.kill_grace;
}

void Run::kill_now() {
  ::kill(-pid_, SIGKILL);
  phase_ = Phase::killed;
  deadline_ = clock_.now() + kAfterKill;
}

// When the run was ended early the leader may be gone while others of its group are not.
void Run::reap() {
  out_.reset();
  err_.reset();
  if (reaped_) return;
  if (phase_ != Phase::running) ::kill(-pid_, SIGKILL);
  int status = 0;
  pid_t got = 0;
  do {
    got = ::waitpid(pid_, &status, 0);
  } while (got < 0 && errno == EINTR);
  ORDO_CHECK(got == pid_);
  if (run_.ending == Ending::succeeded) run_.ending = ending_of(status, run_.code);
}

}  // namespace

ChildRun run_child(const Spawner& spawner, const ChildCommand& command, const ChildLimits& limits,
                   const StopSignal& stop, const Clock& clock) {
  return Run(limits, stop, clock)(spawner, command);
}

Ending ending_of(int wait_status, int& code) {
  if (WIFSIGNALED(wait_status)) {
    code = WTERMSIG(wait_status);
    return Ending::signaled;
  }
  code = WEXITSTATUS(wait_status);
  return code == 0 ? Ending::succeeded : Ending::exited;
}

int poll_timeout(TimePoint deadline, TimePoint now) {
  if (deadline == TimePoint::max()) return -1;
  if (deadline <= now) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  return static_cast<int>(std::min<std::int64_t>(left, std::numeric_limits<int>::max()));
}

}  // namespace ordo::app

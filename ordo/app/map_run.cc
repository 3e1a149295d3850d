#include "ordo/app/map_run.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "ordo/app/child_run.h"
#include "ordo/core/check.h"
#include "ordo/core/hash.h"

namespace ordo::app {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kBytesMax = std::uint64_t{256} << 20;
constexpr int kDrawMilliseconds = 100;

DeliveryParts with_hook(DeliveryParts parts, std::function<void()> hook) {
  parts.on_released = std::move(hook);
  return parts;
}

}  // namespace

MapRun::MapRun(const MapSetup& setup, DeliveryParts parts)
    : setup_(setup),
      window_(setup.options.window),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      signal_(::signalfd(-1, &setup.signals, SFD_CLOEXEC | SFD_NONBLOCK)),
      reader_(setup.input, {.separator = setup.options.null_separated ? '\0' : '\n',
                            .line_bytes_max = setup.options.line_bytes_max}),
      delivery_(with_hook(std::move(parts), [this] { wake_if_waiting(); }), setup.verdict),
      wake_at_(kNever),
      began_(setup.clock.now()) {
  ORDO_CHECK(wake_ && signal_);
  struct stat info {};
  if (::fstat(setup.input, &info) == 0 && S_ISREG(info.st_mode)) {
    const off_t begin = ::lseek(setup.input, 0, SEEK_CUR);
    if (begin >= 0 && info.st_size > begin) {
      input_bytes_ = static_cast<std::uint64_t>(info.st_size - begin);
    }
  }
  pool_ = make_pool();
}

std::unique_ptr<MapRun::JobPool> MapRun::make_pool() {
  const MapOptions& options = setup_.options;
  PoolOptions<Batch> pool;
  pool.workers = options.workers;
  if (options.autoscale_max) {
    pool.autoscale = Autoscale{.min_workers = options.workers,
                               .max_workers = *options.autoscale_max,
                               .scale_up_cooldown = std::chrono::milliseconds(100),
                               .scale_down_cooldown = std::chrono::seconds(1),
                               .scale_down_after = std::chrono::seconds(5),
                               .check_interval = std::chrono::milliseconds(50)};
  }
  pool.preserve_order = options.ordered;
  // The window is kept by has_room(); the pool has room for one more, so that it never refuses.
  pool.order_buffer_size = window_ + 1;
  if (setup_.key != nullptr) pool.partition_key = [](const Batch& batch) { return batch.lane; };
  pool.on_error = [this](const Batch& batch, const std::exception_ptr&) {
    delivery_.lose(batch,
                   "a job could not be handled, most likely for lack of memory; use a "
                   "smaller --window or fewer --workers");
  };
  return std::make_unique<JobPool>(
      [this](const Batch& batch) { return setup_.runner.run(batch); },
      [this](BatchResult&& results) { delivery_.take(std::move(results)); }, std::move(pool));
}

void MapRun::go() {
  while (!finished()) {
    admit();
    if (!finished()) wait();
  }
  pool_->close();
  pool_->wait();
  elapsed_ = setup_.clock.now() - began_;
  pool_stats_ = pool_->stats();
  pool_.reset();
  setup_.progress.hide();
}

bool MapRun::finished() const {
  if (delivery_.released_lines() < admitted_lines_) return false;
  return setup_.verdict.stopped() || (input_ended_ && ready_.empty());
}

bool MapRun::has_room() const {
  const std::uint64_t lines = admitted_lines_ - delivery_.released_lines();
  const std::uint64_t bytes = admitted_bytes_ - delivery_.released_bytes();
  return lines < window_ && (lines == 0 || bytes < kBytesMax);
}

void MapRun::admit() {
  if (setup_.options.server) {
    batcher_.set_size(
        Batcher::size_for(setup_.runner.line_cost(), window_, setup_.options.workers));
  }
  wants_input_ = false;
  while (!input_ended_ && !setup_.verdict.stopped() && has_room()) {
    std::string_view line;
    const LineReader::Next next = reader_.next(line);
    if (next == LineReader::Next::more) {
      wants_input_ = true;
      break;
    }
    if (next == LineReader::Next::end) {
      end_of_input();
    } else if (!take_line(line, next == LineReader::Next::cut)) {
      break;
    }
  }
  batcher_.flush(ready_);
  push_ready();
}

// Returns false when the run is to end.
bool MapRun::take_line(std::string_view line, bool cut) {
  Job job;
  job.number = ++read_lines_;
  if (setup_.past != nullptr) job.hash = hash_bytes(line);
  if (is_done_before(job)) {
    ++skipped_;
    return true;
  }
  if (setup_.verdict.stopped()) return false;
  std::uint64_t lane = 0;
  if (setup_.key != nullptr) {
    const auto key = setup_.key->of(line);
    // A line without key is free: its own number makes a lane nobody else is in.
    lane = key ? hash_bytes(*key) : hash_bytes("line without key", job.number);
  }
  job.line = line;
  job.cut = cut;
  ++admitted_lines_;
  admitted_bytes_ += line.size();
  batcher_.add(std::move(job), lane, ready_);
  if (ready_.size() >= 16) push_ready();
  return true;
}

bool MapRun::is_done_before(const Job& job) {
  if (setup_.past == nullptr) return false;
  switch (setup_.past->past(job.number, job.hash)) {
    case Journal::Past::unknown:
      return false;
    case Journal::Past::done:
      return true;
    case Journal::Past::changed:
      break;
  }
  setup_.verdict.stop(Verdict::Reason::error,
                      "the input is not the one the journal was written for: line " +
                          std::to_string(job.number) +
                          " has changed; give the same input, or begin again with a new journal");
  return false;
}

void MapRun::end_of_input() {
  input_ended_ = true;
  if (setup_.past == nullptr || read_lines_ >= setup_.past->last_number()) return;
  setup_.verdict.stop(Verdict::Reason::error,
                      "the input is not the one the journal was written for: it has " +
                          std::to_string(read_lines_) + " lines, and line " +
                          std::to_string(setup_.past->last_number()) +
                          " is recorded; give the same input, or begin again with a new journal");
}

void MapRun::push_ready() {
  while (!ready_.empty()) {
    if (setup_.verdict.stopped()) {  // Not begun, and not going to be.
      for (const Batch& batch : ready_) {
        admitted_lines_ -= batch.jobs.size();
        left_over_ += batch.jobs.size();
        for (const Job& job : batch.jobs)
          admitted_bytes_ -= job.line.size();
      }
      ready_.clear();
      return;
    }
    if (!pool_->try_push(std::move(ready_.front()))) return;
    ready_.pop_front();
  }
}

// How many lines must be released before there is something to do. Not every single one: a part of
// the window is awaited, but all workers keep something to do meanwhile.
std::uint64_t MapRun::wake_target() const {
  if (input_ended_ || setup_.verdict.stopped()) return admitted_lines_;
  const std::size_t workers = setup_.options.autoscale_max.value_or(setup_.options.workers);
  const std::size_t spare = window_ > 2 * workers ? (window_ - workers) / 2 : 1;
  return delivery_.released_lines() + std::max<std::size_t>(1, spare);
}

void MapRun::wait() {
  const bool reading = wants_input_ && !input_ended_ && !setup_.verdict.stopped();
  const std::uint64_t target = reading ? kNever : std::min(wake_target(), admitted_lines_);
  wake_at_.store(target, std::memory_order_seq_cst);
  std::array<pollfd, 3> fds{{{signal_.get(), POLLIN, 0},
                             {wake_.get(), POLLIN, 0},
                             {reading ? setup_.input : -1, POLLIN, 0}}};
  int timeout = setup_.progress.active() ? kDrawMilliseconds : -1;
  if (!ready_.empty()) timeout = 1;  // The pool was just about to free a place.
  if (delivery_.released_lines() >= target) timeout = 0;
  const int count = ::poll(fds.data(), fds.size(), timeout);
  wake_at_.store(kNever, std::memory_order_seq_cst);
  ORDO_CHECK(count >= 0 || errno == EINTR);
  draw_progress();
  if (count <= 0) return;
  if (fds[0].revents != 0) read_signal();
  if (fds[1].revents != 0) {
    eventfd_t value = 0;
    ::eventfd_read(wake_.get(), &value);
  }
  if (fds[2].revents == 0 || setup_.verdict.stopped()) return;
  if (const int error = reader_.fill(); error != 0) {
    setup_.verdict.stop(Verdict::Reason::error,
                        std::string("cannot read the input: ") + ::strerrordesc_np(error));
  }
}

void MapRun::wake_if_waiting() {
  if (delivery_.released_lines() >= wake_at_.load(std::memory_order_seq_cst) ||
      setup_.verdict.stopped()) {
    ::eventfd_write(wake_.get(), 1);
  }
}

void MapRun::read_signal() {
  signalfd_siginfo info{};
  while (::read(signal_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    setup_.verdict.interrupt(static_cast<int>(info.ssi_signo));
  }
}

void MapRun::draw_progress() {
  if (!setup_.progress.active()) return;
  ProgressState state;
  const std::uint64_t released = delivery_.released_lines();
  state.done = released;
  state.failed = delivery_.failed();
  state.elapsed = setup_.clock.now() - began_;
  const std::uint64_t known = released + skipped_;
  if (input_ended_ && read_lines_ > 0) {
    state.share = static_cast<double>(known) / static_cast<double>(read_lines_);
  } else if (input_bytes_ > 0 && read_lines_ > 0) {
    // Lines that are done, taken to be as long as those that were read.
    const double read = static_cast<double>(reader_.bytes_read());
    state.share = read / static_cast<double>(input_bytes_) * static_cast<double>(known) /
                  static_cast<double>(read_lines_);
  }
  setup_.progress.draw(state);
}

}  // namespace ordo::app

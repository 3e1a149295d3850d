#include "ordo/app/sub_run.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include "ordo/app/child_run.h"
#include "ordo/app/message_text.h"
#include "ordo/app/resource_text.h"
#include "ordo/app/write_all.h"
#include "ordo/core/check.h"
#include "ordo/core/log.h"

namespace ordo::app {
namespace {

using pubsub_client::IncomingMessage;

constexpr std::size_t kHeldMax = 1'000;
constexpr std::chrono::nanoseconds kBackoffMin = std::chrono::milliseconds(100);
constexpr std::chrono::nanoseconds kBackoffMax = std::chrono::seconds(5);

UniqueFd blocked_signals(sigset_t& before) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM})
    sigaddset(&watched, signal);
  ::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): cannot fail for a valid signal.
  ORDO_CHECK(::sigprocmask(SIG_BLOCK, &watched, &before) == 0);
  return UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

UniqueFd either_of(int first, int second) {
  UniqueFd both(::epoll_create1(EPOLL_CLOEXEC));
  ORDO_CHECK(both);
  for (const int fd : {first, second}) {
    epoll_event event{};
    event.events = EPOLLIN;
    ORDO_CHECK(::epoll_ctl(both.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  }
  // A pipe that nobody reads any more; a file cannot be watched, and need not be.
  epoll_event nothing{};
  ::epoll_ctl(both.get(), EPOLL_CTL_ADD, STDOUT_FILENO, &nothing);
  return both;
}

bool is_broken(int fd) {
  pollfd looked{fd, 0, 0};
  return ::poll(&looked, 1, 0) > 0 && (looked.revents & (POLLERR | POLLHUP)) != 0;
}

// The same key for messages that may not overtake each other; those without one are alone.
std::string lane_key(const IncomingMessage& message) {
  return message.key.empty() ? std::string(1, '\0') + message.ack_id : message.key;
}

std::uint64_t number_of(const std::string& id) {
  std::uint64_t number = 0;
  std::from_chars(id.data(), id.data() + id.size(), number);
  return number;
}

}  // namespace

SubRun::SubRun(const BrokerPlace& place, std::unique_ptr<pubsub_client::Client> client,
               SubOptions options)
    : place_(place),
      client_(std::move(client)),
      options_(std::move(options)),
      clock_(client_->channel().clock()),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      signals_(blocked_signals(children_mask_)),
      both_(either_of(wake_.get(), signals_.get())),
      queue_(std::numeric_limits<std::uint32_t>::max()),
      settling_(options_.subscription),
      last_event_(clock_.now()),
      next_extension_(clock_.now() + kExtendEvery) {
  if (!options_.exec.empty()) {
    hands_.emplace(MessageHands::Options{options_.exec, options_.subscription, options_.jobs,
                                         options_.timeout},
                   wake_.get(), children_mask_);
  }
}

// More than can run, so that a hand that is free finds a key that is.
std::int64_t SubRun::messages_max() const {
  const std::size_t most = hands_ ? options_.jobs * 4 : kHeldMax;
  const std::uint64_t wanted_now = options_.count.value_or(most);
  return static_cast<std::int64_t>(std::min<std::uint64_t>(most, wanted_now));
}

std::uint64_t SubRun::wanted() const {
  if (is_ending_) return 0;
  if (!options_.count) return std::numeric_limits<std::uint64_t>::max();
  // What failed comes again; it counts all the same.
  return *options_.count - std::min(*options_.count, begun_count_);
}

bool SubRun::is_busy() const {
  return (hands_ && hands_->running() > 0) || queue_.item_count() > 0;
}

bool SubRun::is_over() const {
  if (hands_ && hands_->running() > 0) return false;
  const bool is_idle = options_.idle && !is_busy() && clock_.now() >= last_event_ + *options_.idle;
  return wanted() == 0 || is_idle;
}

TimePoint SubRun::next_look() const {
  const TimePoint next = std::min(next_extension_, settling_.next_look());
  if (!options_.idle || is_busy()) return next;
  return std::min(next, last_event_ + *options_.idle);
}

void SubRun::open_stream() {
  opened_at_ = clock_.now();
  stream_.emplace(
      *client_, options_.subscription,
      pubsub_client::PullOptions{.messages_max = messages_max(), .ack_deadline = Settling::kLease});
}

Status SubRun::go() {
  open_stream();
  Status ended;
  while (ended && !is_over())
    ended = turn();
  is_ending_ = true;
  if (hands_) hands_->stop_signal().request();  // Nothing runs, unless the broker refused.
  const Status wound_up = wind_up();
  if (!ended || !wound_up) return ended ? wound_up : ended;
  return output_;
}

Status SubRun::turn() {
  take_signals();
  take_done();
  start_turns();
  write_printed();
  if (clock_.now() >= next_extension_) extend_leases();
  Status told = settling_.go_on(*client_);
  if (told && !is_over()) told = read_some();
  if (told || told.error().code != ErrorCode::unavailable) return told;
  return look_again(told.error());
}

void SubRun::take_signals() {
  if (!is_unread_ && is_broken(STDOUT_FILENO)) {
    is_ending_ = is_unread_ = true;
    ::epoll_ctl(both_.get(), EPOLL_CTL_DEL, STDOUT_FILENO, nullptr);
  }
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    ++signal_count_;
    is_ending_ = true;
    if (!hands_ || hands_->running() == 0) continue;
    if (signal_count_ == 1) log_line("ordo: finishing what runs; once more to end it");
    if (signal_count_ == 2) hands_->stop_signal().request();
    if (signal_count_ > 2) hands_->stop_signal().force();
  }
}

Status SubRun::read_some() {
  if (wanted() == 0) return leave_stream();
  if (settling_.is_full()) {
    settling_.wait(*client_, next_look(), both_.get());
    return {};
  }
  Result<std::vector<IncomingMessage>> some = stream_->read(next_look(), both_.get());
  if (!some) return some.error();
  is_ordered_ = is_ordered_ || stream_->is_ordered();
  if (!some->empty()) backoff_ = {};
  for (IncomingMessage& message : *some)
    take(std::move(message));
  return {};
}

// Nothing more is wanted, and something still runs. The broker would take that back soon after its
// stream has gone, if it had not been asked for more time.
Status SubRun::leave_stream() {
  if (stream_) {
    extend_leases();
    if (Status settled = settle_all(); !settled) return settled;
    stream_.reset();
  }
  settling_.wait(*client_, next_look(), both_.get());
  return {};
}

void SubRun::take(IncomingMessage&& message) {
  last_event_ = clock_.now();
  if (!message.key.empty() && is_void(message)) {
    settling_.give_back(std::move(message.ack_id));
    return;
  }
  Item item{++number_, std::move(message)};
  held_.emplace(item.number, item.message.ack_id);
  const std::string key = lane_key(item.message);
  ORDO_CHECK(queue_.push(key, std::move(item)) == Admission::admitted);
}

// Hands get what is ready; without them it is printed, here and now.
void SubRun::start_turns() {
  while (!hands_ || hands_->has_room() || wanted() == 0) {
    const auto turn = queue_.take();
    if (!turn) return;
    if (!held_.contains(turn->item.number)) {  // Of a stream that was lost.
      queue_.finish(turn->lane);
      continue;
    }
    if (wanted() == 0) {
      settling_.give_back(turn->item.message.ack_id);
      held_.erase(turn->item.number);
      ++given_back_count_;
      queue_.finish(turn->lane);
      continue;
    }
    ++begun_count_;
    if (hands_) {
      hands_->start(turn->lane, turn->item.message);
      continue;
    }
    print(turn->item);
    queue_.finish(turn->lane);
  }
}

void SubRun::print(const Item& item) {
  using Form = SubOptions::Form;
  const IncomingMessage& message = item.message;
  printed_ += options_.form == Form::json   ? message_json(message)
              : options_.form == Form::data ? message.data + "\n"
                                            : message_line(message);
  printed_numbers_.push_back(item.number);
}

// What was printed is acknowledged once it is out. When nobody takes it, that is the end, and all
// of it is given back.
void SubRun::write_printed() {
  if (printed_numbers_.empty()) return;
  const Status written = print_text(std::exchange(printed_, {}));
  const std::vector<std::uint64_t> numbers = std::exchange(printed_numbers_, {});
  note_output(written);
  if (!written) return;
  done_count_ += numbers.size();
  if (!options_.acks) return;
  for (const std::uint64_t number : numbers) {
    const auto held = held_.find(number);
    if (held == held_.end()) continue;
    settling_.ack(std::move(held->second));
    held_.erase(held);
  }
}

// A pipe that nobody reads any more is how such pipes end; all else is a fault.
void SubRun::note_output(const Status& printed) {
  if (printed) return;
  is_ending_ = true;
  if (output_ && !is_broken(STDOUT_FILENO)) output_ = printed;
}

void SubRun::take_done() {
  std::uint64_t count = 0;
  if (!hands_ || (::eventfd_read(wake_.get(), &count) != 0 && hands_->running() == 0)) return;
  for (const MessageHands::Done& done : hands_->take_done()) {
    const Item& item = *queue_.in_flight_item(done.lane);
    const IncomingMessage& message = item.message;
    const bool is_good = done.run.ending == Ending::succeeded;
    // Lost meanwhile: the broker gives it out again, whatever is said now.
    const bool is_held = held_.erase(item.number) > 0;
    if (is_held && is_good) settling_.ack(message.ack_id);
    if (is_held && !is_good) settling_.give_back(message.ack_id);
    ++(is_good ? done_count_ : failed_count_);
    write_all(STDERR_FILENO, done.run.err);
    const Status printed = print_text(done.run.out);
    if (!is_good && done.run.ending != Ending::cancelled) {
      JobResult result;
      result.ending = done.run.ending;
      result.code = done.run.code;
      result.message = done.run.message;
      log_line("ordo: message " + message.id + " of key '" + message.key +
               "' was not acknowledged: " + ending_text(result));
    }
    if (!is_good && is_ordered_ && !message.key.empty()) rewind(message.key, message);
    queue_.finish(done.lane);
    last_event_ = clock_.now();
    note_output(printed);
  }
}

// The broker takes back what it sent of the key behind the one that failed: they come again, after
// it. One that has failed too often does not come again itself.
void SubRun::rewind(const std::string& key, const IncomingMessage& failed) {
  const std::uint64_t id = number_of(failed.id);
  std::uint64_t last = id;
  while (const std::optional<Item> item = queue_.drop_waiting(key)) {
    last = std::max(last, number_of(item->message.id));
    if (held_.erase(item->number) > 0) settling_.give_back(item->message.ack_id);
  }
  const bool is_last_attempt = options_.attempts_max > 0 && failed.attempt >= options_.attempts_max;
  if (last > id || !is_last_attempt) rewound_[key] = last;
}

// Sent before the broker knew that an earlier one of the key had failed. The first that is not
// has an id that was seen before.
bool SubRun::is_void(const IncomingMessage& message) {
  const auto found = rewound_.find(message.key);
  if (found == rewound_.end()) return false;
  const std::uint64_t id = number_of(message.id);
  if (id > found->second) {
    found->second = id;
    return true;
  }
  rewound_.erase(found);
  return false;
}

void SubRun::extend_leases() {
  next_extension_ = clock_.now() + kExtendEvery;
  for (const auto& [number, id] : held_)
    settling_.extend(id);
}

// Until the broker has answered all. A signal beyond the one that may have brought us here gives
// up.
Status SubRun::settle_all() {
  const int signals_max = std::max(signal_count_, 1);
  const TimePoint patience_ends = clock_.now() + Settling::kPatience;
  TimePoint say_at = clock_.now() + std::chrono::seconds(2);
  for (;;) {
    if (Status told = settling_.go_on(*client_); !told) return told;
    if (settling_.is_done()) return {};
    take_signals();
    if (signal_count_ > signals_max || clock_.now() >= patience_ends)
      return Error{ErrorCode::deadline_exceeded, "the broker has not answered all that was said"};
    if (clock_.now() >= say_at) {
      log_line("ordo: waiting for the broker to answer; Ctrl-C ends that");
      say_at = TimePoint::max();
    }
    const TimePoint until = std::min({settling_.next_look(), patience_ends, say_at});
    settling_.wait(*client_, until, signals_.get());
  }
}

// The broker has gone, and all leases with it. Returns when there is one again, or at the end. One
// that answers and has nothing to give, as while it starts, is asked less and less often.
Status SubRun::look_again(const Error& why) {
  const bool was_good = backoff_.count() == 0 || clock_.now() - opened_at_ > kBackoffMax;
  if (was_good) backoff_ = {};
  if (was_good || why.message != trouble_)
    log_line("ordo: " + why.message + "; looking for it again");
  trouble_ = why.message;
  is_lost_ = true;
  stream_.reset();
  held_.clear();
  rewound_.clear();
  settling_.forget();
  for (;;) {
    for (const TimePoint next = clock_.now() + backoff_; !is_over() && clock_.now() < next;) {
      pollfd waited{both_.get(), POLLIN, 0};
      ::poll(&waited, 1, poll_timeout(next, clock_.now()));
      take_signals();
      take_done();
      start_turns();  // Drops what came by the stream.
    }
    if (is_over()) return {};
    backoff_ = std::clamp(backoff_ * 2, kBackoffMin, kBackoffMax);
    Result<std::unique_ptr<pubsub_client::Client>> again = connect_broker(place_);
    if (!again) continue;
    client_ = std::move(*again);
    is_lost_ = false;
    last_event_ = clock_.now();
    if (wanted() > 0) open_stream();
    return {};
  }
}

// Says what is left to say, and gives back all that is here; not to ourselves.
Status SubRun::wind_up() {
  if (is_lost_) return {};
  if (Status settled = settle_all(); !settled) return settled;
  stream_.reset();
  for (const auto& [number, id] : held_)
    settling_.give_back(id);
  given_back_count_ += held_.size();
  held_.clear();
  return settle_all();
}

}  // namespace ordo::app

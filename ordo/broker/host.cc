#include "ordo/broker/host.h"

#include <algorithm>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "ordo/broker/consumer_desk.h"
#include "ordo/broker/cursor_journal.h"
#include "ordo/broker/live_feed.h"

namespace ordo::broker {
namespace {

template <class Value>
concept HasRequest = requires(Value& value) {
  value.request;
};

Error gone(const std::string& what) {
  return Error{ErrorCode::not_found, what};
}

// How an input is refused that is not taken any more; nothing for those that need no answer.
std::optional<Refusal> refusal_of(const Input& input) {
  return std::visit(
      [&](const auto& asked) -> std::optional<Refusal> {
        using Asked = std::decay_t<decltype(asked)>;
        if constexpr (std::is_same_v<Asked, Publish>) {
          return [](const Error& why) -> Effect { return PublishReply{{}, why}; };
        } else if constexpr (std::is_same_v<Asked, Acknowledge> ||
                             std::is_same_v<Asked, ModifyDeadline>) {
          return [count = asked.ids.size()](const Error& why) -> Effect {
            const bool is_gone = why.code == ErrorCode::not_found;
            return SettleReply{
                {}, std::vector(count, is_gone ? SettleOutcome::stale : SettleOutcome::not_now)};
          };
        } else if constexpr (std::is_same_v<Asked, Attach>) {
          return [](const Error&) -> Effect { return Attached{}; };
        } else if constexpr (std::is_same_v<Asked, SeekToTime> ||
                             std::is_same_v<Asked, SeekToSnapshot>) {
          return [](const Error& why) -> Effect { return Sought{{}, why}; };
        } else if constexpr (std::is_same_v<Asked, TakeSnapshot>) {
          return [](const Error& why) -> Effect { return SnapshotTaken{{}, why, {}}; };
        } else if constexpr (std::is_same_v<Asked, OperateKey>) {
          return [](const Error& why) -> Effect { return VerbReply{{}, why}; };
        } else if constexpr (std::is_same_v<Asked, ListKeys>) {
          return [](const Error&) -> Effect { return KeysReply{}; };
        } else if constexpr (std::is_same_v<Asked, Peek>) {
          return [](const Error& why) -> Effect { return PeekReply{{}, {}, {}, why}; };
        } else if constexpr (std::is_same_v<Asked, AskStats>) {
          return [](const Error&) -> Effect { return StatsReply{}; };
        } else {
          return std::nullopt;
        }
      },
      input);
}

}  // namespace

Error error_of(const Damage& damage) {
  std::string text = "Message " + std::to_string(damage.id.value()) + " (topic " +
                     std::to_string(damage.partition.topic.value()) + ", partition " +
                     std::to_string(damage.partition.index) + ", offset " +
                     std::to_string(damage.offset.value()) + ")";
  if (!damage.key.empty()) text += " of key '" + damage.key + "'";
  return {ErrorCode::data_loss, text + " is not what was published; it is kept back."};
}

PartitionHost::PartitionHost(Switchboard& switchboard, CorrelationId number, PartitionStart start,
                             const PartitionOptions& options, Now now,
                             std::shared_ptr<LiveFeed> live)
    : switchboard_(switchboard),
      number_(number),
      address_(start.address),
      live_(std::move(live)),
      partition_(std::move(start), options, now) {}

PartitionHost::~PartitionHost() = default;

void PartitionHost::post(Posted posted) {
  if (put(std::move(posted))) switchboard_.call(shared_from_this(), true);
}

void PartitionHost::post_unflushed(Posted posted) {
  if (put(std::move(posted))) switchboard_.call(shared_from_this(), false);
}

bool PartitionHost::put(Posted&& posted) {
  std::unique_lock lock(mail_mutex_);
  if (abandoned_) {
    lock.unlock();
    refuse(posted, *abandoned_);
    return false;
  }
  mail_.push_back(std::move(posted));
  return !std::exchange(is_called_, true);
}

void PartitionHost::retire(Error reason, std::function<void()> after) {
  Posted last{AskStats{}};
  last.on_answer = [this, reason = std::move(reason)](Effect&&) { retired_ = reason; };
  last.after = std::move(after);
  post(std::move(last));
}

void PartitionHost::wind_up(std::function<void()> done) {
  Posted last{AskStats{}};
  last.after = [this, done = std::move(done)] {
    Outbox outbox;
    Now now = switchboard_.now();
    now.steady += kAckCollectTime;
    partition_.run_due(now, effects_);
    perform(outbox);
    switchboard_.committer_->push(outbox);
    done();
  };
  post(std::move(last));
}

void PartitionHost::abandon(const Error& reason) {
  std::vector<Posted> mail;
  {
    const std::lock_guard lock(mail_mutex_);
    if (abandoned_) return;
    abandoned_ = reason;
    std::swap(mail, mail_);
  }
  for (auto& [request, awaited] : std::exchange(answers_, {}))
    awaited.on_answer(awaited.refusal(reason));
  for (Posted& posted : mail)
    refuse(posted, reason);
  for (auto& [number, consumer] : std::exchange(consumers_, {}))
    consumer->closed(reason);
}

void PartitionHost::refuse(Posted& posted, const Error& reason) {
  if (const std::optional<Refusal> refusal = refusal_of(posted.input)) {
    if (posted.on_answer) posted.on_answer((*refusal)(reason));
  } else if (std::holds_alternative<OpenConsumer>(posted.input)) {
    posted.consumer->closed(reason);
  }
  if (posted.after) posted.after();
}

void PartitionHost::erase_spill(const SpillKey& key) {
  std::vector<CommitterJob> jobs;
  jobs.emplace_back(SpillJob{shared_from_this(), EraseSpill{key, 1}});
  switchboard_.committer_->push(jobs);
}

void PartitionHost::run_mail(Outbox& outbox) {
  {
    const std::lock_guard lock(mail_mutex_);
    is_called_ = false;
    std::swap(mail_, reading_);
  }
  const Now now = switchboard_.now();
  for (Posted& posted : reading_)
    take(posted, now, outbox);
  reading_.clear();
}

void PartitionHost::run_due(Outbox& outbox) {
  partition_.run_due(switchboard_.now(), effects_);
  perform(outbox);
}

void PartitionHost::take(Posted& posted, Now now, Outbox& outbox) {
  if (retired_ && refuse_if_retired(posted)) return;
  std::visit(
      [&](auto& input) {
        using Given = std::decay_t<decltype(input)>;
        if constexpr (HasRequest<Given>) {
          input.request = next_request_;
          ++next_request_;
          if (posted.on_answer)
            answers_.emplace(input.request,
                             Awaited{std::move(posted.on_answer), *refusal_of(posted.input)});
        }
        if constexpr (std::is_same_v<Given, OpenConsumer>)
          consumers_.insert_or_assign(input.consumer, std::move(posted.consumer));
        if constexpr (std::is_same_v<Given, CloseConsumer>) consumers_.erase(input.consumer);
        if constexpr (std::is_same_v<Given, Committed>) committed(input);
      },
      posted.input);
  partition_.step(std::move(posted.input), now, effects_);
  perform(outbox);
  if (!posted.after) return;
  // Whoever waits for this may store something next, which has to come after what is stored here.
  switchboard_.committer_->push(outbox);
  posted.after();
}

// What was under way comes to its end; what asks anew is refused.
bool PartitionHost::refuse_if_retired(Posted& posted) {
  if (auto* letter = std::get_if<TakeDeadLetter>(&posted.input)) {
    if (auto source = switchboard_.find(letter->source))
      source->post({DeadLetterDone{letter->ticket, gone(retired_->message)}});
  } else if (!refusal_of(posted.input) && !std::holds_alternative<OpenConsumer>(posted.input)) {
    return false;
  }
  refuse(posted, *retired_);
  return true;
}

// A callback may post to this host, which only fills its mailbox: effects_ stays as it is.
void PartitionHost::perform(Outbox& outbox) {
  for (Effect& effect : effects_)
    perform(effect, outbox);
  effects_.clear();
}

void PartitionHost::perform(Effect& effect, Outbox& outbox) {
  const auto self = [this] { return shared_from_this(); };
  const auto consumer_of = [this](ConsumerNumber number) -> ConsumerDesk* {
    const auto found = consumers_.find(number);
    return found == consumers_.end() ? nullptr : found->second.get();
  };
  std::visit(
      [&](auto& done) {
        using Done = std::decay_t<decltype(done)>;
        if constexpr (std::is_same_v<Done, Commit>) {
          commit(std::move(done), outbox);
        } else if constexpr (std::is_same_v<Done, Deliver>) {
          deliver(std::move(done));
        } else if constexpr (std::is_same_v<Done, KeptBack>) {
          report(std::move(done));
        } else if constexpr (std::is_same_v<Done, WantCredit>) {
          if (ConsumerDesk* consumer = consumer_of(done.consumer))
            consumer->want_credit(address_.index);
        } else if constexpr (std::is_same_v<Done, ReturnCredit>) {
          if (ConsumerDesk* consumer = consumer_of(done.consumer))
            consumer->return_credit(address_.index);
        } else if constexpr (std::is_same_v<Done, ReleaseCredit>) {
          if (ConsumerDesk* consumer = consumer_of(done.consumer))
            consumer->release_credit(address_.index, done.messages, done.bytes);
        } else if constexpr (std::is_same_v<Done, ConsumerClosed>) {
          close_consumer(std::move(done));
        } else if constexpr (std::is_same_v<Done, Read> || std::is_same_v<Done, FindTime>) {
          switchboard_.reader_->push({self(), std::move(done)});
        } else if constexpr (std::is_same_v<Done, WriteSpill> || std::is_same_v<Done, ReadSpill> ||
                             std::is_same_v<Done, EraseSpill>) {
          outbox.emplace_back(SpillJob{self(), std::move(done)});
        } else if constexpr (std::is_same_v<Done, SendDeadLetter>) {
          send_dead_letter(std::move(done));
        } else if constexpr (std::is_same_v<Done, AnswerDeadLetter>) {
          if (auto source = switchboard_.find(done.source))
            source->post({DeadLetterDone{done.ticket, std::move(done.error)}});
        } else {
          answer(done.request, std::move(effect));
        }
      },
      effect);
}

void PartitionHost::answer(RequestNumber request, Effect&& effect) {
  const auto found = answers_.find(request);
  if (found == answers_.end()) return;
  const OnAnswer on_answer = std::move(found->second.on_answer);
  answers_.erase(found);
  on_answer(std::move(effect));
}

void PartitionHost::commit(Commit&& effect, Outbox& outbox) {
  if (retired_) return;  // The partition is about to be erased.
  if (live_ && live_->has_subscribers()) {
    for (const CommitOp& op : effect.ops) {
      if (const auto* append = std::get_if<Append>(&op))
        for_live_[effect.ticket].push_back(append->batch);
    }
  }
  outbox.emplace_back(CommitJob{shared_from_this(), effect.ticket, std::move(effect.ops), nullptr});
}

void PartitionHost::committed(const Committed& input) {
  if (for_live_.empty()) return;
  const auto found = for_live_.find(input.ticket);
  if (found == for_live_.end()) return;
  if (!input.error) {
    for (const std::shared_ptr<MessageBatch>& batch : found->second) {
      for (std::uint32_t index = 0; index < batch->count(); ++index)
        live_->offer(Message(batch, index));
    }
  }
  for_live_.erase(found);
}

void PartitionHost::deliver(Deliver&& effect) {
  const auto found = consumers_.find(effect.consumer);
  if (found == consumers_.end()) return;
  std::uint64_t bytes = 0;
  for (const Delivery& delivery : effect.deliveries)
    bytes += delivery.message.size();
  found->second->count_delivered(address_.index, effect.deliveries.size(), bytes);
  found->second->deliver(std::move(effect.deliveries));
}

void PartitionHost::report(KeptBack&& effect) {
  const Damage damage{address_, effect.offset, effect.id, std::move(effect.key)};
  switchboard_.report(damage);
  const auto found = consumers_.find(effect.consumer);
  if (found != consumers_.end()) found->second->keep_back(error_of(damage));
}

void PartitionHost::close_consumer(ConsumerClosed&& effect) {
  const auto found = consumers_.find(effect.consumer);
  if (found == consumers_.end()) return;
  const std::shared_ptr<ConsumerDesk> consumer = std::move(found->second);
  consumers_.erase(found);
  consumer->closed(effect.reason);
}

void PartitionHost::send_dead_letter(SendDeadLetter&& effect) {
  if (auto target = switchboard_.find(effect.to)) {
    target->post({TakeDeadLetter{address_, effect.ticket, std::move(effect.message),
                                 std::move(effect.settlement)}});
  } else {
    post({DeadLetterDone{effect.ticket, gone("Dead letter topic not found")}});
  }
}

void HostHandler::handle(Wake& wake, const TaskTurn&) {
  const std::shared_ptr<PartitionHost> host = std::move(wake.host);
  host->run_mail(outbox_);
  set_due(host);
}

void HostHandler::failed(Wake&, const TaskTurn&, std::exception_ptr error) noexcept {
  const std::exception_ptr thrown = std::move(error);
  ORDO_CHECK(thrown == nullptr);  // A step or an answer threw: the partition's state is broken.
}

void HostHandler::batch_end() noexcept {
  if (!outbox_.empty()) switchboard_.committer_->push(outbox_);
}

void HostHandler::run_due(TimePoint now) {
  while (const std::optional<CorrelationId> number = due_.pop_expired(now)) {
    const auto found = with_timer_.find(*number);
    const std::shared_ptr<PartitionHost> host = found->second.lock();
    with_timer_.erase(found);
    if (!host) continue;
    host->run_due(outbox_);
    set_due(host);
  }
}

void HostHandler::set_due(const std::shared_ptr<PartitionHost>& host) {
  const std::optional<TimePoint> due = host->next_due();
  if (!due) {
    if (due_.cancel(host->number())) with_timer_.erase(host->number());
  } else if (due_.set(host->number(), *due)) {
    with_timer_.emplace(host->number(), host);
  }
}

Switchboard::Switchboard(const SwitchboardOptions& options)
    : clock_(options.clock != nullptr ? *options.clock : system_clock()),
      on_damage_(options.on_damage) {
  EngineOptions engine;
  engine.partitions = options.threads;
  // A host has one task that runs and one that waits, and those of a turn count until it ends.
  engine.per_id = engine.batch_max + 2;
  engine.budget = 2 * options.hosts_max + engine.batch_max;
  engine.callers_run = options.callers_run;
  engine.name = "ordo-broker";
  engine.clock = options.clock;
  engine_ = std::make_unique<Engine>(engine, [this](std::size_t) { return HostHandler(*this); });
}

Switchboard::~Switchboard() = default;

void Switchboard::connect(Committer& committer, Reader& reader) {
  committer_ = &committer;
  reader_ = &reader;
}

// The engine goes by the hash of a number. Four of them may well meet on one thread of two, so
// numbers are passed over until one fits: hosts go round the threads.
CorrelationId Switchboard::next_number() {
  const std::lock_guard lock(mutex_);
  use_engine([this](Engine& engine) {
    while (engine.partition_of(next_number_) != next_thread_)
      ++next_number_;
    next_thread_ = (next_thread_ + 1) % engine.partition_count();
  });
  return next_number_++;
}

std::shared_ptr<PartitionHost> Switchboard::open(PartitionStart start,
                                                 const PartitionOptions& options,
                                                 std::shared_ptr<LiveFeed> live) {
  const PartitionAddress address = start.address;
  const CorrelationId number = next_number();
  auto host = std::make_shared<PartitionHost>(*this, number, std::move(start), options, now(),
                                              std::move(live));
  {
    const std::lock_guard lock(mutex_);
    hosts_[address] = host;
  }
  // A change of the catalog may come through when the store does, after everybody was answered:
  // either whoever ends the broker finds this host, or this sees the end.
  if (has_ended_.load(std::memory_order_seq_cst)) host->abandon(closed_error());
  return host;
}

void Switchboard::forget(PartitionAddress address) {
  std::shared_ptr<PartitionHost> last;  // Destroyed after the lock.
  const std::lock_guard lock(mutex_);
  const auto found = hosts_.find(address);
  if (found == hosts_.end()) return;
  last = std::move(found->second);
  hosts_.erase(found);
  std::erase_if(forgotten_, [](const auto& host) { return host.expired(); });
  forgotten_.push_back(last);
}

std::shared_ptr<PartitionHost> Switchboard::find(PartitionAddress address) const {
  const std::shared_lock lock(mutex_);
  const auto found = hosts_.find(address);
  return found == hosts_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<PartitionHost>> Switchboard::all() const {
  std::vector<std::shared_ptr<PartitionHost>> hosts;
  const std::shared_lock lock(mutex_);
  hosts.reserve(hosts_.size());
  for (const auto& [address, host] : hosts_)
    hosts.push_back(host);
  return hosts;
}

std::vector<std::shared_ptr<PartitionHost>> Switchboard::forgotten() const {
  std::vector<std::shared_ptr<PartitionHost>> hosts;
  const std::shared_lock lock(mutex_);
  for (const auto& forgotten : forgotten_) {
    if (auto host = forgotten.lock()) hosts.push_back(std::move(host));
  }
  return hosts;
}

// Nothing once it has ended: then hosts refuse what they are asked.
void Switchboard::call(std::shared_ptr<PartitionHost> host, bool flush) {
  use_engine([&](Engine& engine) {
    const CorrelationId number = host->number();
    const Entry entry = flush ? engine.post(number, Wake{std::move(host)}).entry
                              : engine.submit(number, Wake{std::move(host)}).entry;
    ORDO_CHECK(entry == Entry::admitted || entry == Entry::closing);
  });
}

void Switchboard::flush() {
  use_engine([](Engine& engine) { engine.flush(); });
}

void Switchboard::wake() {
  use_engine([](Engine& engine) { engine.wake(); });
}

// Either this sees the end, or end() sees this.
template <class Use>
void Switchboard::use_engine(const Use& use) {
  caller_count_.fetch_add(1, std::memory_order_seq_cst);
  if (!has_ended_.load(std::memory_order_seq_cst)) use(*engine_);
  caller_count_.fetch_sub(1, std::memory_order_release);
}

void Switchboard::end(TimePoint deadline) {
  (void)engine_->drain(deadline);
  has_ended_.store(true, std::memory_order_seq_cst);
  while (caller_count_.load(std::memory_order_acquire) > 0)
    std::this_thread::yield();
  engine_.reset();
}

void Switchboard::report(const Damage& damage) {
  damaged_.fetch_add(1, std::memory_order_relaxed);
  if (on_damage_) on_damage_(damage);
}

}  // namespace ordo::broker

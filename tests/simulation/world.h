// World: one simulated run: a broker's core, its store, its clients and their misfortunes.
//
//   Marks marks;
//   World world(make_plan(seed), marks, {});
//   std::string violation = world.run();    // empty: all promises were kept
//
// One thread and a virtual clock. Everything that takes time in a real broker (commits, reads,
// grants, clients) is an event at a time chosen by the seed, so that every order of events can
// happen and happens again with the same seed. A crash forgets everything but the MemoryDisk.
// After the plan's safety time nothing fails any more, and everything must drain.
//
// Threads: one owner.
// Bounds:  kEventsMax events; a run that needs more is reported.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ordo/broker/credit_desk.h"
#include "ordo/broker/partition.h"
#include "ordo/broker/store_memory.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/marks.h"
#include "tests/simulation/plan.h"
#include "tests/simulation/subscription_history.h"

namespace ordo::simulation {

struct WorldOptions {
  bool is_traced = false;      // Tells on standard output what happens.
  std::string history_folder;  // Empty: none is written.
};

class World {
 public:
  static constexpr std::uint64_t kEventsMax = 200'000;

  World(Plan plan, Marks& marks, WorldOptions options);
  ~World();

  // The broken promise; empty: none.
  std::string run();

 private:
  using Address = broker::PartitionAddress;
  using Nanoseconds = std::chrono::nanoseconds;

  struct Event {
    TimePoint time;
    std::uint64_t order = 0;
    std::uint32_t life = 0;  // Of the broker; 0: happens whatever became of it.
    std::function<void()> run;

    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  class Faults final : public broker::StoreFaults {
   public:
    explicit Faults(World& world) : world_(world) {}
    Commit on_commit(const broker::CommitBatch& batch) override;
    std::optional<Error> on_read(Address partition, broker::Offset from) override;
    std::optional<Error> on_spill(const broker::SpillKey& key) override;

   private:
    World& world_;
  };

  struct WaitingCommit {
    Address address;
    broker::TicketNumber ticket;
    broker::CommitBatch ops;
    std::function<void(std::optional<Error>)> done;  // Of the broker itself; else a partition's.
    std::optional<Error> error;
  };

  struct Client {
    ClientPlan plan;
    broker::CursorNumber subscription;
    std::optional<broker::ConsumerNumber> consumer;
    std::unique_ptr<broker::CreditDesk> desk;
    std::vector<broker::AckId> together;  // To be acknowledged in one request.
  };

  struct Subscription {
    broker::CursorNumber number;
    bool exists = false;  // Durable.
    bool is_attached = false;
    bool is_wanted = false;   // Somebody creates it again should it be missing.
    std::size_t answers = 0;  // Of Attach.
    broker::CommitBatch rows;
  };

  struct Snapshot {
    std::uint32_t subscription = 0;
    std::size_t answers = 0;
    bool exists = false;
  };

  struct Damage {
    Address address;
    broker::Offset offset;
    bool is_hidden = false;  // The store does not notice.
  };

  struct Asked {  // A publish without answer yet.
    std::vector<Uid> uids;
    TimePoint sent;
    Address address;
  };

  // ---------------------------------------------- time (world.cc)
  broker::Now now() const {
    return {now_, WallTime(std::chrono::seconds(1'600'000'000)) + (now_ - TimePoint{})};
  }
  void after(Nanoseconds delay, std::function<void()> run);          // Whatever happens.
  void after_in_life(Nanoseconds delay, std::function<void()> run);  // Unless it crashes first.
  void run_events(TimePoint until);
  void trace(const std::string& text) const;

  // ---------------------------------------------- broker (world.cc)
  void start_broker();
  void crash();
  void sync();
  bool is_crash_due();
  void step(Address address, broker::Input input);
  void run_due(Address address);
  void arm(Address address);
  void tell(Address address, broker::Input& input);
  void perform(Address address, broker::Effects& effects);
  broker::SubscriptionSetup setup(std::uint32_t subscription) const;
  broker::TopicNumber dead_topic() const { return broker::TopicNumber(plan_.topics + 1); }
  std::vector<Address> addresses(std::uint32_t topic) const;
  broker::RequestNumber new_request() { return broker::RequestNumber(++last_number_); }

  // ---------------------------------------------- effects (world_effects.cc)
  void on(Address address, broker::Commit& effect);
  void on(Address address, broker::PublishReply& effect);
  void on(Address address, broker::Deliver& effect);
  void on(Address address, broker::KeptBack& effect);
  void on(Address address, broker::SettleReply& effect);
  void on(Address address, broker::Attached& effect);
  void on(Address address, broker::WantCredit& effect);
  void on(Address address, broker::ReturnCredit& effect);
  void on(Address address, broker::ReleaseCredit& effect);
  void on(Address address, broker::ConsumerClosed& effect);
  void on(Address address, broker::Read& effect);
  void on(Address address, broker::FindTime& effect);
  void on(Address address, broker::WriteSpill& effect);
  void on(Address address, broker::ReadSpill& effect);
  void on(Address address, broker::EraseSpill& effect);
  void on(Address address, broker::SendDeadLetter& effect);
  void on(Address address, broker::AnswerDeadLetter& effect);
  void on(Address address, broker::Sought& effect);
  void on(Address address, broker::SnapshotTaken& effect);
  void on(Address address, broker::VerbReply& effect);
  void on(Address address, broker::KeysReply& effect);
  void on(Address address, broker::PeekReply& effect);
  void on(Address address, broker::StatsReply& effect);

  // ---------------------------------------------- committer (world_effects.cc)
  void enqueue(WaitingCommit commit);
  void commit_rows(broker::CommitBatch ops, std::function<void(std::optional<Error>)> done);
  void start_commit();
  void apply_commit();
  void finish_commit();
  void store(std::vector<WaitingCommit*> commits);

  // ---------------------------------------------- clients (world_clients.cc)
  void publish();
  void connect(std::size_t client);
  void disconnect(std::size_t client, std::optional<broker::CloseConsumer::How> how);
  void grant(std::size_t client, const broker::CreditDesk::Grants& grants);
  void delivered(std::size_t client, const broker::Delivery& delivery);
  void acknowledge(std::size_t client, const broker::AckId& id);
  void acknowledge_together(std::size_t client);
  void send_acks(std::size_t client, const std::vector<broker::AckId>& ids);
  void modify(std::size_t client, const broker::AckId& id, Nanoseconds deadline);
  std::optional<std::size_t> client_of(broker::ConsumerNumber consumer) const;

  // ---------------------------------------------- operators (world_operators.cc)
  void create(std::uint32_t subscription);
  void store_subscription(std::uint32_t subscription);
  void remove(std::uint32_t subscription);
  void detach(std::uint32_t subscription);
  void operate();
  void seek();
  void take_snapshot();
  void drop_snapshot();
  void retain_topic();
  void set_dead_topic(bool is_gone);
  void ask();
  void sweep();
  void peek(Address address, broker::CursorNumber subscription, broker::Offset from);
  void damage();
  void set_damage(bool is_damaged);
  void garble(Address address, broker::ReadBatches& batches) const;
  void plan_operators();
  void drain();

  // ---------------------------------------------- histories (world.cc)
  void open_histories();
  void write_histories();
  void record(const Asked& asked, std::optional<broker::MessageId> first_id,
              std::string_view outcome);
  SubscriptionHistory* history(broker::CursorNumber subscription);
  SubscriptionHistory::Publish history_message(Uid uid, const Asked* asked,
                                               std::size_t index) const;

  const Plan plan_;
  Marks& marks_;
  const WorldOptions options_;
  Dice dice_;
  Checker checker_;

  TimePoint now_;
  std::uint64_t events_run_ = 0;
  std::vector<Event> events_;  // A heap.
  std::uint64_t last_order_ = 0;
  std::uint64_t last_number_ = 0;

  std::shared_ptr<broker::MemoryDisk> disk_ = std::make_shared<broker::MemoryDisk>();
  Faults faults_{*this};
  std::unique_ptr<broker::MemoryStore> store_;
  bool is_draining_ = false;
  bool is_recovering_ = false;
  bool is_up_ = false;
  bool is_store_failed_ = false;
  bool is_reading_spill_ = false;
  bool is_dead_topic_gone_ = false;
  bool is_end_ = false;
  std::uint32_t life_ = 0;
  std::uint32_t crashes_left_ = 0;
  std::uint64_t effects_until_crash_ = 0;
  std::map<Address, std::unique_ptr<broker::Partition>> partitions_;
  std::map<Address, TimePoint> armed_;
  std::map<std::uint32_t, std::optional<Nanoseconds>> topic_retention_;

  std::vector<WaitingCommit> waiting_;
  std::vector<WaitingCommit> committing_;
  bool is_committing_ = false;
  bool is_applied_ = false;

  std::vector<Client> clients_;
  std::vector<Subscription> subscriptions_;
  std::map<std::uint64_t, broker::ListKeys> lists_;      // By request.
  std::map<std::uint64_t, broker::CursorNumber> peeks_;  // By request.
  std::vector<Damage> damages_;
  std::map<broker::CursorNumber, Snapshot> snapshots_;
  std::map<std::uint64_t, Asked> publishes_;  // By request.
  std::map<std::uint64_t, std::vector<std::pair<SubscriptionHistory*, std::size_t>>>
      history_settles_;  // By request.
  std::map<std::uint64_t, std::unique_ptr<SubscriptionHistory>> histories_;
};

}  // namespace ordo::simulation

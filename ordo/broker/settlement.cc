#include "ordo/broker/settlement.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "ordo/broker/host.h"

namespace ordo::broker {
namespace {

// Gathers what the partitions answer, in the order of the ids that were given.
struct Gathering {
  std::mutex mutex;
  std::vector<SettleOutcome> outcomes;
  std::size_t left = 0;  // Partitions that have not answered.
  OnSettled on_settled;

  void take(const std::vector<std::size_t>& places, const std::vector<SettleOutcome>& part) {
    {
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < places.size() && i < part.size(); ++i)
        outcomes[places[i]] = part[i];
      if (--left > 0) return;
    }
    on_settled(std::move(outcomes));
  }
};

struct Part {
  std::vector<AckId> ids;
  std::vector<std::size_t> places;
  std::size_t unseen = 0;
};

struct Asked {
  std::vector<AckId> ids;
  std::size_t unseen = 0;
};

template <class MakeInput>
void settle(const Hosts& hosts, CursorNumber subscription, const Asked& asked,
            OnSettled&& on_settled, const MakeInput& make_input) {
  const std::vector<AckId>& ids = asked.ids;
  std::vector<Part> parts(hosts.size());
  std::size_t part_count = 0;
  for (std::size_t place = 0; place < ids.size(); ++place) {
    const AckId& id = ids[place];
    if (id.subscription != subscription || id.partition >= hosts.size()) continue;
    Part& part = parts[id.partition];
    if (part.ids.empty()) ++part_count;
    part.ids.push_back(id);
    part.places.push_back(place);
    if (ids.size() - place <= asked.unseen) ++part.unseen;
  }
  std::shared_ptr<Gathering> gathering;
  if (on_settled) {
    std::vector<SettleOutcome> stale(ids.size(), SettleOutcome::stale);
    if (part_count == 0) return on_settled(std::move(stale));
    gathering = std::make_shared<Gathering>();
    gathering->outcomes = std::move(stale);
    gathering->left = part_count;
    gathering->on_settled = std::move(on_settled);
  }
  for (std::size_t index = 0; index < hosts.size(); ++index) {
    Part& part = parts[index];
    if (part.ids.empty()) continue;
    Posted posted{make_input(std::move(part.ids), part.unseen, gathering != nullptr)};
    if (gathering) {
      posted.on_answer = [gathering, places = std::move(part.places)](Effect&& effect) {
        gathering->take(places, std::get<SettleReply>(effect).outcomes);
      };
    }
    hosts[index]->post(std::move(posted));
  }
}

}  // namespace

void acknowledge(const Hosts& hosts, CursorNumber subscription, std::vector<AckId> ids,
                 OnSettled on_settled) {
  settle(hosts, subscription, {std::move(ids)}, std::move(on_settled),
         [](std::vector<AckId>&& part, std::size_t, bool confirm) -> Input {
           return Acknowledge{{}, confirm, std::move(part)};
         });
}

void modify_deadline(const Hosts& hosts, CursorNumber subscription, std::vector<AckId> ids,
                     std::chrono::nanoseconds deadline, OnSettled on_settled) {
  settle(hosts, subscription, {std::move(ids)}, std::move(on_settled),
         [deadline](std::vector<AckId>&& part, std::size_t, bool confirm) -> Input {
           return ModifyDeadline{{}, confirm, std::move(part), deadline};
         });
}

void give_back(const Hosts& hosts, CursorNumber subscription, std::vector<AckId> ids,
               std::size_t unseen, OnSettled on_settled) {
  settle(hosts, subscription, {std::move(ids), unseen}, std::move(on_settled),
         [](std::vector<AckId>&& part, std::size_t part_unseen, bool confirm) -> Input {
           return ModifyDeadline{{}, confirm, std::move(part), {}, part_unseen};
         });
}

}  // namespace ordo::broker

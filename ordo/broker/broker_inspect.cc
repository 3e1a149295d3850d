// What operators ask of a broker and do to its keys.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "ordo/broker/broker.h"
#include "ordo/broker/broker_core.h"
#include "ordo/broker/gathering.h"

namespace ordo {

using broker::Directory;
using broker::KeyFacts;

namespace {

// The last of `hosts`, and those before it while nothing is found.
void operate_at(broker::Hosts hosts, const broker::OperateKey& operate,
                std::function<void(Status)> on_done) {
  const std::shared_ptr<broker::PartitionHost> host = hosts.back();
  hosts.pop_back();
  broker::Posted posted{operate};
  posted.on_answer = [hosts = std::move(hosts), operate,
                      done = std::move(on_done)](broker::Effect&& effect) {
    const std::optional<Error>& error = std::get<broker::VerbReply>(effect).error;
    if (error && error->code == ErrorCode::not_found && !hosts.empty())
      return operate_at(hosts, operate, done);
    done(error ? Status(*error) : Status());
  };
  host->post(std::move(posted));
}

}  // namespace

Status Broker::list_keys(const std::string& subscription, const KeyListOptions& options,
                         broker::OnKeys on_keys) {
  if (Status checked = check_options(options); !checked) return checked;
  const Result<Directory::Subscription> found = core_->find(subscription);
  if (!found) return found.error();
  broker::list_keys((*found)->topic->hosts, (*found)->number, options, std::move(on_keys));
  return {};
}

Result<std::vector<KeyFacts>> Broker::list_keys(const std::string& subscription,
                                                const KeyListOptions& options) {
  auto reply = std::make_shared<broker::Reply<std::vector<KeyFacts>>>();
  Status asked = list_keys(subscription, options,
                           [reply](std::vector<KeyFacts>&& keys) { reply->set(std::move(keys)); });
  if (!asked) return std::move(asked).error();
  return reply->wait();
}

Result<std::vector<KeyFacts>> Broker::blocked_keys(const std::string& subscription,
                                                   std::size_t count_max) {
  KeyListOptions options;
  options.count_max = std::min(count_max, KeyListOptions::kCountMax);
  return list_keys(subscription, options);
}

Status Broker::peek(const std::string& subscription, const PeekOptions& options,
                    broker::OnPeeked on_peeked) {
  if (Status checked = check_options(options); !checked) return checked;
  const Result<Directory::Subscription> found = core_->find(subscription);
  if (!found) return found.error();
  return broker::peek((*found)->topic->hosts, (*found)->number,
                      (*found)->config.enable_message_ordering, options, std::move(on_peeked));
}

Result<PeekPage> Broker::peek(const std::string& subscription, const PeekOptions& options) {
  auto reply = std::make_shared<broker::Reply<Result<PeekPage>>>();
  Status asked = peek(subscription, options,
                      [reply](Result<PeekPage>&& page) { reply->set(std::move(page)); });
  if (!asked) return std::move(asked).error();
  return reply->wait();
}

Status Broker::operate_key(const std::string& subscription, const std::string& key,
                           broker::OperateKey::Verb verb, std::function<void(Status)> on_done) {
  const Result<Directory::Subscription> found = core_->find(subscription);
  if (!found) return found.error();
  const broker::Hosts& all = (*found)->topic->hosts;
  // Messages without a key lie anywhere.
  broker::Hosts hosts = all;
  if (!key.empty())
    hosts = {all[broker::partition_of(key, static_cast<std::uint32_t>(all.size()))]};
  operate_at(std::move(hosts), {{}, (*found)->number, key, verb}, std::move(on_done));
  return {};
}

Status Broker::operate_key(const std::string& subscription, const std::string& key,
                           broker::OperateKey::Verb verb) {
  auto reply = std::make_shared<broker::Reply<Status>>();
  Status asked =
      operate_key(subscription, key, verb, [reply](Status done) { reply->set(std::move(done)); });
  if (!asked) return asked;
  return reply->wait();
}

}  // namespace ordo

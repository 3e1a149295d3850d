#include "ordo/broker/inspection.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "ordo/broker/host.h"

namespace ordo {

Status check_options(const KeyListOptions& options) {
  if (options.count_max >= 1 && options.count_max <= KeyListOptions::kCountMax) return {};
  return Error{ErrorCode::invalid_argument, "The number of keys must be between 1 and 1000."};
}

Status check_options(const PeekOptions& options) {
  if (options.messages_max < 1 || options.messages_max > PeekOptions::kMessagesMax)
    return Error{ErrorCode::invalid_argument, "The number of messages must be between 1 and 1000."};
  if (options.bytes_max < 1 || options.bytes_max > PeekOptions::kBytesMax)
    return Error{ErrorCode::invalid_argument, "The number of bytes must be between 1 and 3145728."};
  return {};
}

namespace broker {
namespace {

// ------------------------------------------------------------------------------------ keys

void keep_first(std::vector<KeyFacts>& keys, const KeyListOptions& options) {
  std::stable_sort(keys.begin(), keys.end(), [&](const KeyFacts& a, const KeyFacts& b) {
    if (options.order == KeyOrder::deepest && a.waiting != b.waiting) return a.waiting > b.waiting;
    if (options.order == KeyOrder::hottest) return a.per_second > b.per_second;
    return a.blocked_since < b.blocked_since;
  });
  if (keys.size() > options.count_max)
    keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(options.count_max), keys.end());
}

class KeyList : public std::enable_shared_from_this<KeyList> {
 public:
  KeyList(CursorNumber subscription, const KeyListOptions& options, std::size_t hosts,
          OnKeys on_keys)
      : subscription_(subscription),
        options_(options),
        on_keys_(std::move(on_keys)),
        left_(hosts) {}

  void ask(const std::shared_ptr<PartitionHost>& host, std::uint32_t from) {
    ListKeys list;
    list.subscription = subscription_;
    list.count_max = options_.count_max;
    list.order = options_.order;
    list.stuck_only = options_.stuck_only;
    list.from = from;
    Posted posted{list};
    posted.on_answer = [self = shared_from_this(), host](Effect&& effect) {
      self->take(host, std::get<KeysReply>(std::move(effect)));
    };
    host->post(std::move(posted));
  }

 private:
  void take(const std::shared_ptr<PartitionHost>& host, KeysReply&& reply) {
    {
      const std::lock_guard lock(mutex_);
      std::move(reply.keys.begin(), reply.keys.end(), std::back_inserter(keys_));
      keep_first(keys_, options_);
      if (reply.next == 0 && --left_ > 0) return;
    }
    if (reply.next > 0) return ask(host, reply.next);
    on_keys_(std::move(keys_));
  }

  const CursorNumber subscription_;
  const KeyListOptions options_;
  const OnKeys on_keys_;
  std::mutex mutex_;  // Guards the two below.
  std::vector<KeyFacts> keys_;
  std::size_t left_;
};

// ------------------------------------------------------------------------------------ peek

// One call looks at so many offsets of a partition, then says where to go on.
constexpr std::size_t kOffsetsOfAnInput = 1'000;
constexpr std::size_t kInputsMax = 100;

// Where to go on in each partition; nothing: it is at its end.
using Places = std::vector<std::optional<Offset>>;

std::string token_of(const Places& places) {
  if (std::none_of(places.begin(), places.end(), [](const auto& place) { return !!place; }))
    return {};
  std::string token;
  for (const std::optional<Offset>& place : places) {
    if (!token.empty()) token += '.';
    token += place ? std::to_string(place->value()) : "-";
  }
  return token;
}

std::optional<Places> places_of(std::string_view token, std::size_t count) {
  Places places;
  for (bool is_last = false; !is_last;) {
    const std::size_t dot = token.find('.');
    is_last = dot == std::string_view::npos;
    const std::string_view text = token.substr(0, dot);
    token.remove_prefix(is_last ? token.size() : dot + 1);
    std::uint64_t value = 0;
    if (text == "-") {
      places.emplace_back();
      continue;
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || places.size() == count)
      return std::nullopt;
    places.emplace_back(Offset(value));
  }
  if (places.size() != count) return std::nullopt;
  return places;
}

class PeekRun : public std::enable_shared_from_this<PeekRun> {
 public:
  PeekRun(Hosts hosts, CursorNumber subscription, bool is_ordered, PeekOptions options,
          OnPeeked on_peeked)
      : hosts_(std::move(hosts)),
        subscription_(subscription),
        is_ordered_(is_ordered),
        options_(std::move(options)),
        on_peeked_(std::move(on_peeked)),
        parts_(hosts_.size()) {}

  // Once. `places` has one for each host.
  void start(const Places& places) {
    std::vector<std::size_t> asked;
    for (std::size_t index = 0; index < parts_.size(); ++index) {
      parts_[index].next = places[index];
      if (parts_[index].next) asked.push_back(index);
    }
    left_ = asked.size();
    if (asked.empty()) return on_peeked_(PeekPage{});
    for (const std::size_t index : asked)
      ask(index);
  }

 private:
  struct Part {
    std::vector<PeekedMessage> messages;
    std::optional<Offset> next;
    std::size_t bytes = 0;
    std::size_t inputs = 0;
  };

  // While a part is asked it belongs to its partition.
  void ask(std::size_t index) {
    Part& part = parts_[index];
    ++part.inputs;
    Peek peek;
    peek.subscription = subscription_;
    peek.from = *part.next;
    peek.key = options_.key;
    peek.messages_max = options_.messages_max - part.messages.size();
    peek.bytes_max = std::max<std::size_t>(options_.bytes_max - part.bytes, 1);
    peek.offsets_max = kOffsetsOfAnInput;
    Posted posted{std::move(peek)};
    posted.on_answer = [self = shared_from_this(), index](Effect&& effect) {
      self->take(index, std::get<PeekReply>(std::move(effect)));
    };
    hosts_[index]->post(std::move(posted));
  }

  void take(std::size_t index, PeekReply&& reply) {
    Part& part = parts_[index];
    for (PeekedMessage& message : reply.messages) {
      if (message.message) part.bytes += message.message.size();
      part.messages.push_back(std::move(message));
    }
    part.next = reply.next == Offset() ? std::nullopt : std::optional(reply.next);
    const bool is_full = part.messages.size() >= options_.messages_max ||
                         part.bytes >= options_.bytes_max || part.inputs >= kInputsMax;
    if (!reply.error && part.next && !is_full) return ask(index);
    {
      const std::lock_guard lock(mutex_);
      if (reply.error && !error_) error_ = std::move(reply.error);
      if (--left_ > 0) return;
    }
    if (error_) return on_peeked_(*error_);
    on_peeked_(put_together());
  }

  // Those with the smallest ids first; what does not fit stays where it is.
  PeekPage put_together() {
    PeekPage page;
    std::vector<std::size_t> taken(parts_.size(), 0);
    std::size_t bytes = 0;
    while (page.messages.size() < options_.messages_max) {
      std::optional<std::size_t> first;
      for (std::size_t index = 0; index < parts_.size(); ++index) {
        if (taken[index] == parts_[index].messages.size()) continue;
        if (!first || id_of(index, taken[index]) < id_of(*first, taken[*first])) first = index;
      }
      if (!first) break;
      PeekedMessage& message = parts_[*first].messages[taken[*first]];
      const std::size_t size = message.message ? message.message.size() : 0;
      if (bytes > 0 && bytes + size > options_.bytes_max) break;
      bytes += size;
      ++taken[*first];
      page.messages.push_back(message);
    }
    Places places;
    for (std::size_t index = 0; index < parts_.size(); ++index) {
      const bool is_left = taken[index] < parts_[index].messages.size();
      places.push_back(is_left ? std::optional(parts_[index].messages[taken[index]].offset)
                               : parts_[index].next);
    }
    page.next_page_token = token_of(places);
    if (is_ordered_) order_unread(page.messages);
    return page;
  }

  // What cannot be read has no id, and comes when all before it of its partition came.
  MessageId id_of(std::size_t part, std::size_t index) const {
    const PeekedMessage& message = parts_[part].messages[index];
    return message.message ? message.message.id() : MessageId();
  }

  // A partition does not remember keys that it has not come to: of those the first is the next.
  static void order_unread(std::vector<PeekedMessage>& messages) {
    std::unordered_set<std::string_view> seen;
    for (PeekedMessage& message : messages) {
      if (!message.message || message.message.key().empty()) continue;
      const bool is_first = seen.insert(message.message.key()).second;
      if (message.is_unread && !is_first) message.state = PeekState::waiting;
    }
  }

  const Hosts hosts_;
  const CursorNumber subscription_;
  const bool is_ordered_;
  const PeekOptions options_;
  const OnPeeked on_peeked_;
  std::vector<Part> parts_;
  std::mutex mutex_;  // Guards the two below while partitions are asked.
  std::size_t left_ = 0;
  std::optional<Error> error_;
};

}  // namespace

void list_keys(const Hosts& hosts, CursorNumber subscription, const KeyListOptions& options,
               OnKeys on_keys) {
  const auto list =
      std::make_shared<KeyList>(subscription, options, hosts.size(), std::move(on_keys));
  for (const std::shared_ptr<PartitionHost>& host : hosts)
    list->ask(host, 0);
}

Status peek(const Hosts& hosts, CursorNumber subscription, bool is_ordered,
            const PeekOptions& options, OnPeeked on_peeked) {
  std::optional<Places> places = Places(hosts.size(), Offset());
  if (!options.page_token.empty()) places = places_of(options.page_token, hosts.size());
  if (!places)
    return Error{ErrorCode::invalid_argument, "The page token is not one of this subscription."};
  if (!options.key.empty()) {
    const std::uint32_t one = partition_of(options.key, static_cast<std::uint32_t>(hosts.size()));
    for (std::size_t index = 0; index < places->size(); ++index) {
      if (index != one) (*places)[index].reset();
    }
  }
  std::make_shared<PeekRun>(hosts, subscription, is_ordered, options, std::move(on_peeked))
      ->start(*places);
  return {};
}

}  // namespace broker
}  // namespace ordo

// CreditDesk: splits what a consumer may have outstanding over the partitions it consumes from.
//
//   CreditDesk desk({.messages = 100, .bytes = 1 << 20}, partition_count);
//   CreditDesk::Grants grants;
//   desk.want(2, grants);                         // WantCredit of partition 2
//   for (auto& grant : grants) send(grant.partition, GrantCredit{consumer, grant.messages, ...});
//   desk.deliver(2, deliveries, bytes, grants);   // Deliver of partition 2
//   desk.release(2, 1, bytes_of_it, grants);      // ReleaseCredit: an ack, a nack, an expiry
//   desk.give_back(2, grants);                    // ReturnCredit of partition 2
//
// A partition holds one grant at a time. It asks when it has something and no credit, and gets its
// turn; the grant ends when its messages or its bytes are used up (what is left of the other is
// void) or when the partition gives it back. So nothing lies where it is of no use. That of an
// unlimited consumer never ends.
//
// Leases and unused credit together never exceed the limits, but for bytes by one message: "at or
// above the limit: stop". As that message may be the last of any grant, several partitions hold
// byte credit at once only as far as the limit has room for a largest message of each but one.
// What becomes free goes round in even shares, so no partition that wants something starves.
//
// Threads: one owner.
// Bounds:  a few words for each partition.
// Cost:    O(partitions) for a call while somebody waits for credit, else O(1).
#pragma once

#include <cstdint>
#include <vector>

namespace ordo::broker {

struct CreditLimits {
  std::int64_t messages = 0;  // Zero and below: unlimited.
  std::int64_t bytes = 0;     // Likewise.
  bool is_one_shot = false;   // A pull: what was delivered is never granted again.
};

class CreditDesk {
 public:
  // An unlimited amount, as a partition is granted it.
  static constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;
  // What the last message of a grant may be larger than its bytes: a largest one that is published,
  // with the attributes of a dead letter.
  static constexpr std::int64_t kMessageBytesMax = 10'002'000;

  struct Grant {
    std::uint32_t partition = 0;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;

    friend bool operator==(const Grant&, const Grant&) = default;
  };
  using Grants = std::vector<Grant>;

  // REQUIRES: partition_count > 0.
  CreditDesk(CreditLimits limits, std::uint32_t partition_count);

  // All calls append to `grants` what is to be sent. REQUIRES: partition < partition_count.

  // The partition has something for the consumer, but no credit.
  void want(std::uint32_t partition, Grants& grants);

  // The partition has delivered; to be told before any release() of what it delivered.
  void deliver(std::uint32_t partition, std::uint64_t messages, std::uint64_t bytes,
               Grants& grants);

  // The partition has nothing more: it holds no credit any longer.
  void give_back(std::uint32_t partition, Grants& grants);

  // Leases have ended. REQUIRES: so much was delivered.
  void release(std::uint32_t partition, std::uint64_t messages, std::uint64_t bytes,
               Grants& grants);

  // From now on so many messages may be outstanding; 0: none more. What is granted stays granted.
  // REQUIRES: it was made with a limit of messages; messages >= 0.
  void limit_messages(std::int64_t messages, Grants& grants);

  // A one-shot consumer has got all it asked for.
  bool is_spent() const {
    return limits_.is_one_shot && has_message_limit() && leased_messages_ >= limits_.messages;
  }

  // Delivered and not ended; of a one-shot consumer: delivered.
  std::int64_t leased_messages() const { return leased_messages_; }
  std::int64_t leased_bytes() const { return leased_bytes_; }

 private:
  // What a partition holds; nothing when either is 0.
  struct Seat {
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
    bool wants = false;
  };

  bool has_message_limit() const { return has_message_limit_; }
  bool has_byte_limit() const { return limits_.bytes > 0; }
  void set(Seat& seat, std::int64_t messages, std::int64_t bytes);
  void set_wants(Seat& seat, bool wants);
  bool grant_one(std::uint32_t partition, Grants& grants);
  void grant_free(Grants& grants);

  CreditLimits limits_;
  const bool has_message_limit_;
  std::vector<Seat> seats_;
  std::uint32_t next_ = 0;    // Whose turn it is.
  std::int64_t wanting_ = 0;  // How many want.
  std::int64_t holding_ = 0;  // How many hold a grant.
  std::int64_t leased_messages_ = 0;
  std::int64_t leased_bytes_ = 0;
  std::int64_t unused_messages_ = 0;  // Of all grants, where there is a limit.
  std::int64_t unused_bytes_ = 0;
};

}  // namespace ordo::broker

// Id: a number (or text) that names one kind of thing and cannot be taken for another kind.
//
//   using OrderId = Id<struct OrderIdTag>;
//   using UserId = Id<struct UserIdTag, std::uint32_t>;
//   using Position = Id<struct PositionTag, std::uint64_t, IdKind::sequence>;
//
//   OrderId order(7);
//   // UserId user = order;  does not compile, nor does  OrderId order = 7;  or  ++order;
//   Position next = Position(1).next();
//
// Threads: a plain value; one owner.
// Cost:    that of the Rep itself.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <type_traits>
#include <utility>

namespace ordo {

enum class IdKind : std::uint8_t {
  name,      // Compared and hashed, nothing else.
  sequence,  // Has a next one, and a distance.
};

template <class Tag, class Rep = std::uint64_t, IdKind kKind = IdKind::name>
class Id {
  static_assert(kKind == IdKind::name || std::integral<Rep>);

 public:
  using rep = Rep;

  constexpr Id() = default;  // Rep's own default: zero, or empty.
  constexpr explicit Id(Rep value) : value_(std::move(value)) {}

  constexpr const Rep& value() const { return value_; }

  friend constexpr auto operator<=>(const Id&, const Id&) = default;
  friend constexpr bool operator==(const Id&, const Id&) = default;

  constexpr Id& operator++() requires(kKind == IdKind::sequence) {
    ++value_;
    return *this;
  }
  constexpr Id next() const requires(kKind == IdKind::sequence) {
    Id result = *this;
    return ++result;
  }
  // How many steps lead from `from` to `to`.
  friend constexpr Rep operator-(const Id& to, const Id& from) requires(kKind == IdKind::sequence) {
    return static_cast<Rep>(to.value_ - from.value_);
  }
  friend constexpr Id operator+(const Id& from, Rep steps) requires(kKind == IdKind::sequence) {
    return Id(static_cast<Rep>(from.value_ + steps));
  }

  friend std::ostream& operator<<(std::ostream& out, const Id& id) {
    if constexpr (std::integral<Rep>) {
      return out << +id.value_;  // A one-byte integer is a number here, not a character.
    } else {
      return out << id.value_;
    }
  }

 private:
  Rep value_{};
};

}  // namespace ordo

template <class Tag, class Rep, ordo::IdKind kKind>
struct std::hash<ordo::Id<Tag, Rep, kKind>> {
  std::size_t operator()(const ordo::Id<Tag, Rep, kKind>& id) const noexcept {
    return std::hash<Rep>()(id.value());
  }
};

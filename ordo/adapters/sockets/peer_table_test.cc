#include "ordo/adapters/sockets/peer_table.h"

#include <cstdint>
#include <memory>

#include <gtest/gtest.h>

namespace ordo::sockets {
namespace {

struct Peer {
  std::uint64_t number;
};

Peer& add(PeerTable<Peer>& peers) {
  return peers.add([](std::uint64_t number) { return std::make_unique<Peer>(Peer{number}); });
}

TEST(PeerTableTest, APeerIsFoundByItsNumberUntilItIsRemoved) {
  PeerTable<Peer> peers;
  Peer& peer = add(peers);
  const std::uint64_t number = peer.number;

  EXPECT_EQ(peers.find(number), &peer);
  peers.remove(number);
  EXPECT_EQ(peers.find(number), nullptr);
  EXPECT_EQ(peers.size(), 0u);
}

TEST(PeerTableTest, TheNextPeerInAPlaceHasAnotherNumber) {
  PeerTable<Peer> peers;
  const std::uint64_t first = add(peers).number;
  peers.remove(first);
  const std::uint64_t second = add(peers).number;

  EXPECT_NE(first, second);
  EXPECT_EQ(peers.find(first), nullptr);
  EXPECT_NE(peers.find(second), nullptr);
}

TEST(PeerTableTest, APeerMayBeRemovedWhileAllAreVisited) {
  PeerTable<Peer> peers;
  for (int i = 0; i < 5; ++i)
    add(peers);
  peers.for_each([&](Peer& peer) { peers.remove(peer.number); });
  EXPECT_EQ(peers.size(), 0u);
}

}  // namespace
}  // namespace ordo::sockets

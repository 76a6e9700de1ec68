#include "tools/ferrysim/network.h"

#include <gtest/gtest.h>

#include <vector>

namespace ferry::sim {
namespace {

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() {
    machine_.ranks_per_node = machine_.nics_per_node = 1;
    machine_.topology = {.nodes_per_switch = 2, .switches_per_group = 2, .links_between = 2};
    machine_.switch_latency = 100 * kNanosecond;
    machine_.nic = {.latency = 1000 * kNanosecond,
                    .overhead = 0,
                    .gap = 10 * kNanosecond,
                    .gap_per_byte_ps = 1000};
  }

  // When the last byte of each message (from, to, bytes), all sent at 0, is there.
  struct Message {
    uint32_t from;
    uint32_t to;
    uint64_t bytes;
  };
  std::vector<Time> Send(const std::vector<Message>& messages) {
    Network network(&machine_, &queue_, 16);
    arrived_.assign(messages.size(), 0);
    for (size_t i = 0; i < messages.size(); ++i) {
      network.Send(messages[i].from, messages[i].to, messages[i].bytes,
                   {[](void* self, uint64_t which, uint64_t) {
                      auto& test = *static_cast<NetworkTest*>(self);
                      test.arrived_[which] = test.queue_.now() / kNanosecond;
                    },
                    this, i, 0});
    }
    queue_.Run();
    EXPECT_EQ(network.sent(), messages.size());
    EXPECT_EQ(network.delivered(), messages.size());
    return arrived_;
  }

  Machine machine_;
  EventQueue queue_;
  std::vector<Time> arrived_;
};

using Times = std::vector<Time>;

TEST_F(NetworkTest, OneMessageTakesLatencySwitchAndBytes) {
  EXPECT_EQ(Send({{0, 1, 500}}), (Times{1000 + 100 + 500}));
}

TEST_F(NetworkTest, ShortMessagesTakeTheGap) {
  EXPECT_EQ(Send({{0, 1, 1}, {0, 1, 1}}), (Times{1110, 1120}));
}

TEST_F(NetworkTest, ASenderSendsOneAfterTheOther) {
  EXPECT_EQ(Send({{0, 1, 500}, {0, 2, 300}}), (Times{1600, 500 + 1000 + 200 + 300}));
}

TEST_F(NetworkTest, AReceiverTakesOneAfterTheOther) {
  EXPECT_EQ(Send({{0, 1, 500}, {1, 1, 300}}), (Times{1600, 1600 + 300}));
}

TEST_F(NetworkTest, ThoseInOppositeDirectionsDoNotMeet) {
  EXPECT_EQ(Send({{0, 1, 500}, {1, 0, 500}}), (Times{1600, 1600}));
}

// Two links from group 0 to group 1: each message holds them for half its own time.
TEST_F(NetworkTest, GroupsShareTheirLinks) {
  // Nodes 2 and 3 are at the gateway to group 1, whose own gateway has nodes 4 and 5.
  EXPECT_EQ(Send({{2, 4, 500}, {3, 5, 500}}), (Times{1700, 1700 + 250}));
}

TEST_F(NetworkTest, AtomicsTakeTurnsInTheirNic) {
  Network network(&machine_, &queue_, 1);
  machine_.atomic_latency = 600 * kNanosecond;
  std::vector<Time> done;
  struct Seen {
    EventQueue* queue;
    std::vector<Time> times;
  } seen{&queue_, {}};
  for (int i = 0; i < 2; ++i) {
    network.Atomic(0, {[](void* self, uint64_t, uint64_t) {
                         auto& s = *static_cast<Seen*>(self);
                         s.times.push_back(s.queue->now() / kNanosecond);
                       },
                       &seen, 0, 0});
  }
  queue_.Run();
  EXPECT_EQ(seen.times, (Times{610, 620}));
}

TEST(MachineTest, RefusesWhatCannotBe) {
  Machine machine;
  EXPECT_TRUE(CheckMachine(machine).ok());
  machine.ranks_per_node = 6;
  EXPECT_EQ(CheckMachine(machine).message(), "6 ranks of a node cannot share 4 NICs evenly");
  machine.ranks_per_node = 3;
  EXPECT_EQ(CheckMachine(machine).message(),
            "4 NICs cannot be dealt out to 3 ranks of a node evenly");
  machine.ranks_per_node = 0;
  EXPECT_EQ(CheckMachine(machine).message(),
            "a node has 0 ranks and 4 NICs: each must be at least 1");
  machine.ranks_per_node = 2;
  EXPECT_TRUE(CheckMachine(machine).ok());
  machine.nic.gap = 0;
  EXPECT_EQ(CheckMachine(machine).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ferry::sim

// The pairs of two nodes with two NICs each, which move the messages.
#include "daemon/triggered/deferred_nics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shm/atomic.h"
#include "tests/daemon/triggered/nic_nodes.h"

namespace ferry::daemon {
namespace {

class DeferredNicsTest : public testing::Test {
 protected:
  static NodeSettings TwoNics() { return {.has_rails = true, .further_nics = {"127.0.0.2"}}; }
  void Connect(const NodeSettings& of_a = TwoNics(), const NodeSettings& of_b = TwoNics()) {
    nodes_ = std::make_unique<NicNodes>(of_a, of_b);
  }
  // Waits until the second NIC has answered, however long that takes. A NIC that is late, as on a
  // busy machine, does not count as reaching the other node meanwhile: pairs go to the first one.
  void AwaitSecondNic() {
    ASSERT_TRUE(
        nodes_->PollUntil([&] { return b().transport().Reaches(b().peer, 1) == ErrorCode::kOk; }));
  }
  NicNode& a() { return *nodes_->a; }
  NicNode& b() { return *nodes_->b; }
  // Chooses as the receiver's daemon does, once the other node's NICs have answered.
  uint32_t Choose(uint32_t nearest) {
    uint32_t nic = 0;
    ErrorCode code = ErrorCode::kWouldBlock;
    EXPECT_TRUE(nodes_->PollUntil([&] {
      code = b().nics->Choose(b().peer, nearest, &nic);
      return code != ErrorCode::kWouldBlock;
    }));
    EXPECT_EQ(code, ErrorCode::kOk);
    return nic;
  }
  uint32_t OpenPair(size_t bytes, uint32_t nearest = 0, bool is_ready = false) {
    const uint32_t nic = Choose(nearest);
    nodes_->Add(bytes, is_ready, nic);
    nics_.push_back(nic);
    return nic;
  }
  void RunRounds(uint64_t rounds) {
    for (uint64_t round = 1; round <= rounds; ++round) {
      for (size_t i = 0; i < nics_.size(); ++i) {
        nodes_->Start(i, round);
      }
      ASSERT_NO_FATAL_FAILURE(ExpectAllArrive(round));
    }
  }
  void ExpectAllArrive(uint64_t round) {
    for (size_t i = 0; i < nics_.size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(nodes_->ExpectArrives(i, round));
    }
  }

  std::unique_ptr<NicNodes> nodes_;
  std::vector<uint32_t> nics_;  // of the pairs
};

TEST_F(DeferredNicsTest, PairsAreSharedOutAmongTheNics) {
  constexpr uint64_t kRounds = 8;
  Connect();
  ASSERT_NO_FATAL_FAILURE(AwaitSecondNic());
  for (size_t i = 0; i < 6; ++i) {
    OpenPair(3000);
  }
  EXPECT_EQ(nics_, (std::vector<uint32_t>{0, 1, 0, 1, 0, 1}));
  ASSERT_NO_FATAL_FAILURE(RunRounds(kRounds));
  for (size_t nic = 0; nic < 2; ++nic) {
    // A round of a send is two operations, and so is one of a receive: it clears to send.
    EXPECT_EQ(a().counts(nic).on_nic, 3 * 2 * kRounds);
    EXPECT_EQ(b().counts(nic).on_nic, 3 * 2 * kRounds);
    EXPECT_EQ(a().counts(nic).in_software, 0U);
    EXPECT_EQ(a().deferred(nic).statistics().armed, 3 * 2 * kRounds);
  }
  ASSERT_TRUE(nodes_->PollUntil([&] {
    return nodes_->sends[5].pair().rounds == kRounds &&
           nodes_->receives[0].pair().rounds == kRounds;
  }));
  EXPECT_TRUE(a().failed.empty());
  for (const Request& send : nodes_->sends) {
    a().Close(send.number);
    b().Close(send.number);
  }
  const auto is_free = [](const Request& request) { return request.message.use_count() == 1; };
  ASSERT_TRUE(nodes_->PollUntil([&] {
    return std::ranges::all_of(nodes_->sends, is_free) &&
           std::ranges::all_of(nodes_->receives, is_free);
  })) << "each NIC gives the memory back that it had pinned";
}

TEST_F(DeferredNicsTest, ALongMessageHasItsNicAlone) {
  Connect();
  ASSERT_NO_FATAL_FAILURE(AwaitSecondNic());
  OpenPair(1 << 20, /*nearest=*/1);
  for (size_t i = 0; i < 3; ++i) {
    OpenPair(1000, /*nearest=*/1);
  }
  EXPECT_EQ(nics_, (std::vector<uint32_t>{1, 0, 0, 0}));
  ASSERT_NO_FATAL_FAILURE(RunRounds(1));
  a().Close(1);
  b().Close(1);
  EXPECT_EQ(Choose(/*nearest=*/0), 1U) << "what is closed is no load";
}

// Both NICs count what one doorbell does.
TEST_F(DeferredNicsTest, ReadySendsOfOneDoorbellHaveOneTriggerOnEachNic) {
  constexpr size_t kPairs = 6;
  constexpr uint64_t kRounds = 5;
  Connect();
  ASSERT_NO_FATAL_FAILURE(AwaitSecondNic());
  for (size_t i = 0; i < kPairs; ++i) {
    OpenPair(2000, /*nearest=*/0, /*is_ready=*/true);
    nodes_->sends[i].Share(NicNodes::kDoorbell);
  }
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (size_t i = 0; i < kPairs; ++i) {
      nodes_->receives[i].Start(round);
      nodes_->Fill(i, round);
      nodes_->sends[i].Announce(round);
    }
    shm::StoreRelease(nodes_->doorbell().value, round);
    ASSERT_NO_FATAL_FAILURE(ExpectAllArrive(round));
  }
  for (size_t nic = 0; nic < 2; ++nic) {
    EXPECT_EQ(a().deferred(nic).statistics().rings, kRounds);
    EXPECT_EQ(a().deferred(nic).statistics().counters, kPairs / 2 * 2 + 1);
  }
}

TEST_F(DeferredNicsTest, EachNicHasItsEntries) {
  NodeSettings few = TwoNics();
  few.most_entries = 3;
  Connect(few, few);
  ASSERT_NO_FATAL_FAILURE(AwaitSecondNic());
  for (size_t i = 0; i < 6; ++i) {
    OpenPair(1000);
  }
  for (uint64_t round = 1; round <= 4; ++round) {
    for (size_t i = 0; i < 6; ++i) {
      nodes_->Start(i, round);
    }
    a().Poll();
    b().Poll();
    for (size_t nic = 0; nic < 2; ++nic) {
      EXPECT_EQ(a().pool(nic).entries(), 3U);
      EXPECT_LE(a().pool(nic).in_use(), 3U);
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAllArrive(round));
  }
  for (size_t nic = 0; nic < 2; ++nic) {
    EXPECT_GT(a().counts(nic).on_nic, 0U);
    EXPECT_GT(a().counts(nic).in_software, 0U);
    EXPECT_EQ(a().counts(nic).on_nic + a().counts(nic).in_software, 3U * 2 * 4);
  }
}

// No operation of the second NIC is armed before the lost one, which is the send's first.
TEST_F(DeferredNicsTest, AnOperationThatANicLosesFailsItsPairOnly) {
  NodeSettings faulty = TwoNics();
  faulty.fault = "nic.arm:1:lose";
  faulty.timeout_ns = 2'000'000'000;
  Connect(faulty);
  ASSERT_NO_FATAL_FAILURE(AwaitSecondNic());
  OpenPair(1000);
  OpenPair(1000);
  ASSERT_EQ(nics_, (std::vector<uint32_t>{0, 1}));
  nodes_->Start(1, 1);
  ASSERT_TRUE(nodes_->PollUntil([&] { return a().failed.contains(2); }));
  EXPECT_EQ(a().failed.at(2), ErrorCode::kTimeout);
  EXPECT_EQ(nodes_->sends[1].error(), ErrorCode::kTimeout);
  for (uint64_t round = 1; round <= 3; ++round) {
    nodes_->Start(0, round);
    ASSERT_NO_FATAL_FAILURE(nodes_->ExpectArrives(0, round));
  }
  EXPECT_EQ(a().failed.size(), 1U);

  // The receiver's daemon hears of it, and avoids the NIC until the other node has answered there.
  b().Fail(2, ErrorCode::kTimeout);
  b().Close(2);
  EXPECT_NE(b().transport().Reaches(b().peer, 1), ErrorCode::kOk);
  ASSERT_TRUE(
      nodes_->PollUntil([&] { return b().transport().Reaches(b().peer, 1) == ErrorCode::kOk; }));
  EXPECT_EQ(Choose(/*nearest=*/0), 1U);
}

// The other node's packets are checked.
TEST_F(DeferredNicsTest, ANicThatIsNotThereIsRefused) {
  Connect({.has_rails = true});
  EXPECT_EQ(a().nics->size(), 1U);
  EXPECT_EQ(b().nics->size(), 2U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(OpenPair(1000, /*nearest=*/1), 0U);
  }
  for (const uint32_t nic : {1U, 2U, 8U, UINT32_MAX}) {
    EXPECT_EQ(a().nics->Find(nic, a().peer), nullptr) << nic;
  }
  EXPECT_EQ(b().nics->Find(1, b().peer), nullptr) << "the other node has no such NIC";
  ASSERT_NO_FATAL_FAILURE(RunRounds(1));
}

TEST_F(DeferredNicsTest, WithoutEntriesThereIsNone) {
  NodeSettings none = TwoNics();
  none.most_entries = 0;
  Connect(none);
  EXPECT_FALSE(a().nics->any());
  EXPECT_EQ(a().nics->size(), 2U);
  EXPECT_EQ(a().nics->pool(1), nullptr);
  uint32_t nic = 0;
  EXPECT_EQ(a().nics->Choose(a().peer, 0, &nic), ErrorCode::kNotFound);
  EXPECT_EQ(a().nics->NextNs(1), UINT64_MAX);
}

}  // namespace
}  // namespace ferry::daemon

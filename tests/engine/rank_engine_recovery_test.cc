// A successor takes over segments in which a transaction was partly applied: copies of the segments
// stand for those of a dead holder.
#include <gtest/gtest.h>

#include <cstring>

#include "shm/atomic.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::RequestState;

// The segments of one rank at some instant.
class Snapshot {
 public:
  explicit Snapshot(const TestNode& node, uint32_t rank)
      : session_(Bytes(node.session_memory(rank))), inbox_(Bytes(node.inbox_memory(rank))) {}

  void Restore(TestNode& node, uint32_t rank) const {
    std::memcpy(node.session_memory(rank).base(), session_.data(), session_.size());
    std::memcpy(node.inbox_memory(rank).base(), inbox_.data(), inbox_.size());
  }

 private:
  static std::vector<std::byte> Bytes(const shm::SharedMemory& memory) {
    return {memory.base(), memory.base() + memory.size_bytes()};
  }

  std::vector<std::byte> session_;
  std::vector<std::byte> inbox_;
};

// Publishes the words of the latest transaction in the journal again, and applies the first
// `applied` of them, as a holder that is killed then. The entries are still there from the
// transaction itself, which a run on the same state has shown.
void CutTransaction(const SessionView& view, const shm::JournalLayout& journal, uint32_t count,
                    uint32_t applied) {
  view.layout->journal = journal;
  view.layout->journal.count = count;
  for (uint32_t i = 0; i < applied; ++i) {
    const auto [place, value] = journal.entries[i];
    std::byte* const segment = (place & shm::kJournalInbox) != 0 ? view.inbox.base() : view.base();
    const uint64_t offset = place & ~(shm::kJournalInbox | shm::kJournalWide);
    std::memcpy(segment + offset, &value, (place & shm::kJournalWide) != 0 ? 8 : 4);
  }
}

TEST(RankEngineRecoveryTest, FinishesATransactionThatWasAppliedInPart) {
  TestNode node(NodeOptions{.request_limit = 16, .unexpected_limit = 16});
  const uint32_t awaited = node[1].Irecv(0, 7, 16);
  node[0].Isend(1, 7, "awaited");
  const Snapshot before(node, 1);
  // The rest of the run shows the stores of the transaction.
  node.view(1).layout->journal.entries[shm::kJournalEntries - 1] = {};
  std::memset(node.view(1).layout->journal.entries, 0,
              sizeof(node.view(1).layout->journal.entries));
  node[1].Progress();
  ASSERT_EQ(node[1].state(awaited), RequestState::kLanded);
  const shm::JournalLayout journal = node.view(1).layout->journal;
  const shm::RequestLayout landed = node[1].slot(awaited);
  uint32_t count = 0;
  while (count < shm::kJournalEntries && journal.entries[count].place != 0) {
    ++count;
  }
  ASSERT_GT(count, 3U);

  for (uint32_t applied = 0; applied <= count; ++applied) {
    SCOPED_TRACE(testing::Message() << applied << " of " << count << " stores");
    before.Restore(node, 1);
    // The request's plain words are stored before the transaction is published.
    shm::RequestLayout& slot = node[1].slot(awaited);
    const uint32_t posted = slot.state;
    slot = landed;
    slot.state = posted;
    CutTransaction(node.view(1), journal, count, applied);
    node.view(1).inbox.wake()->activity[0] = 0;  // taken by the dead holder
    TestRank successor(node, 1, Runner::kWorker);
    ASSERT_EQ(successor.engine().RecoverFromDeadHolder(), ErrorCode::kOk);
    EXPECT_EQ(node.view(1).layout->journal.recoveries, 1U);
    EXPECT_EQ(node[1].state(awaited), RequestState::kLanded);
    EXPECT_NE(shm::Wake(node.view(1).inbox.wake()).Activity(0), 0U)
        << "it must look at every lane once";
    EXPECT_EQ(successor.Progress(), 0U) << "the message was consumed";
    EXPECT_EQ(std::memcmp(node[1].slot(awaited).payload, "awaited", 7), 0);
  }
}

TEST(RankEngineRecoveryTest, ForgetsNoLaneThatTheDeadHolderHadTaken) {
  TestNode node(NodeOptions{.local_ranks = 3});
  node[0].Isend(2, 7, "a");
  node[1].Isend(2, 7, "b");
  shm::Wake(node.view(2).inbox.wake()).TakeActivity(0);  // and the holder dies
  EXPECT_FALSE(node[2].engine().HasWork());
  EXPECT_EQ(node[2].engine().RecoverFromDeadHolder(), ErrorCode::kOk);
  EXPECT_EQ(node[2].Receive(0, 7, 16).data, "a");
  EXPECT_EQ(node[2].Receive(1, 7, 16).data, "b");
}

TEST(RankEngineRecoveryTest, CorruptJournalPoisonsTheRank) {
  TestNode node;
  shm::JournalLayout& journal = node.view(0).layout->journal;
  journal.count = shm::kJournalEntries + 1;
  EXPECT_EQ(node[0].engine().RecoverFromDeadHolder(), ErrorCode::kCorrupt);
  EXPECT_EQ(node[0].poison(), ErrorCode::kCorrupt);
}

TEST(RankEngineRecoveryTest, IsHarmlessWhenNothingWasCut) {
  TestNode node;
  const uint32_t send = node[0].Isend(1, 7, Pattern(20'000, 1));
  const uint32_t receive = node[1].Irecv(0, 7, 20'000);
  node[1].Progress();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(node[rank].engine().RecoverFromDeadHolder(), ErrorCode::kOk);
  }
  EXPECT_EQ(node[1].Wait(receive).data, Pattern(20'000, 1));
  EXPECT_EQ(node[1].engine().RecoverFromDeadHolder(), ErrorCode::kOk);
  EXPECT_EQ(node[0].Wait(send).error, ErrorCode::kOk);
}

TEST(RankEngineRecoveryTest, PublishesATransferThatWasOnlyMatched) {
  TestNode node;
  const uint32_t receive = node[1].Irecv(0, 7, 20'000);
  const uint32_t send = node[0].Isend(1, 7, Pattern(20'000, 1));
  node[1].Progress();
  // The state is as if the holder had died before it published.
  shm::TransferLayout& transfer = *node.view(0).inbox.transfer(send);
  transfer.state = static_cast<uint32_t>(shm::TransferState::kOffered);
  transfer.destination = {};
  EXPECT_EQ(node[1].engine().RecoverFromDeadHolder(), ErrorCode::kOk);
  EXPECT_EQ(node[1].Wait(receive).data, Pattern(20'000, 1));
}

}  // namespace
}  // namespace ferry::engine

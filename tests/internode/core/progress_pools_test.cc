// Several ranks want staging memory at once: how much each gets, how the pool grows and shrinks,
// and what happens when it is empty.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint32_t kFirst = 0;  // ranks of node 0
constexpr uint32_t kSecond = 1;
constexpr uint32_t kAcross = 2;  // from each of them to its receiver on node 1

class ProgressPoolsTest : public PlaneTest {
 protected:
  // A message from private memory to private memory.
  struct Message : Passage {
    std::vector<std::byte> got;
  };
  Message Begin(uint32_t from, int32_t tag, uint64_t bytes) {
    sent_.resize(std::max<size_t>(sent_.size(), 2));
    if (sent_[from].size() != bytes) {
      sent_[from] = Pattern(bytes, from);
    }
    Message message;
    message.got.resize(bytes);
    static_cast<Passage&>(message) = PlaneTest::Begin(
        from, from + kAcross, Private(sent_[from].data()), Private(message.got.data()), bytes, tag);
    return message;
  }
  void ExpectPassed(const Message& message) {
    ExpectEnd(message);
    EXPECT_TRUE(message.got == sent_[message.from]);
  }
  // So many messages of each sender, at once.
  void ExpectManyPass(int each) {
    std::vector<Message> messages;
    for (int i = 0; i < each; ++i) {
      messages.push_back(Begin(kFirst, i, 2 * kMiB));
      messages.push_back(Begin(kSecond, i, 2 * kMiB));
    }
    for (const Message& message : messages) {
      ExpectPassed(message);
    }
  }
  // With so many blocks, while the receivers' NIC reads nothing.
  void StartGated(uint32_t blocks) {
    config::Options options = FastOptions();
    options.staging_blocks = options.staging_min_blocks = blocks;
    ASSERT_NO_FATAL_FAILURE(Start({2, 2}, options));
    gate(1).closed = true;
  }
  uint32_t WaitingForBlocks(uint32_t who) {
    const RankReport report = plane(NodeOf(who)).Inspect(kJob, who);
    return static_cast<uint32_t>(std::count_if(
        report.transfers.begin(), report.transfers.end(), [](const TransferReport& transfer) {
          return transfer.wants != nullptr && std::strcmp(transfer.wants, "a staging block") == 0;
        }));
  }

  std::vector<std::vector<std::byte>> sent_;  // by rank
};

// ---- Shares ------------------------------------------------------------------------------------

struct Contest {
  const char* name;
  uint32_t staging_blocks;
  const char* weights;
  double first_for_second;  // what the first rank is to move for each byte of the second
};

class ProgressShareTest : public ProgressPoolsTest, public testing::WithParamInterface<Contest> {
 protected:
  static constexpr uint64_t kBytes = 12 * kMiB;
  static constexpr int kMany = 6;  // messages of the second

  // When the blocks of `rank` came back from its peer, and how long they were.
  static std::vector<progress::TraceRecord> BlocksOf(
      const std::vector<progress::TraceRecord>& records, uint32_t rank) {
    std::vector<progress::TraceRecord> blocks;
    std::copy_if(records.begin(), records.end(), std::back_inserter(blocks), [rank](const auto& r) {
      return r.kind == progress::TraceKind::kLent && r.rank == rank;
    });
    return blocks;
  }
  static double BytesBetween(const std::vector<progress::TraceRecord>& blocks, uint64_t begin_ns,
                             uint64_t end_ns) {
    return std::accumulate(blocks.begin(), blocks.end(), 0.0, [&](double sum, const auto& block) {
      const bool inside = begin_ns <= block.end_ns && block.end_ns < end_ns;
      return sum + (inside ? static_cast<double>(block.bytes) : 0);
    });
  }
};

// The first rank sends one long message, the second many, which came first.
TEST_P(ProgressShareTest, RanksMoveBytesByTheirWeightsHoweverManyMessagesTheyHave) {
  config::Options options = FastOptions();
  options.staging_blocks = options.staging_min_blocks = GetParam().staging_blocks;
  options.staging_weights = GetParam().weights;
  options.trace_events = 1 << 17;
  ASSERT_NO_FATAL_FAILURE(Start({2, 2}, options));
  ASSERT_TRUE(plane(0).StartTrace().ok());
  gate(1).closed = true;  // until all of them want blocks
  std::vector<Message> messages;
  for (int i = 0; i < kMany; ++i) {
    messages.push_back(Begin(kSecond, i, kBytes));
  }
  messages.push_back(Begin(kFirst, 0, kBytes));
  ASSERT_TRUE(Meanwhile([&] { return WaitingForBlocks(kFirst) == 1; }));
  gate(1).closed = false;
  for (const Message& message : messages) {
    ExpectPassed(message);
  }
  StatusOr<TraceDump> dump = plane(0).StopTrace();
  ASSERT_TRUE(dump.ok()) << dump.status().ToString();
  const std::vector<progress::TraceRecord> records = dump->ring.Take();
  const auto first = BlocksOf(records, kFirst);
  const auto second = BlocksOf(records, kSecond);
  ASSERT_GT(first.size(), kBytes / options.staging_block_bytes / 2);
  ASSERT_GT(second.size(), first.size() / 4);
  // The time between both having some blocks and one of them having all.
  const uint64_t begin_ns = std::max(first.front().end_ns, second.front().end_ns);
  const uint64_t end_ns = std::min(first.back().end_ns, second.back().end_ns);
  const double ratio =
      BytesBetween(first, begin_ns, end_ns) / BytesBetween(second, begin_ns, end_ns);
  EXPECT_GE(ratio, 0.8 * GetParam().first_for_second);
  EXPECT_LE(ratio, 1.2 * GetParam().first_for_second);
  ExpectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(All, ProgressShareTest,
                         testing::Values(Contest{"Alike", 8, "", 1},
                                         Contest{"AlikeInALargePool", 32, "", 1},
                                         Contest{"TheOneWeighsMore", 16, "0:3,2:3", 3},
                                         Contest{"TheManyWeighMore", 16, "1:2,3:2", 0.5}),
                         [](const auto& info) { return info.param.name; });

// ---- Growing and shrinking ---------------------------------------------------------------------

TEST_F(ProgressPoolsTest, GrowWhileTransfersWaitAndShrinkWhenNobodyNeedsThem) {
  config::Options options = FastOptions();
  options.staging_min_blocks = 2;
  options.staging_blocks = 12;
  options.staging_idle_ms = 20;
  options.operation_timeout_ms = 1000;  // which sets how often the daemon looks
  ASSERT_NO_FATAL_FAILURE(Start({2, 2}, options));
  for (int round = 0; round < 2; ++round) {
    ExpectManyPass(4);
    // Each node uses one half of its pool only.
    for (uint32_t node = 0; node < 2; ++node) {
      const NicStatistics nic = plane(node).Nic();
      EXPECT_EQ(nic.staging_most_blocks, 12U);
      EXPECT_LE(nic.staging_blocks, 7U);
      EXPECT_GE(nic.staging_grown, round == 0 ? 1U : 2U) << node;
    }
    ExpectNothingLeft();
    for (uint32_t node = 0; node < 2; ++node) {
      EXPECT_TRUE(Eventually([&] {
        const NicStatistics nic = plane(node).Nic();
        return nic.staging_blocks == 2 && nic.staging_grown == nic.staging_shrunk;
      })) << plane(node).Nic().staging_blocks;
      // Blocks that the pool gives up are unpinned.
      EXPECT_TRUE(Eventually([&] { return gate(node).pinned == 2; })) << gate(node).pinned;
    }
  }
  EXPECT_TRUE(told_.violations.empty());
}

TEST_F(ProgressPoolsTest, GoOnWithWhatTheyHaveWhenTheNicTakesNoMore) {
  config::Options options = FastOptions();
  options.staging_min_blocks = 2;
  options.staging_blocks = 12;
  options.faults =
      "memory.register:5:LIMIT";  // two for a trial at the start, two for the first blocks
  ASSERT_NO_FATAL_FAILURE(Start({2, 2}, options));
  ExpectManyPass(3);
  EXPECT_EQ(plane(0).Faults(/*release=*/false)[0].state, "done");
  for (const auto& plane : planes_) {
    EXPECT_EQ(plane->Nic().staging_blocks, 2U);
    EXPECT_EQ(plane->Nic().staging_grown, 0U);
  }
  ExpectNothingLeft();
}

// ---- Exhausted ---------------------------------------------------------------------------------

// The receiver's reads stop, and with them all blocks that the sender may lend.
TEST_F(ProgressPoolsTest, WhoFindsNoBlockWaitsSaysSoAndGoesOn) {
  ASSERT_NO_FATAL_FAILURE(StartGated(8));
  const Message hog = Begin(kSecond, 1, kMiB);
  ASSERT_TRUE(Meanwhile([&] { return plane(0).Nic().staging_busy == 4; }));
  EXPECT_EQ(WaitingForBlocks(kSecond), 0U);  // it has as many as it may have
  const Message waiting = Begin(kFirst, 1, kMiB);
  ASSERT_TRUE(Meanwhile([&] { return WaitingForBlocks(kFirst) == 1; }));
  EXPECT_GE(plane(0).Nic().staging_waits, 1U);
  EXPECT_EQ(plane(0).Nic().staging_busy, 4U);
  EXPECT_EQ(plane(0).Inspect(kJob, kFirst).transfers[0].done_bytes, 0U);
  // Messages that need no block pass, between the same nodes and inside the node.
  EXPECT_EQ(Carry(kFirst, kFirst + kAcross, 9), ErrorCode::kOk);
  EXPECT_EQ(Carry(kFirst, kSecond, 9), ErrorCode::kOk);
  EXPECT_EQ(WaitingForBlocks(kFirst), 1U);
  gate(1).closed = false;
  ExpectPassed(hog);
  ExpectPassed(waiting);
  ExpectNothingLeft();
}

// A receiver that finds no block waits, too: the data come from heaps, which need no block at the
// sender.
TEST_F(ProgressPoolsTest, WhoFindsNoBlockToReceiveIntoWaitsSaysSoAndGoesOn) {
  ASSERT_NO_FATAL_FAILURE(StartGated(8));
  const std::vector<std::byte> sent = Pattern(kMiB, 5);
  std::vector<std::vector<std::byte>> got(2, std::vector<std::byte>(kMiB));
  Passage passages[2];
  for (const uint32_t from : {kSecond, kFirst}) {
    std::memcpy(rank(from).heap(), sent.data(), kMiB);
    passages[from] =
        PlaneTest::Begin(from, from + kAcross, InHeap(0), Private(got[from].data()), kMiB, 1);
    ASSERT_TRUE(Meanwhile([&] { return plane(1).Nic().staging_busy == 4; }));
  }
  ASSERT_TRUE(Meanwhile([&] { return WaitingForBlocks(kFirst + kAcross) == 1; }));
  EXPECT_EQ(plane(1).Nic().staging_waits, 1U);
  EXPECT_EQ(plane(0).Nic().staging_blocks, 0U);
  gate(1).closed = false;
  for (const uint32_t from : {kFirst, kSecond}) {
    ExpectEnd(passages[from]);
    EXPECT_TRUE(got[from] == sent);
  }
  ExpectNothingLeft();
}

}  // namespace
}  // namespace ferry::daemon

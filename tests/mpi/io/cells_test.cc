// The cells of a file that nodes write together: each message that is sent is expected, and has
// what was marked and nothing else.
#include "mpi/io/cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

namespace ferry::mpi {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kCell = 64 << 10;

NodePlan PlanOf(std::vector<NodeSpan> nodes, int64_t unit_bytes = kCell) {
  NodePlan plan;
  plan.is_buffered = plan.is_exchanged = true;
  plan.stretch_bytes = kCell;
  plan.unit_bytes = unit_bytes;
  plan.nodes = std::move(nodes);
  return plan;
}

std::vector<int64_t> CellsOf(const Cells& cells) {
  std::vector<int64_t> found;
  for (int64_t begin = cells.Next(0); begin != kNowhere; begin = cells.Next(begin + kCell)) {
    found.push_back(begin / kCell);
  }
  return found;
}

TEST(CellsTest, ANodeGoesThroughThoseThatItOwnsOrHasBytesOf) {
  const NodePlan plan = PlanOf({{kCell + 1, 3 * kCell}, {2 * kCell, 6 * kCell + 1}});
  EXPECT_THAT(CellsOf(Cells(plan, 0)), ElementsAre(1, 2, 4, 6)) << "it owns the even ones";
  EXPECT_THAT(CellsOf(Cells(plan, 1)), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(Cells(plan, 0).IncomingCount(2 * kCell), 1);
  EXPECT_EQ(Cells(plan, 1).IncomingCount(kCell), 1);
  EXPECT_EQ(Cells(plan, 1).IncomingCount(3 * kCell), 0);
}

TEST(CellsTest, PartsWithoutBytesArePassedOver) {
  constexpr int64_t kFar = int64_t{1} << 61;
  const NodePlan plan = PlanOf({{10, 20}, {kFar, kFar + 1}, {kNowhere, 0}});
  EXPECT_THAT(CellsOf(Cells(plan, 0)), testing::Contains(0));
  for (int node = 0; node < 3; ++node) {
    for (const int64_t cell : CellsOf(Cells(plan, node))) {
      EXPECT_TRUE(cell == 0 || cell == kFar / kCell) << cell;
    }
  }
  EXPECT_THAT(CellsOf(Cells(PlanOf({{kNowhere, 0}, {kNowhere, 0}}), 0)), IsEmpty());
}

TEST(CellsTest, OwnersChangeByUnits) {
  const Cells cells(PlanOf({{0, 8 * kCell}, {0, 8 * kCell}}, 2 * kCell), 0);
  EXPECT_EQ(cells.OwnerOf(0), 0);
  EXPECT_EQ(cells.OwnerOf(kCell), 0);
  EXPECT_EQ(cells.OwnerOf(2 * kCell), 1);
  EXPECT_EQ(cells.OwnerOf(4 * kCell), 0);
}

// Each node sends, in its order, what its receivers expect of it, in theirs.
TEST(CellsTest, AllThatIsSentIsExpected) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const int nodes = 1 + static_cast<int>(random() % 5);
    std::vector<NodeSpan> spans;
    for (int node = 0; node < nodes; ++node) {
      const int64_t low = static_cast<int64_t>(random() % (20 * kCell));
      const int64_t high = low + 1 + static_cast<int64_t>(random() % (20 * kCell));
      spans.push_back(random() % 4 == 0 ? NodeSpan() : NodeSpan{low, high});
    }
    const NodePlan plan = PlanOf(spans, kCell * (1 + static_cast<int64_t>(random() % 3)));
    using Message = std::tuple<int64_t, int, int>;  // cell, from, to
    std::vector<Message> sent;
    std::vector<Message> expected;
    for (int node = 0; node < nodes; ++node) {
      const Cells cells(plan, node);
      int64_t before = -1;
      for (const int64_t cell : CellsOf(cells)) {
        EXPECT_GT(cell, before);
        before = cell;
        const int owner = cells.OwnerOf(cell * kCell);
        if (owner != node && cells.HasBytes(node, cell * kCell)) {
          sent.emplace_back(cell, node, owner);
        }
      }
      Message last(-1, -1, node);
      for (auto one = cells.FirstIncoming(); one.begin != kNowhere; one = cells.NextIncoming(one)) {
        const Message next(one.begin / kCell, one.node, node);
        EXPECT_LT(last, next);
        last = next;
        expected.push_back(next);
      }
    }
    std::sort(sent.begin(), sent.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(sent, expected);
  }
}

// ---- Messages -----------------------------------------------------------------------------------

struct Memory {
  explicit Memory(int grain_shift) : marks(static_cast<size_t>(kCell >> grain_shift)) {}
  std::vector<std::byte> marks;
  std::vector<std::byte> bytes{static_cast<size_t>(kCell)};
};

TEST(CellMessageTest, HasWhatWasMarkedAndNothingElse) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const int shift = static_cast<int>(random() % (kMostGrainShift + 1));
    const int64_t grains = kCell >> shift;
    const unsigned share = 1 + random() % 5;  // of the grains are marked, in runs
    Memory from(shift);
    Memory to(shift);
    CellHeader header{5 * kCell, kNowhere, 0, 0};
    bool is_marked = false;
    for (int64_t i = 0; i < grains; ++i) {
      is_marked = random() % 3 == 0 ? random() % 5 < share : is_marked;
      if (is_marked) {
        from.marks[static_cast<size_t>(i)] = std::byte{1};
        header.low = std::min(header.low, header.begin + (i << shift));
        header.high = header.begin + ((i + 1) << shift);
      }
    }
    for (size_t i = 0; i < from.bytes.size(); ++i) {
      from.bytes[i] = static_cast<std::byte>(random());
      to.bytes[i] = static_cast<std::byte>(~static_cast<unsigned>(from.bytes[i]));
    }
    const Memory before = from;
    const std::vector<std::byte> others = to.bytes;
    std::vector<std::byte> message(static_cast<size_t>(MostMessageBytes(kCell)));
    const int64_t length =
        PackCell(header, kCell, shift, from.marks.data(), from.bytes.data(), message.data());
    ASSERT_LE(length, MostMessageBytes(kCell));
    EXPECT_EQ(from.marks, std::vector<std::byte>(from.marks.size())) << "the marks are taken away";
    CellHeader got;
    ASSERT_TRUE(UnpackCell(message.data(), length, header.begin, kCell, shift, to.marks.data(),
                           to.bytes.data(), &got));
    EXPECT_EQ(to.marks, before.marks);
    EXPECT_EQ(got.low, header.low);
    EXPECT_EQ(got.high, header.high);
    for (int64_t i = 0; i < kCell; ++i) {
      const auto at = static_cast<size_t>(i);
      const bool is_given = before.marks[static_cast<size_t>(i >> shift)] != std::byte{0};
      ASSERT_EQ(to.bytes[at], is_given ? before.bytes[at] : others[at]) << i;
    }
  }
}

TEST(CellMessageTest, OthersAreRefused) {
  Memory from(6);
  Memory to(6);
  from.marks[3] = std::byte{1};
  std::vector<std::byte> message(static_cast<size_t>(MostMessageBytes(kCell)));
  const int64_t length = PackCell({kCell, kCell + 192, kCell + 256, 0}, kCell, 6, from.marks.data(),
                                  from.bytes.data(), message.data());
  CellHeader header;
  const auto unpack = [&](int64_t bytes, int64_t begin) {
    return UnpackCell(message.data(), bytes, begin, kCell, 6, to.marks.data(), to.bytes.data(),
                      &header);
  };
  EXPECT_TRUE(unpack(length, kCell));
  EXPECT_FALSE(unpack(length, 2 * kCell)) << "another cell";
  EXPECT_FALSE(unpack(length - 1, kCell)) << "cut short";
  EXPECT_FALSE(unpack(10, kCell));
  message[sizeof(CellHeader)] = std::byte{0xFF};  // more marks than bytes
  EXPECT_FALSE(unpack(length, kCell));
}

}  // namespace
}  // namespace ferry::mpi

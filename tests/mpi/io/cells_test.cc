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

// Each node answers, in the order of cells, what those that asked it expect of it, in theirs.
TEST(CellsTest, AllThatIsAnsweredIsExpected) {
  std::mt19937 random(11);
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
    std::vector<Message> asked;
    std::vector<Message> expected;
    for (int node = 0; node < nodes; ++node) {
      const Cells cells(plan, node);
      for (auto one = cells.FirstIncoming(); one.begin != kNowhere; one = cells.NextIncoming(one)) {
        asked.emplace_back(one.begin / kCell, node, one.node);
      }
      int64_t before = -1;
      for (auto one = cells.FirstAnswer(); one.begin != kNowhere; one = cells.NextAnswer(one)) {
        EXPECT_GT(one.begin, before);
        before = one.begin;
        expected.emplace_back(one.begin / kCell, one.node, node);
      }
    }
    std::sort(asked.begin(), asked.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(asked, expected);
  }
}

TEST(CellsTest, AnOwnerReadsWhatLiesBetweenTheBytesOfAll) {
  const NodePlan plan = PlanOf({{100, 3 * kCell}, {kCell + 7, kCell + 9}, {kNowhere, 0}});
  const Cells cells(plan, 0);
  const auto span = [&](int64_t cell) {
    const NodeSpan in = cells.SpanIn(cell * kCell);
    return std::pair(in.low - cell * kCell, in.high - cell * kCell);
  };
  EXPECT_EQ(span(0), std::pair(int64_t{100}, kCell));
  EXPECT_EQ(span(1), std::pair(int64_t{0}, kCell));
  const Cells short_ones(PlanOf({{kCell + 7, kCell + 9}, {kCell + 8, kCell + 20}}), 0);
  EXPECT_EQ(short_ones.SpanIn(kCell).low, kCell + 7);
  EXPECT_EQ(short_ones.SpanIn(kCell).high, kCell + 20);
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

// A wish that is answered: the bytes that were asked for, up to the end of the file.
TEST(CellMessageTest, AnAnswerHasWhatWasWishedAndIsThere) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const int shift = static_cast<int>(random() % (kMostGrainShift + 1));
    const int64_t grains = kCell >> shift;
    Memory asking(shift);
    Memory owner(shift);
    CellHeader header{3 * kCell, kNowhere, 0, 0};
    bool is_marked = false;
    for (int64_t i = 0; i < grains; ++i) {
      is_marked = random() % 3 == 0 ? random() % 2 == 0 : is_marked;
      if (is_marked) {
        asking.marks[static_cast<size_t>(i)] = std::byte{1};
        header.low = std::min(header.low, header.begin + (i << shift));
        header.high = header.begin + ((i + 1) << shift);
      }
    }
    const std::vector<std::byte> wanted = asking.marks;
    for (size_t i = 0; i < owner.bytes.size(); ++i) {
      owner.bytes[i] = static_cast<std::byte>(random());
      asking.bytes[i] = static_cast<std::byte>(~static_cast<unsigned>(owner.bytes[i]));
    }
    const std::vector<std::byte> before = asking.bytes;
    const std::vector<std::byte> in_file = owner.bytes;
    const int64_t end = round % 3 == 0   ? header.begin + kCell
                        : round % 3 == 1 ? header.begin + static_cast<int64_t>(random() % kCell)
                                         : static_cast<int64_t>(random() % (5 * kCell));
    std::vector<std::byte> wish(static_cast<size_t>(MostMessageBytes(kCell)));
    std::vector<std::byte> answer = wish;
    const int64_t asked = PackCell(header, kCell, shift, asking.marks.data(), nullptr, wish.data());
    EXPECT_LE(asked, 64 + MarkWords(kCell, shift) * 8) << "it has no bytes";
    const int64_t length = AnswerWish(wish.data(), asked, header.begin, kCell, shift, end,
                                      owner.bytes.data(), answer.data());
    ASSERT_GT(length, 0);
    CellHeader got;
    ASSERT_TRUE(UnpackCell(answer.data(), length, header.begin, kCell, shift, nullptr,
                           asking.bytes.data(), &got));
    EXPECT_EQ(asking.marks, std::vector<std::byte>(asking.marks.size()));
    if (header.low < header.high) {
      EXPECT_EQ(got.high, std::clamp(end, header.low, header.high));
    }
    const int64_t there = std::clamp<int64_t>(end - header.begin, 0, kCell);
    for (int64_t i = 0; i < kCell; ++i) {
      const auto at = static_cast<size_t>(i);
      const bool is_wanted = wanted[static_cast<size_t>(i >> shift)] != std::byte{0};
      if (i < there) {
        ASSERT_EQ(asking.bytes[at], is_wanted ? in_file[at] : before[at]) << i;
      } else {
        ASSERT_TRUE(asking.bytes[at] == before[at] || asking.bytes[at] == std::byte{0})
            << i << ": nothing of the owner's memory, behind the end of the file";
      }
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
  Memory asking(6);
  std::vector<std::byte> wish(message.size());
  const int64_t wish_bytes = PackCell({kCell, kCell + 192, kCell + 256, 0}, kCell, 6,
                                      asking.marks.data(), nullptr, wish.data());
  const auto answer = [&](const std::vector<std::byte>& asked, int64_t bytes, int64_t begin) {
    std::vector<std::byte> room(message.size());
    return AnswerWish(asked.data(), bytes, begin, kCell, 6, begin + kCell, to.bytes.data(),
                      room.data());
  };
  EXPECT_GT(answer(wish, wish_bytes, kCell), 0);
  EXPECT_EQ(answer(wish, wish_bytes, 0), 0) << "another cell";
  EXPECT_EQ(answer(wish, wish_bytes - 1, kCell), 0) << "cut short";
  EXPECT_EQ(answer(message, length, kCell), 0) << "a message with bytes";
  message[sizeof(CellHeader)] = std::byte{0xFF};  // more marks than bytes
  EXPECT_FALSE(unpack(length, kCell));
}

}  // namespace
}  // namespace ferry::mpi

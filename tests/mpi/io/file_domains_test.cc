#include "mpi/io/file_domains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "mpi/datatype/basic_type.h"
#include "mpi/datatype/constructors.h"
#include "mpi/io/coverage.h"

namespace ferry::mpi {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr int64_t kMiB = 1 << 20;

// Facts of a rank that has `bytes` in pieces of `piece`, of which the first begins at `low`.
AccessFacts Part(int64_t low, int64_t high, int64_t bytes, int64_t piece, int grain_shift = 3) {
  AccessFacts facts;
  facts.is_sorted = true;
  facts.low = low;
  facts.high = high;
  facts.bytes = bytes;
  facts.piece_bytes = piece;
  facts.grain_shift = static_cast<int8_t>(grain_shift);
  return facts;
}

AccessFacts Nothing() {
  AccessFacts facts;
  facts.is_sorted = true;
  return facts;
}

AccessFacts Hinted(Switch buffering, int64_t aggregators = 0, int64_t buffer_bytes = 16 * kMiB) {
  AccessFacts facts;
  facts.buffering = buffering;
  facts.aggregators = aggregators;
  facts.buffer_bytes = buffer_bytes;
  return facts;
}

const AccessFacts kUsual = Hinted(Switch::kAutomatic);

TEST(PlanTest, ShortPiecesBetweenEachOtherAreBuffered) {
  const std::vector ranks = {Part(64, 8 * kMiB, 4 * kMiB, 64, 6),
                             Part(128, 8 * kMiB + 64, 4 * kMiB, 64, 5), Nothing()};
  const NodePlan plan = PlanFor(ranks, kUsual, true);
  EXPECT_TRUE(plan.is_buffered);
  EXPECT_EQ(plan.low, 64);
  EXPECT_EQ(plan.grain_shift, 5) << "the least of all ranks";
  EXPECT_EQ(plan.aggregators, 1);
  EXPECT_EQ(plan.stretch_bytes, kMostStretch);
  EXPECT_EQ(PlanFor(ranks, kUsual, false).aggregators, 3) << "so many ranks are there";
}

TEST(PlanTest, WhatAManyCanDoAloneIsNotBuffered) {
  const AccessFacts first = Part(0, 8 * kMiB, 4 * kMiB, 64);
  const AccessFacts behind = Part(8 * kMiB, 16 * kMiB, 4 * kMiB, 64);
  EXPECT_FALSE(PlanFor(std::vector{first, behind}, kUsual, true).is_buffered);
  const AccessFacts long_pieces = Part(0, 8 * kMiB, 4 * kMiB, 64 << 10);
  EXPECT_FALSE(PlanFor(std::vector{long_pieces, long_pieces}, kUsual, true).is_buffered);
  const AccessFacts sparse = Part(0, 8 * kMiB, kMiB / 4, 64);
  EXPECT_FALSE(PlanFor(std::vector{sparse, sparse}, kUsual, true).is_buffered);
  const AccessFacts few = Part(0, 1024, 512, 64);
  EXPECT_FALSE(PlanFor(std::vector{few, few}, kUsual, true).is_buffered);
  EXPECT_FALSE(PlanFor(std::vector{first}, kUsual, true).is_buffered) << "alone on its node";
  EXPECT_FALSE(PlanFor(std::vector{Nothing(), Nothing()}, kUsual, true).is_buffered);
}

TEST(PlanTest, OfALocalFileSystemOnlyShortPiecesAreReadTogether) {
  AccessFacts facts = Part(0, 8 * kMiB, 4 * kMiB, 4096);
  EXPECT_TRUE(PlanFor(std::vector{facts, facts}, kUsual, false).is_buffered);
  const AccessFacts remote = facts;
  facts.is_local = true;
  EXPECT_FALSE(PlanFor(std::vector{facts, facts}, kUsual, false).is_buffered);
  EXPECT_TRUE(PlanFor(std::vector{facts, facts}, kUsual, true).is_buffered) << "a write";
  EXPECT_TRUE(PlanFor(std::vector{facts, remote}, kUsual, false).is_buffered) << "not for all";
  facts.piece_bytes = 512;
  EXPECT_TRUE(PlanFor(std::vector{facts, facts}, kUsual, false).is_buffered);
}

TEST(PlanTest, DistantRanksThatArePairsAreNotSparse) {
  const std::vector ranks = {
      Part(0, kMiB, kMiB / 2, 64), Part(64, kMiB + 64, kMiB / 2, 64),
      Part(int64_t{1} << 40, (int64_t{1} << 40) + kMiB, kMiB / 2, 64),
      Part((int64_t{1} << 40) + 64, (int64_t{1} << 40) + kMiB + 64, kMiB / 2, 64)};
  EXPECT_TRUE(PlanFor(ranks, kUsual, true).is_buffered);
}

TEST(PlanTest, HintsCount) {
  const AccessFacts apart = Part(0, 1024, 1024, 1024);
  const AccessFacts behind = Part(1024, 2048, 1024, 1024);
  const std::vector ranks = {apart, behind};
  EXPECT_TRUE(PlanFor(ranks, Hinted(Switch::kEnable), true).is_buffered);
  EXPECT_EQ(PlanFor(ranks, Hinted(Switch::kEnable, 64), true).aggregators, 2);
  EXPECT_EQ(PlanFor(ranks, Hinted(Switch::kEnable, int64_t{1} << 40), true).aggregators, 2);
  const AccessFacts between = Part(0, 8 * kMiB, 4 * kMiB, 64);
  EXPECT_FALSE(PlanFor(std::vector{between, between}, Hinted(Switch::kDisable), true).is_buffered);
  EXPECT_EQ(
      PlanFor(std::vector{between, between}, Hinted(Switch::kEnable, 0, 1), true).stretch_bytes,
      kLeastStretch);
  EXPECT_EQ(StretchBytesFor(0), kLeastStretch);
  EXPECT_EQ(StretchBytesFor(int64_t{1} << 40), kMostStretch);
  EXPECT_EQ(StretchBytesFor(4 * 100'000) % kStretchAlignment, 0);
}

TEST(PlanTest, WhatCannotBeBufferedIsNot) {
  AccessFacts one = Part(0, 8 * kMiB, 4 * kMiB, 64);
  const AccessFacts other = one;
  one.is_sorted = false;
  EXPECT_FALSE(PlanFor(std::vector{one, other}, Hinted(Switch::kEnable), true).is_buffered);
  one.is_sorted = true;
  one.is_fit = false;
  EXPECT_FALSE(PlanFor(std::vector{one, other}, Hinted(Switch::kEnable), true).is_buffered);
  one.is_fit = true;
  EXPECT_TRUE(PlanFor(std::vector{one, other}, Hinted(Switch::kEnable), true).is_buffered);
}

// ---- Nodes that write together ------------------------------------------------------------------

using NodeFacts = std::vector<std::vector<AccessFacts>>;

TEST(PlanExchangeTest, ShortPiecesOfSeveralNodesAreExchanged) {
  const NodeFacts nodes = {{Part(64, 8 * kMiB, 2 * kMiB, 64, 6), Nothing()},
                           {Part(128, 8 * kMiB + 64, 2 * kMiB, 64, 5)},
                           {Nothing()}};
  NodePlan plan;
  ASSERT_TRUE(PlanExchange(nodes, kUsual, kMostStretch, true, &plan));
  EXPECT_TRUE(plan.is_buffered);
  EXPECT_TRUE(plan.is_exchanged);
  EXPECT_EQ(plan.grain_shift, 5) << "the least of all ranks";
  EXPECT_EQ(plan.aggregators, 1);
  EXPECT_EQ(plan.stretch_bytes, 256 << 10) << "several for each node";
  EXPECT_EQ(plan.unit_bytes, plan.stretch_bytes);
  ASSERT_EQ(plan.nodes.size(), 3u);
  EXPECT_EQ(plan.nodes[1].low, 128);
  EXPECT_EQ(plan.nodes[1].high, 8 * kMiB + 64);
  EXPECT_EQ(plan.nodes[2].high, 0);
}

// Nodes of one machine have one page cache; on other file systems each byte is fetched once.
TEST(PlanExchangeTest, ReadsAreExchangedWhereTheFileIsFarAway) {
  AccessFacts one;
  one.is_sorted = true;
  one.bytes = 1 << 20;
  one.piece_bytes = 64;
  one.low = 0;
  one.high = 2 << 20;
  AccessFacts other = one;
  other.low = 64;
  AccessFacts hints;
  hints.buffer_bytes = 16 << 20;
  const auto is_exchanged = [&](bool is_local, Switch buffering) {
    one.is_local = other.is_local = is_local;
    hints.buffering = buffering;
    NodePlan plan;
    return PlanExchange(NodeFacts{{one}, {other}}, hints, kMostStretch, false, &plan);
  };
  EXPECT_TRUE(is_exchanged(false, Switch::kAutomatic));
  EXPECT_FALSE(is_exchanged(true, Switch::kAutomatic));
  EXPECT_TRUE(is_exchanged(true, Switch::kEnable));
  EXPECT_FALSE(is_exchanged(false, Switch::kDisable));
}

TEST(PlanExchangeTest, StripesHaveOneOwner) {
  const AccessFacts part = Part(0, 64 * kMiB, 32 * kMiB, 64);
  AccessFacts hints = kUsual;
  NodePlan plan;
  hints.striping_unit = 4 * kMiB;
  ASSERT_TRUE(PlanExchange(NodeFacts{{part}, {part}}, hints, kMostStretch, true, &plan));
  EXPECT_EQ(plan.unit_bytes, 4 * kMiB);
  EXPECT_EQ(plan.stretch_bytes, kMiB);
  hints.striping_unit = 3 * kLeastStretch;
  ASSERT_TRUE(PlanExchange(NodeFacts{{part}, {part}}, hints, kMostStretch, true, &plan));
  EXPECT_EQ(plan.stretch_bytes, kLeastStretch) << "a part of the unit";
  hints.striping_unit = 1000;
  ASSERT_TRUE(PlanExchange(NodeFacts{{part}, {part}}, hints, kMostStretch, true, &plan));
  EXPECT_EQ(plan.unit_bytes, kMiB) << "no file system has such stripes";
}

TEST(PlanExchangeTest, WhatNodesCanDoAloneIsNotExchanged) {
  NodePlan plan;
  const auto is_exchanged = [&plan](const AccessFacts& one, const AccessFacts& other,
                                    const AccessFacts& hints) {
    return PlanExchange(NodeFacts{{one, one}, {other, other}}, hints, kMostStretch, true, &plan);
  };
  const AccessFacts part = Part(0, 8 * kMiB, 2 * kMiB, 64);
  EXPECT_TRUE(is_exchanged(part, part, kUsual));
  EXPECT_FALSE(is_exchanged(part, part, Hinted(Switch::kDisable)));
  EXPECT_FALSE(is_exchanged(part, Part(8 * kMiB, 16 * kMiB, 2 * kMiB, 64), Hinted(Switch::kEnable)))
      << "behind each other";
  EXPECT_FALSE(is_exchanged(part, Nothing(), Hinted(Switch::kEnable)));
  const AccessFacts longer = Part(0, 8 * kMiB, 2 * kMiB, 16 << 10);
  EXPECT_TRUE(is_exchanged(longer, longer, kUsual));
  AccessFacts local = longer;
  local.is_local = true;
  EXPECT_FALSE(is_exchanged(local, local, kUsual));
  EXPECT_TRUE(is_exchanged(local, local, Hinted(Switch::kEnable)));
  local.piece_bytes = 2048;
  EXPECT_TRUE(is_exchanged(local, local, kUsual));
  const AccessFacts longest = Part(0, 8 * kMiB, 2 * kMiB, 64 << 10);
  EXPECT_FALSE(is_exchanged(longest, longest, kUsual));
  const AccessFacts sparse = Part(0, int64_t{1} << 40, 2 * kMiB, 64);
  EXPECT_FALSE(is_exchanged(sparse, sparse, Hinted(Switch::kEnable)));
  AccessFacts unfit = part;
  unfit.is_fit = false;
  EXPECT_FALSE(is_exchanged(part, unfit, Hinted(Switch::kEnable)));
  AccessFacts alone = part;
  alone.may_exchange = false;
  EXPECT_FALSE(is_exchanged(part, alone, Hinted(Switch::kEnable)));
  EXPECT_TRUE(PlanFor(std::vector{alone, part}, kUsual, true).is_buffered) << "inside the node";
  unfit = part;
  unfit.is_sorted = false;
  EXPECT_FALSE(is_exchanged(part, unfit, Hinted(Switch::kEnable)));
}

// ---- What accesses by views are -----------------------------------------------------------------

Ref<Datatype> Byte() { return MakeRef<Datatype>(*FindBasicType(MPI_BYTE)); }

std::shared_ptr<const View> OfBytes() {
  const Ref<Datatype> byte = Byte();
  return View::Make(0, *byte, *byte, "native", true).value();
}

// `count` blocks of `block` bytes, `stride` apart, in an element of `extent`.
std::shared_ptr<const View> Blocks(int64_t displacement, int64_t count, int64_t block,
                                   int64_t stride, int64_t extent) {
  const Ref<Datatype> byte = Byte();
  Ref<Datatype> vector = MakeHvector(CountForm::kLarge, count, block, stride, *byte).value();
  Ref<Datatype> filetype = MakeResized(CountForm::kLarge, 0, extent, *vector).value();
  filetype->Commit();
  return View::Make(displacement, *byte, *filetype, "native", true).value();
}

AccessFacts FactsOf(const View& view, int64_t position, int64_t bytes) {
  AccessFacts facts;
  DescribeAccess(view, ShapeOf(view), position, bytes, &facts);
  return facts;
}

TEST(DescribeAccessTest, OfBlocks) {
  const auto view = Blocks(128, 10, 64, 256, 2560);
  const AccessFacts facts = FactsOf(*view, 64, 640);
  EXPECT_TRUE(facts.is_sorted);
  EXPECT_EQ(facts.least_piece, 64);
  EXPECT_EQ(facts.bytes, 640);
  EXPECT_EQ(facts.low, 128 + 256);
  EXPECT_EQ(facts.high, 128 + 2560 + 64);
  EXPECT_EQ(facts.piece_bytes, 64);
  EXPECT_EQ(facts.grain_shift, 6);
  EXPECT_EQ(FactsOf(*view, 16, 640).grain_shift, 4) << "within a block";
  EXPECT_EQ(FactsOf(*view, 64, 12).grain_shift, 2) << "to within a block";
  EXPECT_EQ(FactsOf(*Blocks(130, 10, 64, 256, 2560), 64, 640).grain_shift, 1);
  EXPECT_EQ(FactsOf(*Blocks(128, 10, 64, 256, 2568), 64, 1280).grain_shift, 3);
}

TEST(DescribeAccessTest, OfBytesInARow) {
  const auto view = OfBytes();
  const AccessFacts facts = FactsOf(*view, 4096, 1 << 20);
  EXPECT_EQ(facts.least_piece, kNowhere);
  EXPECT_TRUE(facts.is_sorted);
  EXPECT_EQ(facts.low, 4096);
  EXPECT_EQ(facts.high, 4096 + (1 << 20));
  EXPECT_EQ(facts.grain_shift, 12);
  EXPECT_EQ(facts.piece_bytes, 1 << 20);
  EXPECT_EQ(FactsOf(*view, 5, 100).grain_shift, 0);
  EXPECT_EQ(FactsOf(*view, 5, 0).low, kNowhere) << "no bytes";
}

TEST(DescribeAccessTest, NoPieceIsShorterThanTheLeast) {
  EXPECT_EQ(FactsOf(*Blocks(3, 10, 32768, 65536, 655360), 0, 5).least_piece, 32768)
      << "wherever the pieces lie, and however few bytes of them are accessed";
  EXPECT_EQ(FactsOf(*Blocks(0, 10, 32768, 32769, 655360), 0, 5).least_piece, 1)
      << "a number that is safe, if not the greatest";
  EXPECT_EQ(LongPiece(true, true), 32768);
  EXPECT_EQ(LongPiece(false, true), 1024);
  EXPECT_EQ(LongPiece(false, false), 32768);
}

TEST(DescribeAccessTest, TilesBetweenTilesAreNotSorted) {
  EXPECT_FALSE(ShapeOf(*Blocks(0, 2, 8, 64, 16)).is_sorted);
  EXPECT_TRUE(ShapeOf(*Blocks(0, 2, 8, 64, 72)).is_sorted);
}

TEST(FirstPositionTest, IsThatOfTheFirstByteBehind) {
  const auto view = Blocks(1000, 10, 8, 32, 320);
  EXPECT_EQ(FirstPositionAt(*view, 0, 0, 800), 0);
  EXPECT_EQ(FirstPositionAt(*view, 1000, 0, 800), 0);
  EXPECT_EQ(FirstPositionAt(*view, 1003, 0, 800), 3);
  EXPECT_EQ(FirstPositionAt(*view, 1008, 0, 800), 8) << "in a gap";
  EXPECT_EQ(FirstPositionAt(*view, 1032, 0, 800), 8);
  EXPECT_EQ(FirstPositionAt(*view, 1000 + 3200, 0, 800), 800) << "none is there";
  EXPECT_EQ(FirstPositionAt(*view, 0, 100, 800), 100);
  EXPECT_EQ(FirstPositionAt(*view, 5000, 100, 100), 100);
}

// ---- Coverage -----------------------------------------------------------------------------------

std::vector<std::pair<int64_t, int64_t>> Taken(Coverage& coverage, int64_t begin, int64_t end) {
  std::vector<std::pair<int64_t, int64_t>> runs;
  coverage.Take(begin, end, [&](int64_t at, int64_t length) { runs.emplace_back(at, length); });
  return runs;
}

TEST(CoverageTest, RunsAreWhatWasMarked) {
  std::vector<std::byte> marks(1024);
  Coverage coverage(marks.data(), 3);
  EXPECT_THAT(Taken(coverage, 0, 8192), IsEmpty());
  coverage.Mark(8, 8);
  coverage.Mark(32, 64);
  coverage.Mark(16, 8);
  coverage.Mark(8184, 8);
  coverage.Mark(40, 8);  // again
  EXPECT_THAT(Taken(coverage, 0, 8192), ElementsAre(Pair(8, 16), Pair(32, 64), Pair(8184, 8)));
  EXPECT_THAT(Taken(coverage, 0, 8192), IsEmpty()) << "the marks are gone";
}

TEST(CoverageTest, NothingOutsideIsLookedAt) {
  std::vector<std::byte> marks(64, std::byte{1});
  Coverage coverage(marks.data(), 0);
  EXPECT_THAT(Taken(coverage, 10, 20), ElementsAre(Pair(10, 10)));
  EXPECT_THAT(Taken(coverage, 0, 64), ElementsAre(Pair(0, 10), Pair(20, 44)));
}

}  // namespace
}  // namespace ferry::mpi

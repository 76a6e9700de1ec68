// Views of files, without a file: which filetypes are views, and where their bytes lie.
#include "mpi/io/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ferry/mpi/mpi.h"
#include "mpi/datatype/basic_type.h"
#include "mpi/datatype/constructors.h"
#include "mpi/datatype/order.h"

namespace ferry::mpi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Pieces = std::vector<std::pair<int64_t, int64_t>>;

Ref<Datatype> Basic(MPI_Datatype handle) { return MakeRef<Datatype>(*FindBasicType(handle)); }

Ref<Datatype> Committed(MadeDatatype made) {
  Ref<Datatype> type = std::move(made).value();
  type->Commit();
  return type;
}

Ref<Datatype> Vector(int64_t count, int64_t length, int64_t stride, Datatype& old, int64_t extent) {
  Ref<Datatype> vector = Committed(MakeVector(CountForm::kInt, count, length, stride, old));
  return extent == 0 ? vector : Committed(MakeResized(CountForm::kInt, 0, extent, *vector));
}

class ViewTest : public testing::Test {
 protected:
  std::shared_ptr<const View> Make(Datatype& filetype, int64_t displacement = 0) {
    auto view = View::Make(displacement, *byte_, filetype, "native", true);
    EXPECT_TRUE(view.ok()) << view.failure().text;
    return std::move(view).value();
  }
  static Pieces PiecesOf(const View& view, int64_t position, int64_t bytes) {
    Pieces pieces;
    view.ForEachPiece(position, bytes, [&pieces](int64_t place, int64_t length) {
      pieces.emplace_back(place, length);
    });
    return pieces;
  }

  const Ref<Datatype> byte_ = Basic(MPI_BYTE);
  const Ref<Datatype> int_ = Basic(MPI_INT);
};

TEST_F(ViewTest, DenseViewsAreOnePiece) {
  const auto view = Make(*int_, 100);
  EXPECT_TRUE(view->is_dense());
  EXPECT_THAT(PiecesOf(*view, 3, 1000), ElementsAre(std::pair(103, 1000)));
  EXPECT_EQ(view->EndOffset(100), 0);
  EXPECT_EQ(view->EndOffset(107), 7);
  EXPECT_EQ(view->EndOffset(20), 0);
}

TEST_F(ViewTest, PiecesFollowTheTiles) {
  const Ref<Datatype> type = Vector(2, 2, 3, *byte_, 8);  // bytes 0, 1, 3, 4 of each 8
  const auto view = Make(*type, 10);
  EXPECT_FALSE(view->is_dense());
  EXPECT_THAT(PiecesOf(*view, 1, 6),
              ElementsAre(std::pair(11, 1), std::pair(13, 2), std::pair(18, 2), std::pair(21, 1)));
  EXPECT_EQ(view->PlaceOf(4), 18);
  const Bounds span = view->SpanOf(1, 6);
  EXPECT_LE(span.low, 11);
  EXPECT_GE(span.high, 22);
  const std::vector<int64_t> ends = {0, 1, 2, 2, 3, 4, 4, 4, 4, 5};
  for (size_t i = 0; i < ends.size(); ++i) {
    EXPECT_EQ(view->EndOffset(10 + static_cast<int64_t>(i)), ends[i]) << i;
  }
}

TEST_F(ViewTest, TilesMayLieInsideEachOther) {
  const Ref<Datatype> type = Vector(3, 1, 4, *byte_, 1);
  const auto view = Make(*type);
  EXPECT_THAT(PiecesOf(*view, 0, 6),
              ElementsAre(std::pair(0, 1), std::pair(4, 1), std::pair(8, 1), std::pair(1, 1),
                          std::pair(5, 1), std::pair(9, 1)));
  // The last etype that begins before byte 6: byte 5, of tile 5, which is its first.
  EXPECT_EQ(view->EndOffset(6), 16);
}

TEST_F(ViewTest, PlacesBeyondTheLargestNumberAreRefused) {
  const Ref<Datatype> type = Committed(MakeResized(CountForm::kInt, 0, int64_t{1} << 40, *int_));
  const auto view = Make(*type);
  EXPECT_TRUE(view->CheckReach(4 * ((1 << 23) - 2), 4).ok());
  EXPECT_EQ(view->PlaceOf(4 * 1000), int64_t{1000} << 40);
  EXPECT_EQ(view->CheckReach(int64_t{4} << 23, 4).error_class, MPI_ERR_ARG);
  EXPECT_EQ(view->CheckReach(INT64_MAX - 2, 4).error_class, MPI_ERR_ARG);
  EXPECT_EQ(view->PositionOf(-1).failure().error_class, MPI_ERR_ARG);
}

TEST_F(ViewTest, EmptyFiletypesHaveNothing) {
  const Ref<Datatype> none = Committed(MakeContiguous(CountForm::kInt, 0, *byte_));
  const auto view = Make(*none);
  EXPECT_TRUE(view->is_empty());
  EXPECT_TRUE(view->CheckReach(0, 0).ok());
  EXPECT_THAT(view->CheckReach(0, 1).text, HasSubstr("empty"));
  EXPECT_EQ(view->EndOffset(1000), 0);
}

// ---- The rules of filetypes ---------------------------------------------------------------------

struct Rule {
  const char* name;
  std::vector<int64_t> lengths;
  std::vector<int64_t> places;  // of ints, in bytes
  bool of_ints;                 // the etype is an int, else a byte
  bool may_write;
  const char* text;  // of the failure; empty: it is a view
};

class RuleTest : public testing::TestWithParam<Rule> {};

TEST_P(RuleTest, IsKept) {
  const Rule& rule = GetParam();
  const Ref<Datatype> byte = Basic(MPI_BYTE);
  const Ref<Datatype> four = Basic(MPI_INT);
  const Ref<Datatype> type =
      Committed(MakeHindexed(CountForm::kInt, rule.lengths, rule.places, *four));
  const auto view = View::Make(0, rule.of_ints ? *four : *byte, *type, "native", rule.may_write);
  EXPECT_EQ(view.ok(), std::string(rule.text).empty()) << view.failure().text;
  if (!view.ok()) {
    EXPECT_EQ(view.failure().error_class, MPI_ERR_ARG);
    EXPECT_THAT(view.failure().text, HasSubstr(rule.text));
  }
}

INSTANTIATE_TEST_SUITE_P(
    , RuleTest,
    testing::Values(Rule{"InOrder", {1, 2}, {0, 8}, true, true, ""},
                    Rule{"Decreasing", {1, 1}, {8, 0}, false, false, "decrease"},
                    Rule{"Negative", {1, 1}, {-4, 4}, true, true, "negative"},
                    Rule{"OverlapWritten", {2, 1}, {0, 4}, true, true, "overlap"},
                    Rule{"OverlapRead", {2, 1}, {0, 4}, true, false, ""},
                    Rule{"OddHoles", {1, 1}, {0, 6}, true, true, "holes"},
                    Rule{"OddHolesOfBytes", {1, 1}, {0, 6}, false, true, ""}),
    [](const auto& info) { return std::string(info.param.name); });

// The order of a loop of loops is that of its runs one by one.
TEST(RunOrderTest, LoopsAreAsTheirRuns) {
  const Ref<Datatype> byte = Basic(MPI_BYTE);
  for (const int64_t outer : {int64_t{5}, int64_t{7}, int64_t{8}, int64_t{30}}) {
    const Ref<Datatype> inner = Committed(MakeVector(CountForm::kInt, 3, 1, 3, *byte));  // 0 3 6
    const Ref<Datatype> type = Committed(MakeHvector(CountForm::kInt, 4, 1, outer, *inner));
    RunOrder expected;
    int64_t before = INT64_MIN;
    int64_t high = INT64_MIN;
    type->ForEachRun(1, 0, type->size_bytes(), [&](int64_t place, int64_t length) {
      expected.is_monotone = expected.is_monotone && place >= before;
      expected.is_disjoint = expected.is_disjoint && place >= high;
      before = place;
      high = std::max(high, place + length);
    });
    const RunOrder order = OrderOf(*type);
    EXPECT_EQ(order.is_monotone, expected.is_monotone) << outer;
    EXPECT_EQ(order.is_disjoint, expected.is_disjoint) << outer;
    EXPECT_EQ(order.high, high) << outer;
    EXPECT_EQ(order.first, 0);
  }
}

}  // namespace
}  // namespace ferry::mpi

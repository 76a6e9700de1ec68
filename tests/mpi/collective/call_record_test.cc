// Ranks compare their calls: what they find out.
#include "client/mpi/collective/call_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace ferry::mpi {
namespace {

using Kind = CallMismatch::Kind;
using testing::HasSubstr;

CallRecord Record(const char* call, Collective collective) {
  CallRecord record;
  SetName(&record, call);
  record.collective = static_cast<uint8_t>(collective);
  return record;
}

CallRecord Bcast(int root, DataRecord data) {
  CallRecord record = Record("MPI_Bcast", Collective::kBcast);
  record.root = root;
  record.has_data = 1;
  record.data = data;
  return record;
}

TEST(CallRecordTest, CallsThatBelongTogetherAreNoMismatch) {
  EXPECT_FALSE(FindMismatch(std::vector{Bcast(1, {4, 7, 16}), Bcast(1, {4, 7, 16})}).is_one());
  EXPECT_FALSE(FindMismatch(std::vector{Bcast(1, {4, 7, 16})}).is_one());
}

TEST(CallRecordTest, CountsMayBePassedInEitherWay) {
  CallRecord large = Record("MPI_Bcast_c", Collective::kBcast);
  EXPECT_STREQ(large.name, "MPI_Bcast");
}

TEST(CallRecordTest, TheFirstThatDiffersIsNamedWithRankZero) {
  const std::vector records{Bcast(0, {4, 7, 16}), Bcast(0, {4, 7, 16}), Bcast(2, {4, 7, 16})};
  const CallMismatch found = FindMismatch(records);
  EXPECT_EQ(found.kind, Kind::kRoot);
  EXPECT_EQ(found.text, "rank 2 passed the root 2, but rank 0 the root 0");
}

TEST(CallRecordTest, AnotherCallCountsBeforeAnythingElse) {
  CallRecord failed = Record("MPI_Reduce", Collective::kReduce);
  failed.has_failed = 1;
  EXPECT_EQ(FindMismatch(std::vector{Bcast(0, {}), failed}).kind, Kind::kCall);
}

TEST(CallRecordTest, WhoFailedIsQuoted) {
  CallRecord failed = Bcast(0, {});
  failed.has_failed = 1;
  SetText(failed.text, "the root 9 is no rank");
  const CallMismatch found = FindMismatch(std::vector{Bcast(0, {}), failed});
  EXPECT_EQ(found.kind, Kind::kFailed);
  EXPECT_THAT(found.text, HasSubstr("rank 1 could not go through with it: the root 9 is no rank"));
}

TEST(CallRecordTest, TypesOfAsManyElementsAreToldFromCounts) {
  EXPECT_EQ(FindMismatch(std::vector{Bcast(0, {4, 7, 16}), Bcast(0, {4, 8, 16})}).kind,
            Kind::kType);
  EXPECT_EQ(FindMismatch(std::vector{Bcast(0, {4, 7, 16}), Bcast(0, {5, 9, 20})}).kind,
            Kind::kCount);
}

TEST(CallRecordTest, OfPackedDataBytesCount) {
  EXPECT_FALSE(FindMismatch(std::vector{Bcast(0, {16, 0, 16}), Bcast(0, {4, 8, 16})}).is_one());
  EXPECT_EQ(FindMismatch(std::vector{Bcast(0, {16, 0, 16}), Bcast(0, {4, 8, 20})}).kind,
            Kind::kCount);
}

// A rank beside the root of a gather between groups has nothing to compare.
TEST(CallRecordTest, WhoSaysNothingIsNotWhatOthersAreComparedWith) {
  CallRecord nothing = Bcast(0, {});
  nothing.has_data = 0;
  const std::vector records{nothing, Bcast(0, {4, 7, 16}), Bcast(0, {5, 7, 20})};
  EXPECT_THAT(FindMismatch(records).text, HasSubstr("rank 2 passed 5 elements (20 bytes), but rank "
                                                    "1 4 elements (16 bytes)"));
}

TEST(CallRecordTest, OfIntercommunicatorsTheCallAndTheOperationCount) {
  CallRecord a = Bcast(-2, {4, 7, 16});
  CallRecord b = Bcast(0, {9, 9, 9});
  a.is_inter = b.is_inter = 1;
  EXPECT_FALSE(FindMismatch(std::vector{a, b}).is_one());
  SetText(a.op, "MPI_SUM");
  EXPECT_EQ(FindMismatch(std::vector{a, b}).kind, Kind::kOp);
}

TEST(CallRecordTest, ListsAreComparedPairByPair) {
  const std::vector<CallRecord> records(2);
  const DataRecord one{1, 7, 4}, two{2, 8, 8}, nothing{.elements = kSaysNothing};
  // By rank: the lists of what it sends to each, and of what it receives from each.
  std::vector lists{one, one, one, two, one, one, one, one};
  const CallMismatch found = FindListMismatch(records, lists);
  EXPECT_EQ(found.kind, Kind::kCount);
  EXPECT_EQ(found.text,
            "rank 1 passed 1 elements (4 bytes) for rank 0, which expects 2 elements "
            "(8 bytes)");
  lists[3] = nothing;
  EXPECT_FALSE(FindListMismatch(records, lists).is_one());
}

TEST(CallRecordTest, TextsAreCutWhereThereIsNoRoom) {
  char text[8];
  SetText(text, "0123456789");
  EXPECT_STREQ(text, "0123456");
}

}  // namespace
}  // namespace ferry::mpi

#include "tools/ferryrun/same_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ferry::tools {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kNow = 1'000'000'000;
constexpr uint64_t kAll = UINT64_MAX;

std::string LineOf(uint32_t rank) {
  return "libferry: rank " + std::to_string(rank) + ": MPI_Init: no\n";
}

TEST(SameWordsTest, ShowsTheFirstAndCountsTheOthers) {
  SameWords words;
  EXPECT_EQ(words.Sift(7, LineOf(7), kNow), LineOf(7));
  EXPECT_EQ(words.deadline_ns(), 0u);
  for (uint32_t rank = 0; rank < 256; ++rank) {
    if (rank != 7) {
      EXPECT_EQ(words.Sift(rank, LineOf(rank), kNow + rank), "");
    }
  }
  EXPECT_EQ(words.deadline_ns(), kNow + 255 + SameWords::kQuietNs);
  EXPECT_THAT(words.TakeDue(words.deadline_ns() - 1), IsEmpty());
  EXPECT_THAT(words.TakeDue(words.deadline_ns()),
              ElementsAre("the same from 255 more ranks (0-6, 8-255): MPI_Init: no"));
  EXPECT_EQ(words.deadline_ns(), 0u);
  EXPECT_THAT(words.TakeDue(kAll), IsEmpty());
}

TEST(SameWordsTest, LateOnesAreToldOfByThemselves) {
  SameWords words;
  words.Sift(0, LineOf(0), kNow);
  words.Sift(1, LineOf(1), kNow);
  words.TakeDue(kAll);
  EXPECT_EQ(words.Sift(2, LineOf(2), kNow), "");
  EXPECT_THAT(words.TakeDue(kAll), ElementsAre("the same from 1 more rank (2): MPI_Init: no"));
}

TEST(SameWordsTest, ALongBurstIsToldOfInTime) {
  SameWords words;
  words.Sift(0, LineOf(0), kNow);
  uint64_t now_ns = kNow;
  for (uint32_t rank = 1; rank < 60; ++rank, now_ns += SameWords::kQuietNs / 2) {
    words.Sift(rank, LineOf(rank), now_ns);
  }
  EXPECT_EQ(words.deadline_ns(), kNow + SameWords::kPatienceNs);
}

TEST(SameWordsTest, ARankThatRepeatsItselfIsHeard) {
  SameWords words;
  words.Sift(0, LineOf(0), kNow);
  words.Sift(1, LineOf(1), kNow);
  EXPECT_EQ(words.Sift(0, LineOf(0), kNow), LineOf(0));
  EXPECT_EQ(words.Sift(1, LineOf(1), kNow), "");
  EXPECT_THAT(words.TakeDue(kAll), ElementsAre("the same from 1 more rank (1): MPI_Init: no",
                                               "the same from 1 more rank (1): MPI_Init: no"));
}

TEST(SameWordsTest, OtherWordsAreShown) {
  SameWords words;
  EXPECT_EQ(words.Sift(0, LineOf(0), kNow), LineOf(0));
  EXPECT_EQ(words.Sift(1, "libferry: MPI_Init: maybe\n", kNow), "libferry: MPI_Init: maybe\n");
  // Of another rank than the one that says it: another thing.
  EXPECT_EQ(words.Sift(1, LineOf(0), kNow), LineOf(0));
  EXPECT_EQ(words.deadline_ns(), 0u);
}

TEST(SameWordsTest, TheProgramsOwnLinesAreAllThere) {
  SameWords words;
  words.Sift(0, LineOf(0), kNow);
  const std::string own = "warning: no\n\nrank 1: MPI_Init: no\n libferry: no\nx";
  EXPECT_EQ(words.Sift(0, own, kNow), own);
  EXPECT_EQ(words.Sift(1, own.substr(0, own.size() - 1) + LineOf(1) + "50%", kNow),
            own.substr(0, own.size() - 1) + "50%");
  // In the middle of a line, and in pieces: not known for the library's.
  EXPECT_EQ(words.Sift(1, LineOf(1), kNow), LineOf(1));
  EXPECT_EQ(words.Sift(2, "libferry: rank 2: MPI", kNow), "libferry: rank 2: MPI");
  EXPECT_EQ(words.Sift(2, "_Init: no\n", kNow), "_Init: no\n");
  EXPECT_EQ(words.Sift(2, LineOf(2), kNow), "");
}

TEST(SameWordsTest, RemembersSomeAndForgetsNobody) {
  SameWords words;
  EXPECT_TRUE(words.IsNew(0, "first", kNow));
  EXPECT_FALSE(words.IsNew(1, "first", kNow));
  for (int i = 0; i < 64; ++i) {
    EXPECT_TRUE(words.IsNew(0, std::to_string(i), kNow));
  }
  EXPECT_NE(words.deadline_ns(), 0u);
  EXPECT_THAT(words.TakeDue(kNow), ElementsAre("the same from 1 more rank (1): first"));
  EXPECT_TRUE(words.IsNew(2, "first", kNow));
}

TEST(SameWordsTest, ListsOfRanksHaveAnEnd) {
  SameWords words;
  for (uint32_t rank = 0; rank < 1024; rank += 2) {
    words.IsNew(rank, "odd", kNow);
  }
  EXPECT_THAT(words.TakeDue(kAll),
              ElementsAre("the same from 511 more ranks (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, "
                          "24, 26, 28, 30, 32, ...): odd"));
}

}  // namespace
}  // namespace ferry::tools

// How long a program will be away (client/p2p/absence.h).
#include "client/p2p/absence.h"

#include <gtest/gtest.h>

namespace ferry::client {
namespace {

constexpr uint64_t kAtOnceNs = 2'000;
constexpr uint64_t kComputesNs = 300'000;

TEST(AbsenceTest, TheFirstTimeItMayBeLong) {
  Absence absence;
  EXPECT_FALSE(absence.has_begun());
  EXPECT_TRUE(absence.Begin(1));
  EXPECT_TRUE(absence.has_begun());
}

TEST(AbsenceTest, ManyInARowAreShort) {
  Absence absence;
  uint64_t now_ns = 1;
  (void)absence.Begin(now_ns);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(absence.Begin(now_ns += kAtOnceNs));
  }
}

TEST(AbsenceTest, OneThatComputesDoesSoAgain) {
  Absence absence;
  uint64_t now_ns = 1;
  (void)absence.Begin(now_ns);
  (void)absence.Begin(now_ns += kAtOnceNs);
  absence.End(now_ns += kComputesNs);
  EXPECT_FALSE(absence.has_begun());
  absence.End(now_ns += kAtOnceNs);  // it was there: that says nothing
  EXPECT_TRUE(absence.Begin(now_ns += kComputesNs));
}

}  // namespace
}  // namespace ferry::client

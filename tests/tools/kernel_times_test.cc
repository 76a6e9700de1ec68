// The output of ferry-kernel-meter, and the cutovers that follow from it.
#include "tools/tune/kernel_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ferry::tools {
namespace {

using testing::HasSubstr;

KernelTimes Read(std::string_view text) {
  StatusOr<KernelTimes> times = ReadKernelTimes(text);
  EXPECT_TRUE(times.ok()) << times.status().message();
  return times.ok() ? std::move(*times) : KernelTimes{};
}

std::string CutoversOf(std::string_view stores, std::string_view ferryd) {
  return shmem::FormatCutovers(CutoversFrom(CompareKernels(Read(stores), Read(ferryd))));
}

TEST(KernelTimesTest, AreRead) {
  const KernelTimes times = Read("put 16 4096 812.5\nget 1 8 30\n");
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times.at({FERRY_SHMEM_PUT, 16, 4096}), 812.5);
  EXPECT_EQ(times.at({FERRY_SHMEM_GET, 1, 8}), 30);
}

TEST(KernelTimesTest, RefuseOtherLines) {
  for (const std::string line : {"add 1 8 3", "put 1 8", "put one 8 3", "put 0 8 3", "put 1 8 3 4",
                                 "put 1 8 -3", "put 1 8 0", "", "broadcast 1 8 3"}) {
    const StatusOr<KernelTimes> times = ReadKernelTimes("put 1 8 3\n" + line + "\n");
    EXPECT_EQ(times.status().code(), ErrorCode::kCorrupt) << line;
    EXPECT_THAT(times.status().message(), HasSubstr("\"" + line + "\", which means nothing"));
  }
}

TEST(KernelTimesTest, TheShorterOnesCount) {
  KernelTimes times = Read("put 1 8 30\nput 1 16 50");
  KeepShorter(Read("put 1 8 40\nput 1 16 45\nget 1 8 7"), &times);
  EXPECT_EQ(times, Read("put 1 8 30\nput 1 16 45\nget 1 8 7"));
}

TEST(KernelCutoversTest, LieBetweenTheSizes) {
  EXPECT_EQ(CutoversOf("put 1 64 10\nput 1 256 20\nput 1 1024 80",
                       "put 1 64 30\nput 1 256 30\nput 1 1024 40"),
            "put=512");
}

// A size that ferryd wins below one that it loses is noise.
TEST(KernelCutoversTest, HoldForAllLargerSizes) {
  EXPECT_EQ(CutoversOf("get 1 64 30\nget 1 256 20\nget 1 1024 80",
                       "get 1 64 10\nget 1 256 30\nget 1 1024 40"),
            "get=512");
}

TEST(KernelCutoversTest, AreNoneWhereStoresAreAsGood) {
  EXPECT_EQ(CutoversOf("put 1 64 10\nput 1 256 100", "put 1 64 30\nput 1 256 96"), "");
  EXPECT_EQ(CutoversOf("", ""), "");
  EXPECT_EQ(CutoversOf("put 1 64 10", "get 1 64 5"), "") << "measured one way only";
}

TEST(KernelCutoversTest, AreTheFirstSizeWhereFerrydAlwaysWins) {
  EXPECT_EQ(CutoversOf("put 1 64 10\nput 1 256 100", "put 1 64 3\nput 1 256 4"), "put=64");
}

TEST(KernelCutoversTest, DifferByThreads) {
  EXPECT_EQ(CutoversOf("put 1 64 10\nput 1 256 100\nput 16 64 1\nput 16 256 20\nget 128 64 9",
                       "put 1 64 3\nput 1 256 4\nput 16 64 3\nput 16 256 4\nget 128 64 1"),
            "put=64,put/16=128,get/128=64");
}

}  // namespace
}  // namespace ferry::tools

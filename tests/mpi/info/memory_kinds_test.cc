#include "client/mpi/info/memory_kinds.h"

#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

TEST(MemoryKindsTest, KnowsThoseOfTheBackend) {
  EXPECT_EQ(MemoryKinds("host").Supported(""), "mpi,system,ferry");
  EXPECT_EQ(MemoryKinds("cuda").Supported(""), "mpi,system,ferry,cuda:host,cuda:device");
  EXPECT_EQ(MemoryKinds("hip").Supported(""), "mpi,system,ferry,rocm:host,rocm:device");
  EXPECT_EQ(MemoryKinds("level_zero").Supported(""),
            "mpi,system,ferry,level_zero:host,level_zero:device");
}

TEST(MemoryKindsTest, SaysItInTheWordsOfWhoAsked) {
  const MemoryKinds kinds("cuda");
  EXPECT_EQ(kinds.Supported("system,mpi:alloc_mem,cuda:device,rocm:device,cuda:device:host,,x"),
            "mpi,system,ferry,cuda:host,cuda:device,mpi:alloc_mem,cuda:device:host");
}

TEST(MemoryKindsTest, HasWhatAllRestrictorsAllow) {
  const MemoryKinds kinds("cuda");
  EXPECT_TRUE(kinds.HasAll(""));
  EXPECT_TRUE(kinds.HasAll("mpi,system"));
  EXPECT_TRUE(kinds.HasAll("mpi:alloc_mem:win_allocate,ferry:device,cuda:device"));
  EXPECT_FALSE(kinds.HasAll("cuda")) << "that would be managed memory, too";
  EXPECT_FALSE(kinds.HasAll("cuda:managed"));
  EXPECT_FALSE(kinds.HasAll("system,rocm:device"));
  EXPECT_FALSE(kinds.HasAll("mpi:"));
  EXPECT_FALSE(kinds.HasAll("system:host"));
  EXPECT_FALSE(kinds.HasAll("mpi,,system"));
  EXPECT_FALSE(kinds.HasAll("MPI"));
}

}  // namespace
}  // namespace ferry::mpi

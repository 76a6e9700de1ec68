#include "common/topology/affinity.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace ferry::topology {
namespace {

constexpr uint64_t kBytes = 1 << 20;

TEST(AffinityTest, PinsAThread) {
  const StatusOr<CpuSet> before = AffinityOf(0);
  ASSERT_TRUE(before.ok());
  uint32_t cpu = 0;
  while (!before->Contains(cpu)) {
    ++cpu;
  }
  CpuSet seen;
  std::thread thread([&] {
    EXPECT_TRUE(Pin(pthread_self(), {cpu}).ok());
    seen = *AffinityOf(0);
  });
  thread.join();
  EXPECT_EQ(seen, CpuSet{cpu});
  EXPECT_EQ(*AffinityOf(0), *before);
}

TEST(AffinityTest, SaysWhereAThreadCannotRun) {
  const Status status = Pin(pthread_self(), {kMaxCpus - 1});
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("CPUs 8191"), std::string::npos) << status.message();
}

TEST(AffinityTest, KnowsNoThreadThatIsNotThere) {
  EXPECT_EQ(AffinityOf(0x7fff'fff0).status().code(), ErrorCode::kNotFound);
}

class BindMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    fd_ = memfd_create("ferry-test", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd_, kBytes), 0);
    void* base = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    ASSERT_NE(base, MAP_FAILED);
    base_ = static_cast<std::byte*>(base);
  }
  void TearDown() override {
    munmap(base_, kBytes);
    close(fd_);
  }

  int fd_ = -1;
  std::byte* base_ = nullptr;
};

TEST_F(BindMemoryTest, PrefersTheNode) {
  base_[0] = std::byte{1};
  const Status status = BindMemory(base_, kBytes, 0);
  if (status.code() == ErrorCode::kPermissionDenied || status.code() == ErrorCode::kUnsupported) {
    GTEST_SKIP() << "no NUMA policies here: " << status.message();
  }
  ASSERT_TRUE(status.ok()) << status.message();
  int mode = -1;
  ASSERT_EQ(syscall(SYS_get_mempolicy, &mode, nullptr, 0, base_ + kBytes / 2, MPOL_F_ADDR), 0);
  EXPECT_EQ(mode, MPOL_PREFERRED);
  EXPECT_EQ(base_[0], std::byte{1});
}

TEST_F(BindMemoryTest, RefusesANodeThatIsNotThere) {
  for (const uint32_t node : {1000U, 5000U}) {
    const Status status = BindMemory(base_, kBytes, node);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("NUMA node " + std::to_string(node)), std::string::npos);
  }
}

}  // namespace
}  // namespace ferry::topology

// CPUs of numbers that no machine of ours has, so that no job claims them meanwhile.
#include "common/topology/claims.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ferry::topology {
namespace {

constexpr uint32_t kFirst = kMaxCpus - 4;

TEST(CpuClaimsTest, OneHasWhatTheOtherCannotGet) {
  CpuClaims first;
  EXPECT_EQ(first.Claim({kFirst, kFirst + 1}), std::nullopt);
  EXPECT_TRUE(CpuClaims::Current().Contains(CpuSet{kFirst, kFirst + 1}));
  CpuClaims second;
  EXPECT_EQ(second.Claim({kFirst + 1, kFirst + 2}), kFirst + 1);
  EXPECT_EQ(second.Claim({kFirst + 2, kFirst + 3}), std::nullopt);
  first.Release();
  EXPECT_FALSE(CpuClaims::Current().Intersects({kFirst, kFirst + 1}));
  EXPECT_EQ(second.Claim({kFirst + 1}), std::nullopt);
}

TEST(CpuClaimsTest, WhoDoesNotGetAllGetsNone) {
  CpuClaims first;
  ASSERT_EQ(first.Claim({kFirst + 3}), std::nullopt);
  CpuClaims second;
  EXPECT_EQ(second.Claim({kFirst + 2, kFirst + 3}), kFirst + 3);
  EXPECT_FALSE(CpuClaims::Current().Contains(kFirst + 2));
}

TEST(CpuClaimsTest, EndWithTheProcessThatMadeThem) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    CpuClaims claims;
    const char answer = claims.Claim({kFirst}).has_value() ? 'n' : 'y';
    (void)!write(ready[1], &answer, 1);
    pause();
    _exit(1);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_TRUE(CpuClaims::Current().Contains(kFirst));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(CpuClaims::Current().Contains(kFirst));
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace ferry::topology

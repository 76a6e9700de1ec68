#include "common/process_stat.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>

namespace ferry {
namespace {

// As a kernel writes it, with another name, state and CPU.
std::string Line(const std::string& name, char state, const std::string& cpu) {
  return "12 (" + name + ") " + state +
         " 7 11 9 34816 12 4194560 120 0 0 0 0 0 0 0 20 0 1 0 1234 8466432 200 "
         "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 " +
         cpu + " 0 0 0 0 0 0 0 94550021423104 0 0 0 0 0\n";
}

TEST(ProcessStatTest, ReadsTheFields) {
  const ProcessStat stat = ParseProcessStat(Line("a program", 'R', "3"));
  EXPECT_EQ(stat.pid, 12);
  EXPECT_EQ(stat.state, 'R');
  EXPECT_EQ(stat.parent, 7);
  EXPECT_EQ(stat.session, 9);
  EXPECT_EQ(stat.cpu, 3);
  EXPECT_EQ(stat.heap_begin, 94550021423104U);
}

TEST(ProcessStatTest, ANameMayLookLikeWhatFollowsIt) {
  const ProcessStat stat = ParseProcessStat(Line("x) T 1 2 3 (", 'S', "1"));
  EXPECT_EQ(stat.state, 'S');
  EXPECT_EQ(stat.parent, 7);
  EXPECT_EQ(stat.session, 9);
  EXPECT_EQ(stat.cpu, 1);
}

TEST(ProcessStatTest, OtherTextIsNoProcess) {
  for (const char* text : {"", "12", "12 (a", "12 (a)", "12 (a) ", "one (a) R 1 1 1", ") R 1 1"}) {
    EXPECT_EQ(ParseProcessStat(text).pid, -1) << text;
  }
  const ProcessStat cut = ParseProcessStat("12 (a) R 7");
  EXPECT_EQ(cut.pid, 12);
  EXPECT_EQ(cut.parent, 7);
  EXPECT_EQ(cut.session, -1);
  EXPECT_EQ(cut.cpu, -1);
  EXPECT_EQ(cut.heap_begin, 0U);
}

TEST(ProcessStatTest, ReadsProcessesAndThreads) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const int cpu = sched_getcpu();
  CPU_SET(static_cast<size_t>(cpu), &mask);
  ASSERT_EQ(sched_setaffinity(0, sizeof(mask), &mask), 0);
  prctl(PR_SET_NAME, "a) Z (b");
  const std::string folder = "/proc/" + std::to_string(getpid());
  for (const ProcessStat& stat : {ReadProcessStat(getpid()), ReadProcessStat(folder),
                                  ReadProcessStat(folder + "/task/" + std::to_string(gettid()))}) {
    EXPECT_EQ(stat.pid, getpid());
    EXPECT_EQ(stat.state, 'R');
    EXPECT_EQ(stat.parent, getppid());
    EXPECT_EQ(stat.session, getsid(0));
    EXPECT_EQ(stat.cpu, cpu);
  }
  EXPECT_EQ(ReadProcessStat("/proc/self/task/none").pid, -1);
}

}  // namespace
}  // namespace ferry

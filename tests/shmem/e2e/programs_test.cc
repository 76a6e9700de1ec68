// OpenSHMEM inside a node, by one PE, by two, and by more than there are cores; and between nodes,
// with one and with two PEs on each: a slice (tests/support/slice.h).
#include <filesystem>

#include "tests/shmem/e2e/shmem_job.h"
#include "tests/support/slice.h"

namespace ferry::shmem_tests {
namespace {

struct Placement {
  int pes;
  int nodes;
};

class ProgramsTest : public testing::TestWithParam<Placement> {
 protected:
  static void Expect(const std::string& program) {
    ExpectAllOk({.pes = GetParam().pes, .nodes = GetParam().nodes}, {program});
  }
};

TEST_P(ProgramsTest, TheHeapIsSymmetric) { Expect("heap"); }
TEST_P(ProgramsTest, PutsGetsAndSignalsArrive) { Expect("puts"); }
TEST_P(ProgramsTest, AtomicsLoseNothing) { Expect("atomics"); }
TEST_P(ProgramsTest, WaitsSeePlainStoresAndTakeNoCore) { Expect("waits"); }
TEST_P(ProgramsTest, LocksServeInOrder) { Expect("locks"); }
TEST_P(ProgramsTest, StaticDataAreSymmetric) { Expect("statics"); }
TEST_P(ProgramsTest, TeamsHaveTheirOwnNumbers) { Expect("teams"); }
TEST_P(ProgramsTest, CollectivesOfAllSizes) { Expect("collectives"); }
TEST_P(ProgramsTest, ThreadsCallAtOnce) { Expect("threads"); }

INSTANTIATE_TEST_SUITE_P(, ProgramsTest,
                         testing::ValuesIn(tests::Slice<Placement>({{1, 1}, {2, 1}, {5, 2}},
                                                                   {{5, 1}, {2, 2}, {4, 2}})),
                         [](const auto& info) {
                           const Placement& placement = info.param;
                           return std::to_string(placement.pes) + "PesOn" +
                                  std::to_string(placement.nodes);
                         });

TEST(LooksTest, LeaveTheCoreToOtherPes) {
  ExpectAllOk({.flags = {"--bind-to", "none"}}, {"looks"});
}

// Without process_vm calls, as in a container whose filter refuses them: every PE, or every other.
class RefusedCopiesTest : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  static void Expect(const std::string& program) {
    ExpectAllOk({.pes = 4, .flags = GetParam()}, {program});
  }
};

TEST_P(RefusedCopiesTest, PutsGetsAndSignalsArrive) { Expect("puts"); }
TEST_P(RefusedCopiesTest, AtomicsLoseNothing) { Expect("atomics"); }
TEST_P(RefusedCopiesTest, StaticDataAreSymmetric) { Expect("statics"); }
TEST_P(RefusedCopiesTest, CollectivesOfAllSizes) { Expect("collectives"); }

INSTANTIATE_TEST_SUITE_P(
    , RefusedCopiesTest,
    testing::Values(std::vector<std::string>{"tests/fixtures/refuse_calls", "EPERM",
                                             "process_vm_readv", "process_vm_writev", "--"},
                    std::vector<std::string>{
                        "/bin/sh", "-c",
                        "test $((FERRY_RANK % 2)) = 0 && exec \"$0\" \"$@\"; exec "
                        "tests/fixtures/refuse_calls ENOSYS process_vm_readv process_vm_writev -- "
                        "\"$0\" \"$@\""}),
    [](const auto& info) { return std::string(info.index == 0 ? "ByAll" : "ByEveryOther"); });

// All processes of the job believe that the kernel has pages of 64 KiB. The loader knows better,
// which has placed static data.
TEST(LargePagesTest, ProgramsRunAsEver) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have mmap of their own";
#endif
  const std::string preload =
      "LD_PRELOAD=" + std::filesystem::absolute("tests/fixtures/liblarge_pages.so").string();
  for (const std::string program : {"puts", "teams", "collectives"}) {
    ExpectAllOk({.pes = 3, .variables = {preload, "FERRY_SHMEM_STATICS=private"}}, {program});
  }
}

// Traffic that takes direct links, where there are some: all the time, and now and then.
class ProgramsByLinksTest : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  static void Expect(const std::string& program) {
    ExpectAllOk({.pes = 4, .nodes = 2, .variables = GetParam()}, {program});
  }
};

TEST_P(ProgramsByLinksTest, PutsGetsAndSignalsArrive) { Expect("puts"); }
TEST_P(ProgramsByLinksTest, AtomicsLoseNothing) { Expect("atomics"); }
TEST_P(ProgramsByLinksTest, WaitsSeePlainStoresAndTakeNoCore) { Expect("waits"); }
TEST_P(ProgramsByLinksTest, LocksServeInOrder) { Expect("locks"); }
TEST_P(ProgramsByLinksTest, ThreadsCallAtOnce) { Expect("threads"); }

INSTANTIATE_TEST_SUITE_P(, ProgramsByLinksTest,
                         testing::Values(std::vector<std::string>{"FERRY_DIRECT_LINKS=always"},
                                         std::vector<std::string>{"FERRY_DIRECT_LINKS=auto",
                                                                  "FERRY_DIRECT_LINK_MESSAGES=3",
                                                                  "FERRY_DIRECT_LINK_IDLE_MS=5"}),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "Kept" : "Restless");
                         });

}  // namespace
}  // namespace ferry::shmem_tests

// Spaces: symmetric heaps in memory of emulated devices, which CPUs reach or not.
#include <gmock/gmock.h>

#include "tests/e2e/vendors.h"
#include "tests/shmem/e2e/shmem_job.h"

namespace ferry::shmem_tests {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

const std::vector<std::string> kTwoDevices = {"FERRY_GPU_BACKEND=host", "FERRY_HOST_GPU_COUNT=2",
                                              "SHMEM_SYMMETRIC_SIZE=64m"};

std::vector<std::string> With(std::vector<std::string> more) {
  more.insert(more.begin(), kTwoDevices.begin(), kTwoDevices.end());
  return more;
}

// Only copies of the devices reach their memory. Behind a guard a CPU that touches it dies.
std::vector<std::string> BehindALink(bool is_guarded) {
  return With({"FERRY_HOST_LINK_H2D_MB_PER_S=50000", "FERRY_HOST_LINK_D2H_MB_PER_S=50000",
               is_guarded ? "FERRY_HOST_LINK_GUARD=1" : "FERRY_HOST_LINK_GUARD=0"});
}

// ---- The jobs -----------------------------------------------------------------------------------

struct Place {
  const char* name;
  int pes;  // two of four share a device
  int nodes;
  bool is_behind_a_link;
};
void PrintTo(const Place& place, std::ostream* out) { *out << place.name; }

class SpacesTest : public testing::TestWithParam<Place> {
 protected:
  static void Expect(const char* what) {
    const Place& place = GetParam();
    ExpectAllOk({.pes = place.pes,
                 .nodes = place.nodes,
                 .variables = place.is_behind_a_link ? BehindALink(true) : kTwoDevices},
                {"spaces", what});
  }
};

TEST_P(SpacesTest, Allocate) { Expect("allocate"); }
TEST_P(SpacesTest, AreReachedByPutsAndGets) { Expect("moves"); }
TEST_P(SpacesTest, TakePartInCollectives) { Expect("collectives"); }
TEST_P(SpacesTest, HaveWordsWhereCpusReachThem) {
  if (GetParam().is_behind_a_link) {
    GTEST_SKIP() << "no CPU reaches this memory";
  }
  Expect("words");
}

INSTANTIATE_TEST_SUITE_P(, SpacesTest,
                         testing::Values(Place{"Alone", 1, 1, true}, Place{"Direct", 4, 1, false},
                                         Place{"ByStream", 4, 1, true},
                                         Place{"DirectOnTwoNodes", 4, 2, false},
                                         Place{"ByStreamOnTwoNodes", 4, 2, true}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(CheckedSpacesTest, PassAllChecks) {
  for (const char* const what : {"allocate", "moves", "collectives"}) {
    std::vector<std::string> variables = BehindALink(true);
    variables.push_back("FERRY_SHMEM_CHECK=1");
    ExpectAllOk({.variables = variables}, {"spaces", what});
  }
}

// ---- On the vendors' backends, over their stand-ins ---------------------------------------------

class VendorSpacesTest : public testing::TestWithParam<e2e::Vendor> {};

TEST_P(VendorSpacesTest, AreReachedByAllCallsOfTheHost) {
  const e2e::Words variables = e2e::Joined(GetParam().variables(), {"SHMEM_SYMMETRIC_SIZE=64m"});
  for (const int nodes : {1, 2}) {
    for (const char* const what : {"allocate", "moves", "collectives"}) {
      ExpectAllOk({.pes = 3, .nodes = nodes, .variables = variables}, {"spaces", what});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, VendorSpacesTest, testing::ValuesIn(e2e::VendorsWithKernels()),
                         [](const auto& info) { return info.param.name; });

// ---- From kernels -------------------------------------------------------------------------------

class SpaceKernelsTest : public testing::TestWithParam<int> {};

TEST_P(SpaceKernelsTest, ReachAllPartsOfTheNode) {
  for (const auto& variables : {kTwoDevices, BehindALink(false)}) {
    ExpectAllOk({.pes = GetParam(), .variables = variables}, {"device_spaces", "kernels"});
  }
}

INSTANTIATE_TEST_SUITE_P(, SpaceKernelsTest, testing::Values(1, 2, 4),
                         [](const auto& info) { return std::to_string(info.param) + "Pes"; });

TEST(SpaceKernelsNodesTest, ReachThePartsOfAllNodes) {
  for (const auto& variables : {kTwoDevices, BehindALink(false)}) {
    ExpectAllOk({.pes = 4, .nodes = 2, .variables = variables}, {"device_spaces", "nodes"});
  }
}

// Ferryd is asked for nothing that only streams reach.
TEST(SpaceKernelsCutoverTest, StoreInTheNode) {
  for (auto variables : {kTwoDevices, BehindALink(false)}) {
    variables.push_back("FERRY_SHMEM_CUTOVERS=put=64,get=64");
    ExpectAllOk({.variables = variables}, {"device_spaces", "kernels"});
  }
}

TEST(SpaceKernelsGuardTest, AreToldThatTheyDoNotReachGuardedMemory) {
  ExpectAllOk({.variables = BehindALink(true)}, {"device_spaces", "guarded"});
}

// ---- No space -----------------------------------------------------------------------------------

TEST(NoSpaceTest, OnAnUnknownDeviceOfOnePe) {
  for (const std::string device : {"2", "-1"}) {
    const JobSettings settings{.variables = kTwoDevices};
    ExpectAllOk(settings, {"spaces", "none", device});
    const std::string said = RunJob(settings, {"spaces", "none", device}).err;
    EXPECT_THAT(said, HasSubstr("rank 1: shmemx_space_create: the device " + device +
                                " is not between 0 and 1"));
    EXPECT_THAT(said, HasSubstr("rank 0: shmemx_space_create: PE 1 has no such space, and says"));
  }
}

TEST(NoSpaceTest, BeyondTheDevicesMemory) {
  const e2e::CommandResult result =
      RunJob({.variables = With({"FERRY_HOST_GPU_MEMORY_BYTES=1048576"})}, {"spaces", "moves"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, ContainsRegex("shmemx_space_create: .*8388608 bytes"));
}

TEST(FullSpaceTest, SaysWhatIsFree) {
  EXPECT_THAT(RunJob({.variables = kTwoDevices}, {"spaces", "allocate"}).err,
              HasSubstr("shmemx_space_malloc: 99969 bytes asked for, 20096 of space 1's 99968 are "
                        "in use, and the largest free piece has 79872: make a larger space, or "
                        "free memory"));
}

// ---- Misuse, and PEs that are gone --------------------------------------------------------------

struct Misuse {
  const char* what;
  const char* sentence;
};
void PrintTo(const Misuse& misuse, std::ostream* out) { *out << misuse.what; }

void ExpectSentence(const std::vector<std::string>& variables, const Misuse& misuse) {
  const e2e::CommandResult result =
      RunJob({.variables = variables}, {"spaces", "misuse", misuse.what});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, ContainsRegex(misuse.sentence));
}

class SpaceMisuseTest : public testing::TestWithParam<Misuse> {};

TEST_P(SpaceMisuseTest, EndsTheProgramWithASentence) {
  ExpectSentence(BehindALink(true), GetParam());
}

#define NO_WORD "which no CPU reaches: words of signals, atomics, waits and locks belong in"

INSTANTIATE_TEST_SUITE_P(
    , SpaceMisuseTest,
    testing::Values(
        Misuse{"before", "shmemx_space_create: call shmem_init or shmem_init_thread first"},
        Misuse{"sizes", "PE [01] asks for a space of (4096|8192) bytes, this one for"},
        Misuse{"invalid", "shmemx_space_malloc: the space is SHMEMX_SPACE_INVALID"},
        Misuse{"foreign", "this is no space that shmemx_space_create has returned"},
        Misuse{"others", "shmemx_space_destroy: PE [01] has passed space [12], this one space"},
        Misuse{"differ", "asks for 8 bytes of space [12], this one for 8 bytes of space [12]: all"},
        Misuse{"heaps", "PE [01] asks for 8 bytes"},
        Misuse{"inside", "is where no memory begins that shmemx_space_malloc has returned"},
        Misuse{"twice", "was it freed before\\?"},
        Misuse{"alignment", "the alignment 24 is no power of two"},
        Misuse{"past", "run past the end of space 1, where 65536 bytes are left"},
        Misuse{"destroyed", "shmemx_space_malloc: the space was destroyed before"},
        Misuse{"gone", "shmem_long_p: .* which is no symmetric memory"},
        Misuse{"amo",
               "shmem_long_atomic_inc: .*the variable's address\\) lies in space 1, " NO_WORD},
        Misuse{"fetch", "shmem_long_atomic_fetch: .*" NO_WORD},
        Misuse{"fetch_nbi", "shmem_long_atomic_fetch_nbi: .*\\(fetch\\) lies in device memory"},
        Misuse{"signal", "shmem_long_put_signal: .*the signal's address\\) lies .*" NO_WORD},
        Misuse{"signal_add", "shmem_signal_add: .*" NO_WORD},
        Misuse{"signal_fetch", "shmem_signal_fetch: .*" NO_WORD},
        Misuse{"wait", "shmem_long_wait_until: .*the variables' address\\) lies .*" NO_WORD},
        Misuse{"test", "shmem_long_test: .*" NO_WORD},
        Misuse{"lock", "shmem_set_lock: .*the lock\\) lies in space 1, " NO_WORD},
        Misuse{"broadcast", "shmem_long_broadcast: PE [01] has passed another size"},
        Misuse{"root", "shmem_long_broadcast: PE [01] has passed the root [01]: all PEs"}),
    [](const auto& info) { return std::string(info.param.what); });

TEST(CheckedSpaceTest, KnowsWhatWasFreed) {
  std::vector<std::string> variables = kTwoDevices;
  variables.push_back("FERRY_SHMEM_CHECK=1");
  ExpectSentence(variables,
                 {"freed",
                  "lie in the 64 bytes at offset 0 of space 1, which shmemx_space_calloc "
                  "has returned and shmem_free has freed"});
}

class SpaceDeathTest : public testing::TestWithParam<Misuse> {};

TEST_P(SpaceDeathTest, EndsWhatWaitsForIt) {
  for (const bool is_by_stream : {false, true}) {
    const e2e::CommandResult result =
        RunJob({.pes = 3,
                .nodes = std::string_view(GetParam().what) == "put" ? 2 : 1,
                .flags = {"--keep-going"},
                .variables = is_by_stream ? BehindALink(true) : kTwoDevices},
               {"spaces", "dies_in", GetParam().what});
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, ContainsRegex(GetParam().sentence));
  }
}

INSTANTIATE_TEST_SUITE_P(, SpaceDeathTest,
                         testing::Values(Misuse{"malloc", "shmemx_space_malloc: PE 0 has died"},
                                         Misuse{"create", "shmemx_space_create: PE 0 has died"},
                                         Misuse{"destroy", "shmemx_space_destroy: PE 0 has died"},
                                         Misuse{"broadcast", "shmem_long_broadcast: PE 0 has died"},
                                         Misuse{"put", "shmem_(long_put|quiet): PE 0 has died"}),
                         [](const auto& info) { return std::string(info.param.what); });

TEST(SpaceFinalizeTest, IsNotHeldUpByADeadPe) {
  const e2e::CommandResult result =
      RunJob({.pes = 3, .flags = {"--keep-going"}, .variables = BehindALink(true)},
             {"spaces", "dies_in", "finalize"});
  EXPECT_THAT(e2e::SortedLines(result.out), testing::ElementsAre("PE 1: ok", "PE 2: ok"))
      << result.err;
}

}  // namespace
}  // namespace ferry::shmem_tests

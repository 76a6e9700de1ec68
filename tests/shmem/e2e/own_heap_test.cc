// Symmetric heaps in memory that the programs have allocated themselves (shmemx_heap_create).
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/shmem/e2e/shmem_job.h"

namespace ferry::shmem_tests {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

const std::vector<std::string> kEmulated = {"FERRY_GPU_BACKEND=host", "SHMEM_SYMMETRIC_SIZE=64m"};

std::vector<std::string> BehindALink() {
  return e2e::Joined(kEmulated, {"FERRY_HOST_LINK_H2D_MB_PER_S=50000",
                                 "FERRY_HOST_LINK_D2H_MB_PER_S=50000", "FERRY_HOST_LINK_GUARD=1"});
}

struct Memory {
  std::string name;
  std::string kind;
  std::vector<std::string> variables;
};
void PrintTo(const Memory& memory, std::ostream* out) { *out << memory.name; }

class OwnHeapTest : public testing::TestWithParam<std::tuple<Memory, int>> {};

TEST_P(OwnHeapTest, IsReachedByAllCallsOfTheHost) {
  const auto& [memory, nodes] = GetParam();
  ExpectAllOk({.pes = 3, .nodes = nodes, .variables = memory.variables},
              {"own_heap_ferry", memory.kind, "lives"});
}

INSTANTIATE_TEST_SUITE_P(
    , OwnHeapTest,
    testing::Combine(testing::Values(Memory{"Host", "host", kEmulated},
                                     Memory{"Checked", "host",
                                            e2e::Joined(kEmulated, {"FERRY_SHMEM_CHECK=1"})},
                                     Memory{"Device", "device", kEmulated},
                                     Memory{"ByStream", "hidden_device", BehindALink()}),
                     testing::Values(1, 2)),
    [](const auto& info) {
      return std::get<0>(info.param).name + "On" + std::to_string(std::get<1>(info.param));
    });

TEST(OwnHeapKernelsTest, ReachIt) {
  for (const int nodes : {1, 2}) {
    ExpectAllOk({.nodes = nodes, .variables = kEmulated}, {"own_heap_ferry", "device", "kernels"});
  }
}

// ---- The vendors' own calls, over their stand-ins -----------------------------------------------

// Programs are linked with the stand-in, and the backend finds it by itself.
class VendorsHeapTest : public testing::TestWithParam<std::string> {
 protected:
  static e2e::Words variables() {
    const std::string fixtures = std::filesystem::absolute("tests/fixtures").string();
    return e2e::Joined(
        {"FERRY_GPU_BACKEND=auto", "SHMEM_SYMMETRIC_SIZE=64m"},
        GetParam() == "level_zero"
            ? e2e::Words{"ZE_ENABLE_ALT_DRIVERS=" + fixtures + "/level_zero/libferry_level_zero.so",
                         "ZE_FIXTURE=atomics,imports,devices2"}
            : e2e::Words{"LD_LIBRARY_PATH=" + fixtures + "/" + GetParam()});
  }
};

TEST_P(VendorsHeapTest, IsReachedByAllCallsOfTheHost) {
  for (const int nodes : {1, 2}) {
    ExpectAllOk({.pes = 3, .nodes = nodes, .variables = variables()},
                {"own_heap_" + GetParam(), "device", "lives"});
  }
}

TEST_P(VendorsHeapTest, MustBeForOtherProcesses) {
  for (const std::string kind : {"managed", "virtual"}) {
    const e2e::CommandResult result =
        RunJob({.variables = variables()}, {"own_heap_" + GetParam(), kind, "memory"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("shmemx_heap_postinit: 1204000 bytes at "));
    EXPECT_THAT(result.err, HasSubstr("that their driver lets no other process map"));
  }
}

INSTANTIATE_TEST_SUITE_P(, VendorsHeapTest, testing::Values("cuda", "hip", "level_zero"),
                         [](const auto& info) { return info.param; });

// ---- Mistakes -----------------------------------------------------------------------------------

struct Misuse {
  const char* what;
  const char* sentence;
  const char* kind = "host";
};
void PrintTo(const Misuse& misuse, std::ostream* out) { *out << misuse.what; }

class OwnHeapMisuseTest : public testing::TestWithParam<Misuse> {};

TEST_P(OwnHeapMisuseTest, EndsTheProgramWithASentence) {
  const e2e::CommandResult result =
      RunJob({.variables = kEmulated}, {"own_heap_ferry", GetParam().kind, GetParam().what});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, ContainsRegex(GetParam().sentence));
}

INSTANTIATE_TEST_SUITE_P(
    , OwnHeapMisuseTest,
    testing::Values(
        Misuse{"postinit_only", "shmemx_heap_postinit: call shmemx_heap_preinit or"},
        Misuse{"null", "shmemx_heap_create: the base is null"},
        Misuse{"empty", "shmemx_heap_create: a heap has at least one byte"},
        Misuse{"kind", "shmemx_heap_create: the kind of memory 4 is none of SHMEMX_EXTERNAL_HEAP_"},
        Misuse{"past",
               "shmemx_heap_postinit: 308224000 bytes at 0x.* run past the end of their "
               "allocation"},
        Misuse{"sizes",
               "PE [01] has named (602000|1204000) bytes by shmemx_heap_create, this one "
               "(602000|1204000) bytes: all PEs must name as much"},
        Misuse{"one_has_none", "PE [01] has named .* by shmemx_heap_create, this one "},
        Misuse{"preinit_twice", "shmemx_heap_preinit: it was called before: shmemx_heap_postinit"},
        Misuse{"init", "shmem_init: shmemx_heap_preinit was called: shmemx_heap_postinit ends"},
        Misuse{"malloc", "shmem_malloc: call shmemx_heap_postinit first: between it and"},
        Misuse{"again", "shmemx_heap_create: 1204000 bytes at 0x.* were named before: a PE has"},
        Misuse{"late", "shmemx_heap_create: OpenSHMEM has begun already: name the memory before"},
        Misuse{"begun", "shmemx_heap_preinit: OpenSHMEM has begun already: call it in place of"},
        Misuse{"free", "shmem_free: 0x.* lies in the heap of shmemx_heap_create, of which only"},
        Misuse{"good",
               "shmem_putmem: 16 bytes from 0x.* run past the end of the heap of "
               "shmemx_heap_create, where 8 bytes are left"},
        Misuse{"memory", "1204000 bytes at 0x.* are memory of this process alone: take", "malloc"}),
    [](const auto& info) { return std::string(info.param.what); });

// Before the others' wait has begun, and after it.
TEST(OwnHeapExitTest, EndsTheJobBetweenTheHalves) {
  EXPECT_EQ(RunJob({.variables = kEmulated}, {"own_heap_ferry", "host", "exits"}).exit_code, 7);
  const e2e::CommandResult result =
      RunJob({.variables = kEmulated}, {"own_heap_ferry", "host", "ends"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err,
              HasSubstr("rank 1: the end of the program: shmemx_heap_postinit was never"));
  EXPECT_THAT(result.err, HasSubstr("rank 0: shmemx_heap_postinit: "));
}

}  // namespace
}  // namespace ferry::shmem_tests

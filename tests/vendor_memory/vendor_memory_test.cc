// Programs allocate memory by the vendors' own calls, with which they are linked, and hand it to
// MPI, OpenSHMEM and ferry.h. No option names a backend or a library: these are found where the
// system has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/support/slice.h"

namespace ferry::e2e {
namespace {

using testing::HasSubstr;

struct Placement {
  std::string name;
  Words flags;
};

const Placement kOneNode{"OneNode", {"-n", "2"}};
const Placement kTwoNodes{"TwoNodes", {"-n", "2", "--nodes", "2"}};

// As on a system whose linker finds the vendor's library. The backend is Ferry's default again,
// which commands of tests set otherwise.
Words Installed(const std::string& vendor) {
  const std::string fixtures = std::filesystem::absolute("tests/fixtures").string();
  return vendor == "level_zero"
             ? Words{"FERRY_GPU_BACKEND=auto",
                     "ZE_ENABLE_ALT_DRIVERS=" + fixtures + "/level_zero/libferry_level_zero.so",
                     "ZE_FIXTURE=atomics,imports,devices2"}
             : Words{"FERRY_GPU_BACKEND=auto", "LD_LIBRARY_PATH=" + fixtures + "/" + vendor};
}

class VendorMemoryTest : public testing::TestWithParam<std::tuple<std::string, Placement>> {
 protected:
  static std::string vendor() { return std::get<0>(GetParam()); }
  static void Run(const std::string& library, const Words& arguments) {
    EXPECT_THAT(
        RunWell(PrivateJob(std::get<1>(GetParam()).flags,
                           Joined({"tests/vendor_memory/" + library + "_" + vendor()}, arguments)),
                Installed(vendor())),
        HasSubstr(vendor() + " memory was right\n"));
  }
  static void RunMpi(const std::string& cases) { Run("mpi", {cases}); }
  // One kind of memory after the other, each in a job of its own.
  static void RunMpiByKinds(const std::string& cases) {
    Words kinds = {"device", "elsewhere", "managed", "pinned"};
    if (vendor() == "cuda") {
      kinds = Joined(kinds, {"async", "pool", "virtual", "context", "registered"});
    } else if (vendor() == "hip") {
      kinds = Joined(kinds, {"async", "registered"});
    }
    for (const std::string& kind : kinds) {
      SCOPED_TRACE(kind);
      Run("mpi", {cases, kind});
    }
  }
};

TEST_P(VendorMemoryTest, Messages) { RunMpi("messages,types"); }
TEST_P(VendorMemoryTest, AsBenchmarksSendIt) { RunMpi("benchmarks"); }
TEST_P(VendorMemoryTest, PartitionsAndQueues) { RunMpi("partitions,queues"); }
TEST_P(VendorMemoryTest, Collectives) { RunMpi("collectives,nonblocking"); }
TEST_P(VendorMemoryTest, Windows) { RunMpiByKinds("windows"); }
TEST_P(VendorMemoryTest, ComesAndGoes) { RunMpi("reuse"); }
TEST_P(VendorMemoryTest, Threads) { RunMpiByKinds("threads"); }
TEST_P(VendorMemoryTest, BothSidesTouchIt) { RunMpi("both_sides"); }
TEST_P(VendorMemoryTest, MovesByFerrysOwnCalls) { Run("direct", {}); }
TEST_P(VendorMemoryTest, MovesByOpenShmem) { Run("shmem", {}); }
TEST_P(VendorMemoryTest, BadBuffersAreNamed) { RunMpi("bad"); }

INSTANTIATE_TEST_SUITE_P(All, VendorMemoryTest,
                         testing::Combine(testing::Values("cuda", "hip", "level_zero"),
                                          testing::Values(kOneNode, kTwoNodes)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace ferry::e2e

// Programs allocate memory by the vendors' own calls, with which they are linked, and hand it to
// MPI, OpenSHMEM and ferry.h. No option names a backend or a library: these are found where the
// system has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "gpu_backends/device/kernel_images.h"
#include "tests/e2e/command.h"
#include "tests/support/slice.h"

namespace ferry::e2e {
namespace {

using testing::ContainsRegex;
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

// Returns true if the vendor's devices have Ferry's kernels, in this build.
bool HasKernels(const std::string& vendor) {
  return gpu::WhyNoKernelImages(vendor == "cuda"  ? gpu::ImageFormat::kPtx
                                : vendor == "hip" ? gpu::ImageFormat::kAmdgcn
                                                  : gpu::ImageFormat::kSpirv)
      .empty();
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
  // Where kernels reach the program's memory, blocks move many at a time.
  static Words FewCopies() {
    return vendor() != "level_zero" && HasKernels(vendor()) ? Words{"few_copies"} : Words{};
  }
  // Runs cases of MPI in which these launches of kernels fail, and so does that call.
  static void ExpectFailure(const std::string& call, const Words& cases,
                            const std::string& launches) {
    const std::string launch = vendor() == "cuda"  ? "cuLaunchKernel"
                               : vendor() == "hip" ? "hipModuleLaunchKernel"
                                                   : "zeCommandListAppendLaunchKernel";
    const CommandResult result = RunCleanly(
        PrivateJob(std::get<1>(GetParam()).flags,
                   Joined({"tests/vendor_memory/mpi_" + vendor()}, cases)),
        Joined(Installed(vendor()), {"FIXTURE_FAULTS=" + launch + ":" + launches + ":719"}));
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr(call));
  }
  static void RunMpi(const std::string& cases) { Run("mpi", {cases}); }
  // Runs long cases by few kinds, which have little in common, unless all are wanted.
  static void RunMpiByFewKinds(const std::string& cases) {
    const Words few = vendor() == "cuda"  ? Words{"device", "virtual", "registered"}
                      : vendor() == "hip" ? Words{"async", "virtual", "managed", "pinned"}
                                          : Words{"device", "virtual", "elsewhere", "pinned"};
    Run("mpi", Joined({cases}, tests::RunsAll() ? Words{} : few));
  }
};

TEST_P(VendorMemoryTest, Messages) { RunMpi("messages,types"); }
TEST_P(VendorMemoryTest, AsBenchmarksSendIt) { RunMpi("benchmarks"); }
TEST_P(VendorMemoryTest, PartitionsAndQueues) { RunMpi("partitions,queues"); }
TEST_P(VendorMemoryTest, Collectives) { RunMpi("collectives,nonblocking"); }
TEST_P(VendorMemoryTest, HalosMoveBetweenNeighbours) { RunMpi("halo"); }
TEST_P(VendorMemoryTest, Windows) { RunMpiByFewKinds("windows"); }
TEST_P(VendorMemoryTest, AWindowTakesAllKindsFromThreads) { RunMpiByFewKinds("window_threads"); }
TEST_P(VendorMemoryTest, ComesAndGoes) { RunMpiByFewKinds("reuse"); }
TEST_P(VendorMemoryTest, Threads) { RunMpi("threads"); }
TEST_P(VendorMemoryTest, BothSidesTouchIt) { RunMpi("both_sides"); }
TEST_P(VendorMemoryTest, MovesByFerrysOwnCalls) { Run("direct", FewCopies()); }
TEST_P(VendorMemoryTest, MovesByOpenShmem) { Run("shmem", FewCopies()); }
// Mappings side by side are one buffer, holes between them are named, and what is mapped to old
// addresses anew is used.
TEST_P(VendorMemoryTest, MappingsAreUsedPieceByPiece) { Run("virtual", {}); }
TEST_P(VendorMemoryTest, BadBuffersAreNamed) { RunMpi("bad"); }
TEST_P(VendorMemoryTest, AllocationsSideBySideAreTwo) { Run("faults", {"spanning"}); }
TEST_P(VendorMemoryTest, AnothersAddressIsNobodys) { Run("faults", {"another"}); }
TEST_P(VendorMemoryTest, WhatOthersFreeIsLetGoOf) { Run("faults", {"places"}); }
TEST_P(VendorMemoryTest, WhatOthersFreeIsLetGoOfBesideThreads) { Run("faults", {"threads"}); }
TEST_P(VendorMemoryTest, ALostDeviceIsTheCauseThatIsNamed) { Run("faults", {"lost"}); }
// Where no kernel can be launched it fails, which the collectives before it have not.
TEST_P(VendorMemoryTest, AShortAllgatherIsOneKernel) {
  const auto& [vendor, placement] = GetParam();
  if (!HasKernels(vendor) || placement.name != kOneNode.name) {
    GTEST_SKIP() << "one node, and kernels of this build for " << vendor << ", are needed";
  }
  ExpectFailure("MPI_Allgather", {"collectives"}, "1+");
}
// The first launch only asks whether the device reduces. So does that of rank 1, whose device
// reduces nothing.
TEST_P(VendorMemoryTest, AShortReductionIsOneKernel) {
  const auto& [vendor, placement] = GetParam();
  if (!HasKernels(vendor) || placement.name != kOneNode.name) {
    GTEST_SKIP() << "one node, and kernels of this build for " << vendor << ", are needed";
  }
  ExpectFailure("MPI_Allreduce", {"reductions", "device"}, "2+");
}
TEST_P(VendorMemoryTest, Reductions) { RunMpi("reductions"); }
// Each of the driver's calls fails in turn, while rank 0 is in one of Ferry's.
TEST_P(VendorMemoryTest, DriversThatFailInPutsAreNamed) { Run("calls", {"put"}); }
TEST_P(VendorMemoryTest, DriversThatFailInGetsAreNamed) { Run("calls", {"get"}); }
TEST_P(VendorMemoryTest, DriversThatFailInSendsAreNamed) { Run("calls", {"send"}); }
TEST_P(VendorMemoryTest, DriversThatFailInReceivesAreNamed) { Run("calls", {"receive"}); }
TEST_P(VendorMemoryTest, DriversThatFailInSendsOfMappedMemoryAreNamed) {
  Run("calls", {"send", "virtual"});
}
TEST_P(VendorMemoryTest, DriversThatFailInReceivesIntoMappedMemoryAreNamed) {
  Run("calls", {"receive", "virtual"});
}
TEST_P(VendorMemoryTest, DriversThatFailInQueuesAreNamed) { Run("calls", {"queue"}); }
TEST_P(VendorMemoryTest, HalosOfFerryLieInIt) { Run("halo", {}); }
TEST_P(VendorMemoryTest, MemoryOfARankThatDiesIsLetGoOf) {
  const CommandResult result =
      RunCleanly(PrivateJob(Joined({"--keep-going"}, std::get<1>(GetParam()).flags),
                            {"tests/vendor_memory/faults_" + vendor(), "dies"}),
                 Installed(vendor()));
  EXPECT_THAT(result.out, HasSubstr(vendor() + " memory was right\n")) << result.err;
}

// Collectives, of all ranks' memory: each of the driver's calls fails on rank 0 in turn.
struct Failing {
  std::string vendor;
  Placement placement;
  std::string operation;
};

class FailingCollectiveTest : public testing::TestWithParam<Failing> {};

TEST_P(FailingCollectiveTest, IsNamedByAllRanksAndLeavesNothing) {
  const auto& [vendor, placement, operation] = GetParam();
  EXPECT_THAT(
      RunWell(PrivateJob(placement.flags, {"tests/vendor_memory/mpi_calls_" + vendor, operation}),
              Installed(vendor)),
      HasSubstr(vendor + " memory was right\n"));
}

// All vendors and placements meet each operation where all is wanted, else in turns.
std::vector<Failing> AllOrFew(const Words& operations) {
  std::vector<Failing> all;
  std::vector<Failing> few;
  for (const std::string& operation : operations) {
    for (const Placement& placement : {kOneNode, kTwoNodes}) {
      for (const std::string vendor : {"cuda", "hip", "level_zero"}) {
        const bool has_turn = all.size() % 5 == 0;
        all.push_back({vendor, placement, operation});
        if (has_turn) {
          few.push_back(all.back());
        }
      }
    }
  }
  return tests::RunsAll() ? all : few;
}

std::string NameOf(const testing::TestParamInfo<Failing>& info) {
  return info.param.vendor + info.param.placement.name + "_" + info.param.operation;
}

INSTANTIATE_TEST_SUITE_P(All, FailingCollectiveTest,
                         testing::ValuesIn(AllOrFew({"bcast_from", "bcast_to", "reduce_from",
                                                     "reduce_to", "allreduce", "allgather",
                                                     "alltoall"})),
                         NameOf);

// Collectives of OpenSHMEM. Such a failure ends the job, and the next job begins behind it.
class FailingShmemCollectiveTest : public testing::TestWithParam<Failing> {};

TEST_P(FailingShmemCollectiveTest, IsNamedOrBringsTheData) {
  const auto& [vendor, placement, operation] = GetParam();
  const std::string fault = vendor == "cuda"  ? "CUDA_ERROR_UNKNOWN"
                            : vendor == "hip" ? "hipErrorUnknown"
                                              // what is lost by it, too
                                              : "(result 0x000003e7|ZE_RESULT_ERROR_DEVICE_LOST)";
  // Some of them, unless all are wanted: each takes a job.
  const int pace = tests::RunsAll() ? 1 : 37;
  int failed = 0;
  for (int first = 0;; ++failed) {
    const CommandResult result = RunCleanly(
        PrivateJob(placement.flags,
                   {"tests/vendor_memory/shmem_calls_" + vendor, operation, std::to_string(first)}),
        Installed(vendor));
    if (result.exit_code == 0) {
      EXPECT_THAT(result.out, HasSubstr(vendor + " memory was right\n"));
      break;
    }
    ASSERT_EQ(result.exit_code, 1) << result.err;
    ASSERT_THAT(result.err, ContainsRegex("libferry: rank 0: shmem_long_[^\n]*" + fault));
    const size_t last = result.err.rfind("try ");
    ASSERT_NE(last, std::string::npos) << result.err;
    first = std::stoi(result.err.substr(last + 4)) + pace;
  }
  // On one node PE 1 copies what it broadcasts, and PE 0 asks its driver nothing.
  const bool may_pass = operation == "broadcast_to" && placement.name == kOneNode.name;
  EXPECT_TRUE(failed > 0 || may_pass);
}

TEST_P(FailingShmemCollectiveTest, OnQueuesIsAnErrorAndLeavesNothing) {
  const auto& [vendor, placement, operation] = GetParam();
  EXPECT_THAT(RunWell(PrivateJob(placement.flags,
                                 {"tests/vendor_memory/shmem_calls_" + vendor, operation, "queue"}),
                      Installed(vendor)),
              HasSubstr(vendor + " memory was right\n"));
}

INSTANTIATE_TEST_SUITE_P(All, FailingShmemCollectiveTest,
                         testing::ValuesIn(AllOrFew({"broadcast_from", "broadcast_to", "fcollect",
                                                     "collect", "alltoall", "alltoalls", "reduce",
                                                     "scan"})),
                         NameOf);

// Device memory of another node, block by block.
class FarMemoryTest : public testing::TestWithParam<std::string> {
 protected:
  static void Run(const Words& program) {
    EXPECT_THAT(RunWell(PrivateJob(kTwoNodes.flags, program), Installed(GetParam())),
                HasSubstr(GetParam() + " memory was right\n"));
  }
};

TEST_P(FarMemoryTest, MovesBlockByBlock) { Run({"tests/vendor_memory/far_" + GetParam()}); }
TEST_P(FarMemoryTest, MovesByVectorTypes) {
  Run({"tests/vendor_memory/mpi_" + GetParam(), "far_blocks", "device"});
}

INSTANTIATE_TEST_SUITE_P(All, FarMemoryTest, testing::Values("cuda", "hip", "level_zero"),
                         [](const auto& info) { return info.param; });

// Also with a driver that does not tell the type of what is mapped.
TEST(UntypedMappingsTest, AreUsed) {
  Words installed = Installed("level_zero");
  installed.back() += ",untyped_mappings";
  for (const std::string program : {"virtual_level_zero", "direct_level_zero"}) {
    EXPECT_THAT(RunWell(PrivateJob(kOneNode.flags, {"tests/vendor_memory/" + program}), installed),
                HasSubstr("level_zero memory was right\n"));
  }
}

// Ferry uses one of them; memory of the other belongs to no backend, and that is told.
TEST(TwoVendorsTest, MemoryOfOneMovesAndOfTheOtherIsRefused) {
  const std::string fixtures = std::filesystem::absolute("tests/fixtures").string();
  for (const Placement& placement : {kOneNode, kTwoNodes}) {
    for (const std::string first : {"cuda", "hip"}) {
      SCOPED_TRACE(first + placement.name);
      EXPECT_THAT(RunWell(PrivateJob(placement.flags, {"tests/vendor_memory/two_vendors", first}),
                          {"FERRY_GPU_BACKEND=auto",
                           "LD_LIBRARY_PATH=" + fixtures + "/cuda:" + fixtures + "/hip"}),
                  HasSubstr("two vendors: ok\n"));
    }
  }
}

using Combination = std::tuple<std::string, Placement>;

INSTANTIATE_TEST_SUITE_P(All, VendorMemoryTest,
                         testing::ValuesIn(tests::Slice<Combination>(
                             {{"cuda", kOneNode}, {"hip", kTwoNodes}, {"level_zero", kOneNode}},
                             {{"cuda", kTwoNodes}, {"hip", kOneNode}, {"level_zero", kTwoNodes}})),
                         [](const auto& info) {
                           return std::get<0>(info.param) + std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace ferry::e2e

// One set of jobs on every vendor's backend, over its stand-in in software (tests/fixtures):
// messages from and to device memory, pipelines between nodes, matched pairs by streams, MPI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/e2e/vendors.h"
#include "tests/support/processes.h"
#include "tests/support/slice.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The logs of a job's private daemons.
class DaemonLog {
 public:
  explicit DaemonLog(const std::string& name) : path_(testing::TempDir() + "/" + name + ".log") {
    std::filesystem::remove(path_);
  }
  std::string variable() const { return "FERRY_LOG_FILE=" + path_; }
  std::string Text() const { return tests::ReadFile(path_); }

 private:
  const std::string path_;
};

struct Placement {
  std::string name;
  Words flags;
  Words variables;
};

std::vector<Placement> Placements() {
  return {{"OneNode", {"-n", "2"}, {}},
          {"TwoNodes", {"-n", "2", "--nodes", "2"}, {}},
          {"RanksStage", {"-n", "3", "--nodes", "2"}, {"FERRY_PIPELINE_STAGING_BLOCKS=0"}},
          {"DaemonsStageAll", {"-n", "3", "--nodes", "2"}, {"FERRY_OFFLOAD_MIN_BYTES=0"}},
          {"WorkerProcess", {"-n", "3", "--nodes", "2"}, {"FERRY_WORKER_MODE=process"}}};
}

Words VariablesOf(const Vendor& vendor, const Placement& placement) {
  return Joined(vendor.variables(), placement.variables);
}

class GpuBackendsTest : public testing::TestWithParam<std::tuple<Vendor, Placement>> {
 protected:
  static void Run(const Words& program, const std::string& says = "") {
    const auto& [vendor, placement] = GetParam();
    EXPECT_THAT(RunWell(PrivateJob(placement.flags, program), VariablesOf(vendor, placement)),
                HasSubstr(says));
  }
};

TEST_P(GpuBackendsTest, MovesAllSizesBetweenAllKindsOfMemory) {
  Run({"tests/e2e/ranks/device", "sizes"}, "device: ok\n");
}

TEST_P(GpuBackendsTest, MovesManyAtATime) {
  Run({"tests/e2e/ranks/device", "windows"}, "device: ok\n");
}

// `few(vendor, placement)`: those of a slice, by number.
template <typename Few>
std::vector<std::tuple<Vendor, Placement>> Combinations(size_t placements, Few few) {
  std::vector<std::tuple<Vendor, Placement>> combinations;
  for (size_t vendor = 0; vendor < Vendors().size(); ++vendor) {
    for (size_t placement = 0; placement < placements; ++placement) {
      if (tests::RunsAll() || few(vendor, placement)) {
        combinations.emplace_back(Vendors()[vendor], Placements()[placement]);
      }
    }
  }
  return combinations;
}

INSTANTIATE_TEST_SUITE_P(All, GpuBackendsTest,
                         testing::ValuesIn(Combinations(Placements().size(),
                                                        [](size_t vendor, size_t placement) {
                                                          return placement == 1 ||
                                                                 placement == 2 + vendor;
                                                        })),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + std::get<1>(info.param).name;
                         });

// The job's worker processes import the ranks' memory and copy from and to it: as many bytes go to
// another node as inside one. A worker has no capabilities, and reaches nothing of a process that
// has some.
TEST(GpuWorkersTest, WorkerProcessesStageDeviceMemory) {
  for (const Vendor& vendor : Vendors()) {
    SCOPED_TRACE(vendor.name);
    const DaemonLog log(vendor.name + "_workers");
    const Words variables =
        Joined(VariablesOf(vendor, {}),
               {"FERRY_WORKER_MODE=process", "FERRY_OFFLOAD_MIN_BYTES=0", log.variable()});
    EXPECT_THAT(RunWell(WithoutCapabilities(PrivateJob({"-n", "3", "--nodes", "2"},
                                                       {"tests/e2e/ranks/device", "sizes"})),
                        variables),
                HasSubstr("device: ok\n"));
    EXPECT_THAT(log.Text(), AllOf(HasSubstr("serves"), Not(HasSubstr("stages its device memory"))));
  }
}

class GpuPairsTest : public GpuBackendsTest {};

TEST_P(GpuPairsTest, RingsAreMadeForDevices) { Run({"tests/e2e/ranks/device_ring", "made"}); }

TEST_P(GpuPairsTest, StreamsStartMessagesAndWaitForThem) {
  Run({"tests/e2e/ranks/matched", "few"});
}

TEST_P(GpuPairsTest, QueuesKeepTheirPromises) { Run({"tests/e2e/ranks/queues"}); }

TEST_P(GpuPairsTest, QueuesMakeCalls) {
  Run({"tests/e2e/ranks/queue_calls"});
  for (const std::string what : {"order", "device_memory", "side_by_side"}) {
    SCOPED_TRACE(what);
    Run({"tests/shmem/ranks/queues", what}, "ok\n");
  }
}

TEST_P(GpuPairsTest, MpiPacksDeviceMemory) {
  Run({"tests/mpi/ranks/device"}, "device buffers were right");
}

TEST_P(GpuPairsTest, MpiReducesDeviceMemory) {
  Run({"tests/mpi/ranks/device_reductions"}, "device reductions were right");
}

TEST_P(GpuPairsTest, MpiMovesDeviceMemory) {
  Run({"examples/mpi_pingpong/mpi_pingpong"}, "device");
}

INSTANTIATE_TEST_SUITE_P(All, GpuPairsTest,
                         testing::ValuesIn(Combinations(2,
                                                        [](size_t vendor, size_t placement) {
                                                          return placement == 0 || vendor == 0;
                                                        })),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + std::get<1>(info.param).name;
                         });

// The output of `ferryctl gpus --json`.
nlohmann::json ShownGpus(const Vendor& vendor) {
  const std::string out =
      RunWell(PrivateJob({"-n", "1"},
                         {"/bin/sh", "-c", "exec \"$0\" gpus --json", "tools/ferryctl/ferryctl"}),
              VariablesOf(vendor, {}));
  nlohmann::json shown = nlohmann::json::parse(out, nullptr, false);
  EXPECT_FALSE(shown.is_discarded()) << out;
  return shown;
}

// A backend whose stand-in launches kernels, and the call that launches them.
struct Launcher {
  Vendor vendor;
  std::string call;
};

std::vector<Launcher> Launchers() {
  const std::vector<Vendor> vendors = VendorsWithKernels();
  return {{vendors[0], "cuLaunchKernel"},
          {vendors[1], "hipModuleLaunchKernel"},
          {vendors[2], "zeCommandListAppendLaunchKernel"}};
}

class GpuKernelsTest : public testing::TestWithParam<Launcher> {
 protected:
  void SetUp() override {
    const nlohmann::json shown = ShownGpus(GetParam().vendor);
    if (!shown["gpus"].at(0)["kernels"].get<bool>()) {
      GTEST_SKIP() << shown["gpus"].at(0)["note"];
    }
  }

  // Launches fail from the `first` on.
  static CommandResult Run(int first, const Words& placement, const Words& program) {
    const auto& [vendor, call] = GetParam();
    return RunCleanly(PrivateJob(placement, program),
                      Joined(VariablesOf(vendor, {}),
                             {"FIXTURE_FAULTS=" + call + ":" + std::to_string(first) + "+:1",
                              "FERRY_DEVICE_REDUCTION_MIN_BYTES=4096"}));
  }
};

// Inside a node the kernels of devices that reach the node's memory by atomics start messages.
TEST_P(GpuKernelsTest, MoveMessagesInsideANode) {
  const CommandResult result = Run(1, {"-n", "2"}, {"tests/e2e/ranks/matched", "few"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr(GetParam().call));
}

TEST_P(GpuKernelsTest, ReduceAndFailOnAllRanks) {
  for (const Words& placement : {Words{"-n", "2"}, {"-n", "3", "--nodes", "2"}}) {
    const CommandResult result = Run(2, placement, {"tests/mpi/ranks/device_reductions", "fails"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("device reductions were right"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuKernelsTest, testing::ValuesIn(Launchers()),
                         [](const auto& each) { return each.param.vendor.name; });

// Ferry only enqueues on streams of the application's own.
TEST(GpuQueuesTest, VendorsStreamsCarryMessages) {
  for (const Vendor& vendor : Vendors()) {
    if (vendor.name == "level_zero") {
      continue;  // its streams belong to a context, which is Ferry's own
    }
    const std::string library = vendor.library[0].substr(vendor.library[0].find('=') + 1);
    for (const char* nodes : {"1", "2"}) {
      SCOPED_TRACE(vendor.name + " on " + nodes);
      RunWell(PrivateJob({"-n", "2", "--nodes", nodes},
                         {"tests/e2e/ranks/vendor_queues", vendor.name, library}),
              VariablesOf(vendor, {}));
    }
  }
}

TEST(GpuListTest, FerryctlShowsWhatDevicesCanDo) {
  for (const Vendor& vendor : Vendors()) {
    SCOPED_TRACE(vendor.name);
    const nlohmann::json shown = ShownGpus(vendor);
    ASSERT_TRUE(shown.contains("gpus"));
    const nlohmann::json& gpu = shown["gpus"].at(0);
    EXPECT_EQ(gpu["backend"], vendor.name);
    EXPECT_THAT(gpu["name"].get<std::string>(), HasSubstr("software"));
    EXPECT_GT(gpu["total_bytes"], 0);
    EXPECT_EQ(gpu["ipc"], true);
    EXPECT_EQ(gpu["stream_words"], vendor.name == "level_zero" ? "cpu" : "device");
    // Describes this build's kernels, if it has compiled any, and the stand-in's.
    EXPECT_EQ(gpu["kernels"], gpu["note"] == "");
    if (vendor.name == "cuda") {
      EXPECT_THAT(gpu["note"].get<std::string>(), HasSubstr("loads no modules"));
    }
    for (const nlohmann::json& each : shown["backends"]) {
      const bool must_be_there = each["name"] == vendor.name || each["name"] == "host";
      const bool is_there = !each["version"].get<std::string>().empty();
      EXPECT_TRUE(is_there || !must_be_there) << each;
      EXPECT_EQ(each["note"].get<std::string>().empty(), is_there)
          << each;  // otherwise the note says why not
      EXPECT_EQ(each["in_use"], each["name"] == vendor.name);
    }
  }
}

// ---- Faults ----

size_t CountOf(const std::string& words, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) {
    ++count;
  }
  return count;
}

// An administrator's mistake: ranks stage their memory themselves then, and each daemon says once
// why.
TEST(GpuBackendsMistakesTest, ADaemonMayHaveAnotherBackendThanItsRanks) {
  for (const Vendor& vendor : Vendors()) {
    for (const char* mode : {"auto", "process"}) {
      if (!tests::RunsAll() && (vendor.name == "hip") != (std::string(mode) == "process")) {
        continue;
      }
      SCOPED_TRACE(vendor.name + " " + mode);
      const Words of_ranks = VariablesOf(vendor, {});
      const DaemonLog log(vendor.name + "_" + mode);
      EXPECT_THAT(RunWell(With({"FERRY_GPU_BACKEND=host", std::string("FERRY_WORKER_MODE=") + mode,
                                log.variable()},
                               PrivateJob({"-n", "3", "--nodes", "2"},
                                          With(of_ranks, {"tests/e2e/ranks/device", "sizes"})))),
                  HasSubstr("device: ok\n"));
      // Level Zero's handle is a memfd, which the host vendor takes for its own.
      const size_t refusing_daemons = vendor.name == "level_zero" ? 0 : 2;
      EXPECT_EQ(CountOf("stages its device memory", log.Text()), refusing_daemons) << log.Text();
    }
  }
}

TEST(GpuBackendsMistakesTest, ABackendThatIsNotThereIsSaidSo) {
  for (const char* name : {"cuda", "hip", "level_zero"}) {
    SCOPED_TRACE(name);
    std::string variable = std::string(name) + "_library";
    for (char& letter : variable) {
      letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    }
    const CommandResult result = RunCommand(
        PrivateJob({"-n", "1"}, {"tests/e2e/ranks/device", "sizes"}),
        {std::string("FERRY_GPU_BACKEND=") + name, "FERRY_" + variable + "=/nowhere/lib.so"});
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr("not installed"));
    EXPECT_THAT(result.err, HasSubstr("/nowhere/lib.so"));
  }
}

TEST(GpuBackendsMistakesTest, TheOtherRankIsToldOfOneThatDies) {
  for (const Vendor& vendor : Vendors()) {
    for (const char* nodes : {"1", "2"}) {
      for (const char* what : {"hold", "vanish"}) {
        SCOPED_TRACE(vendor.name + " " + what + " on " + nodes);
        const CommandResult result =
            RunCleanly(PrivateJob({"-n", "2", "--keep-going", "--nodes", nodes},
                                  {"tests/e2e/ranks/device", what}),
                       VariablesOf(vendor, {}));
        EXPECT_THAT(result.out, HasSubstr("survivor: "));
      }
    }
  }
}

TEST(GpuBackendsMistakesTest, BadBuffersAreNamed) {
  for (const Vendor& vendor : Vendors()) {
    for (const char* nodes : {"1", "2"}) {
      SCOPED_TRACE(vendor.name + " on " + nodes);
      RunWell(PrivateJob({"-n", "2", "--nodes", nodes}, {"tests/e2e/ranks/device", "mistakes"}),
              VariablesOf(vendor, {}));
    }
  }
}

// Only streams reach device memory: the tests above could not pass otherwise. A failure in a
// vendor's library is reported, and no rank waits for ever or crashes; a job whose messages can go
// another way goes on.
struct Fault {
  std::string backend;
  std::string call;
  std::string error;  // the vendor's number
};

class GpuFaultsTest : public testing::TestWithParam<Fault> {};

TEST_P(GpuFaultsTest, EndInErrorsOrDoNotMatter) {
  const Fault& fault = GetParam();
  for (const Vendor& vendor : Vendors()) {
    for (const char* nodes : {"1", "2"}) {
      for (const char* which : {"1", "3+"}) {
        const bool is_of_slice = (std::string(nodes) == "1") == (std::string(which) == "1");
        if (vendor.name != fault.backend || (!tests::RunsAll() && !is_of_slice)) {
          continue;
        }
        SCOPED_TRACE(fault.call + ":" + which + " on " + nodes);
        Words variables = VariablesOf(vendor, {});
        variables.push_back("FIXTURE_FAULTS=" + fault.call + ":" + which + ":" + fault.error);
        const CommandResult result = RunCleanly(
            PrivateJob({"-n", "2", "--nodes", nodes}, {"tests/e2e/ranks/device", "sizes"}),
            variables);
        if (result.exit_code == 0) {
          EXPECT_THAT(result.out, HasSubstr("device: ok\n"));
        } else {
          EXPECT_EQ(result.exit_code, 1) << result.err;  // ranks end like that when a call fails
          EXPECT_THAT(result.err, HasSubstr("last error: "));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuFaultsTest,
    testing::Values(Fault{"cuda", "cuIpcOpenMemHandle", "1"}, Fault{"cuda", "cuMemcpyAsync", "1"},
                    Fault{"cuda", "cuEventCreate", "2"}, Fault{"cuda", "cuMemHostRegister", "2"},
                    Fault{"hip", "hipIpcOpenMemHandle", "1"}, Fault{"hip", "hipEventQuery", "1"},
                    Fault{"hip", "hipHostMalloc", "2"},
                    Fault{"level_zero", "zeMemOpenIpcHandle", "1879048193"},
                    Fault{"level_zero", "zeCommandListAppendMemoryCopy", "1879048193"},
                    Fault{"level_zero", "zeMemAllocHost", "1879048194"}),
    [](const auto& each) { return each.param.call; });

TEST(GpuFaultsMessageTest, NamesTheCallThatKeepsBothEndsApart) {
  const Vendor cuda = Vendors().front();
  const Words variables = Joined(VariablesOf(cuda, {}), {"FIXTURE_FAULTS=cuIpcOpenMemHandle:1+:1"});
  const CommandResult result =
      RunCommand(PrivateJob({"-n", "2"}, {"tests/e2e/ranks/device", "sizes"}), variables);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("neither end of the message reaches the memory of the other"));
  EXPECT_THAT(result.err, HasSubstr("cuIpcOpenMemHandle: CUDA_ERROR_INVALID_VALUE"));
}

// Small messages need no import: they did without before receivers copied them.
TEST(GpuFaultsMessageTest, SmallMessagesArriveWhereNobodyMayImport) {
  const Words variables =
      Joined(VariablesOf(Vendors().front(), {}), {"FIXTURE_FAULTS=cuIpcOpenMemHandle:1+:1"});
  EXPECT_EQ(
      RunWell(PrivateJob({"-n", "2"}, {"tests/e2e/ranks/device_small", "unreached"}), variables),
      "device_small: ok\n");
}

TEST(GpuFaultsMessageTest, TheDriversWordsAreOfTheMessageThatFailed) {
  Words variables = VariablesOf(Vendors().front(), {});
  variables.emplace_back("FIXTURE_FAULTS=cuMemcpyAsync:2:2");  // the first is ferry_alloc's
  variables.emplace_back("FERRY_PIPELINE_STAGING_BLOCKS=0");   // so ferryd copies for no rank
  RunWell(PrivateJob({"-n", "2"}, {"tests/e2e/ranks/device", "words"}), variables);
}

TEST(GpuGuardTest, EndsWhoTouchesDeviceMemory) {
  for (const Vendor& vendor : Vendors()) {
    SCOPED_TRACE(vendor.name);
    const CommandResult result = RunCommand(
        PrivateJob({"-n", "1"}, {"tests/e2e/ranks/device", "touch"}), VariablesOf(vendor, {}));
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr("was killed by SIGSEGV"));
  }
}

}  // namespace
}  // namespace ferry::e2e

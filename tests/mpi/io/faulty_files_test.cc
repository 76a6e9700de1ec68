// Files whose system calls are interrupted, move a part or fail, file systems that are full or may
// only be read, and data in device memory: on one node and on two, by programs that name the step
// in which they fail.
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

constexpr char kPlaces[] = "tests/mpi/ranks/files_places";
constexpr char kAnswered[] = "all places were answered";

class FaultyFilesTest : public testing::TestWithParam<Placement> {
 protected:
  // Runs the program in a folder that is a file system of its own, which only this test sees:
  // `prepare` may fill it, then it is mounted again with `flags`.
  template <typename Prepare>
  static void RunOnFileSystem(const char* mode, unsigned long flags, Prepare&& prepare) {
    const e2e::TempDirectory folder;
    const char* const path = folder.path().c_str();
    std::string refusal;
    std::thread([&] {  // whose mounts end with it
      if (unshare(CLONE_FS | CLONE_NEWNS) != 0 ||
          mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          mount("none", path, "tmpfs", 0, "size=1m,mode=0755") != 0) {
        refusal = strerror(errno);
        return;
      }
      prepare(folder.path());
      if (flags != 0) {
        ASSERT_EQ(mount("none", path, nullptr, MS_REMOUNT | flags, nullptr), 0) << strerror(errno);
      }
      ExpectJob(GetParam(), {kPlaces, folder.path(), mode}, kAnswered);
    })
        .join();
    if (!refusal.empty()) {
      GTEST_SKIP() << "no file system can be mounted here: " << refusal;
    }
  }
};

TEST_P(FaultyFilesTest, FailByNameAndLoseNothing) {
  const e2e::TempDirectory folder;
  ExpectJob(GetParam(), {"tests/mpi/ranks/files_faults", folder.path()},
            "all faults were answered");
}

TEST_P(FaultyFilesTest, HaveNamesAndPlacesThatAreAnswered) {
  const e2e::TempDirectory folder;
  ExpectJob(GetParam(), {kPlaces, folder.path()}, kAnswered);
}

TEST_P(FaultyFilesTest, OfAFullFileSystemSaySo) {
  RunOnFileSystem("full", 0, [](const std::string&) {});
}

TEST_P(FaultyFilesTest, OfAFileSystemThatMayOnlyBeReadSaySo) {
  RunOnFileSystem("fixed", MS_RDONLY, [](const std::string& folder) {
    std::ofstream there(folder + "/there", std::ios::binary);
    for (int i = 0; i < 100; ++i) {
      there.put(static_cast<char>(31 + i * 7));
    }
  });
}

// Any access to the emulated devices' memory without a stream is a fault.
TEST_P(FaultyFilesTest, TakeAndGiveDeviceMemory) {
  const e2e::TempDirectory folder;
  ExpectJob(GetParam(), {"tests/mpi/ranks/files_device", folder.path()},
            "all device buffers were right",
            {"FERRY_HOST_LINK_H2D_MB_PER_S=8000", "FERRY_HOST_LINK_D2H_MB_PER_S=8000",
             "FERRY_HOST_LINK_LATENCY_US=5", "FERRY_HOST_LINK_GUARD=1"});
}

INSTANTIATE_TEST_SUITE_P(
    Placements, FaultyFilesTest,
    testing::Values(Placement{"OneRank", {"-n", "1"}}, Placement{"ThreeRanks", {"-n", "3"}},
                    Placement{"ThreeRanksOnTwoNodes", {"-n", "3", "--nodes", "2"}}),
    NameOf);

}  // namespace
}  // namespace ferry::mpi_tests

// Files of a file system that is not the machine's own, a FUSE file system of the test's: by every
// way of access, with calls that fail or are not answered, and with caches that each node believes.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/e2e/mpi_job.h"
#include "tests/support/fuse_folder.h"

namespace ferry::mpi_tests {
namespace {

using tests::FuseFolder;

constexpr char kProgram[] = "tests/mpi/ranks/files_far";
constexpr char kRight[] = "all was right";

class FarFilesTest : public testing::TestWithParam<Placement> {
 protected:
  // Two mounts of the same files, which only `run` and what it starts see.
  struct Mounts {
    std::vector<std::string> folders;
    std::vector<std::unique_ptr<FuseFolder>> servers;
  };
  static void Run(const FuseFolder::Options& options, const std::function<void(Mounts&)>& run) {
    const e2e::TempDirectory origin;
    const e2e::TempDirectory points[2];
    std::string refusal;
    std::thread([&] {  // the mounts end with it
      if (unshare(CLONE_FS | CLONE_NEWNS) != 0 ||
          mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        refusal = strerror(errno);
        return;
      }
      Mounts mounts;
      for (const e2e::TempDirectory& point : points) {
        mounts.folders.push_back(point.path());
        mounts.servers.push_back(FuseFolder::Mount(point.path(), origin.path(), options, &refusal));
        if (mounts.servers.back() == nullptr) {
          return;
        }
      }
      run(mounts);
    })
        .join();
    if (!refusal.empty()) {
      GTEST_SKIP() << "no FUSE file system can be mounted here: " << refusal;
    }
  }
  // Runs a program of tests/mpi/ranks there; `words`: its arguments behind the folder.
  static void ExpectOn(const FuseFolder::Options& options, const std::string& program,
                       const std::string& line, const e2e::Words& words = {},
                       const std::string& file = "") {
    Run(options, [&](Mounts& mounts) {
      const e2e::Words job = {"tests/mpi/ranks/" + program, mounts.folders[0] + file};
      ExpectJob(GetParam(), e2e::Joined(job, words), line);
    });
  }
};

constexpr FuseFolder::Options kUsual{};
constexpr FuseFolder::Options kDirect{.direct_io = true};
constexpr FuseFolder::Options kCached{.cached_s = 600};

TEST_P(FarFilesTest, ArePutTogetherByteForByte) {
  for (const FuseFolder::Options& options : {kUsual, kDirect}) {
    ExpectOn(options, "files_together", "all bytes were right", {"far"}, "/file");
  }
}

TEST_P(FarFilesTest, ArePutTogetherInTheBackground) {
  ExpectOn(kUsual, "files_background", "all calls in the background were right");
}

TEST_P(FarFilesTest, HaveViews) {
  for (const FuseFolder::Options& options : {kUsual, kDirect}) {
    ExpectOn(options, "files_views", "all views were right");
  }
}

TEST_P(FarFilesTest, FailByNameInEachCall) {
  for (const FuseFolder::Options& options : {kUsual, kDirect}) {
    ExpectOn(options, "files_far", kRight, {"faults"});
  }
}

TEST_P(FarFilesTest, GetRoomWhereTheFileSystemHasNoCallForThat) {
  ExpectOn({.allocates = false}, "files_far", kRight, {"room"});
}

TEST_P(FarFilesTest, AreTheSameForNodesWithCaches) {
  Run(kCached, [](Mounts& mounts) {
    ExpectJob(GetParam(), {kProgram, mounts.folders[0], "caches", mounts.folders[1]}, kRight);
  });
}

TEST_P(FarFilesTest, ThatDoNotAnswerHoldNothingElseUp) {
  const int ranks = std::stoi(GetParam().flags.at(1));
  if (ranks == 1) {
    GTEST_SKIP() << "there is no other rank";
  }
  const e2e::TempDirectory local;
  Run(kUsual, [&](Mounts& mounts) {
    std::vector<std::string> words = JobOf(GetParam());
    words.insert(words.end(), {kProgram, mounts.folders[0], "hang", local.path()});
    e2e::Command job(words);
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_TRUE(job.WaitForOutput("rank " + std::to_string(rank) + ": nothing else hangs"));
    }
    EXPECT_TRUE(e2e::Eventually([&] { return mounts.servers[0]->unanswered() >= 2; }));
    mounts.servers[0]->Abort();
    const e2e::CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, testing::HasSubstr(kRight));
  });
}

INSTANTIATE_TEST_SUITE_P(
    Placements, FarFilesTest,
    testing::Values(Placement{"OneRank", {"-n", "1"}}, Placement{"ThreeRanks", {"-n", "3"}},
                    Placement{"FourRanksOnTwoNodes", {"-n", "4", "--nodes", "2"}}),
    NameOf);

}  // namespace
}  // namespace ferry::mpi_tests

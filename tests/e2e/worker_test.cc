// Whole jobs whose ranks have worker processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;

// A worker has no capabilities and reaches no rank that has some, as a rank of root's would.
std::vector<std::string> WithoutCapabilities(std::vector<std::string> arguments) {
  if (geteuid() == 0) {
    arguments.insert(arguments.begin(),
                     {"/usr/bin/setpriv", "--bounding-set=-all", "--inh-caps=-all"});
  }
  return arguments;
}

class WorkerPointToPointTest : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(WorkerPointToPointTest, KeepsItsPromises) {
  std::vector<std::string> arguments = {"tools/ferryrun/ferryrun", "--private", "--ferryd",
                                        "daemon/ferryd", "--no-label"};
  arguments.insert(arguments.end(), GetParam().begin(), GetParam().end());
  arguments.push_back("tests/e2e/ranks/point_to_point");
  Command command(WithoutCapabilities(arguments), {"FERRY_WORKER_MODE=process"});
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "point_to_point: ok\n");
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Placements, WorkerPointToPointTest,
                         testing::Values(std::vector<std::string>{"-n", "2"},
                                         std::vector<std::string>{"-n", "4", "--nodes", "2"}));

// A system ferryd: root's, with the capabilities of config/ferryd.service. Its launcher and ranks
// are an ordinary user's, in a folder that this user can read.
class SystemDaemonTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "only root can start ranks of another user";
    }
    ASSERT_NE(mkdtemp(directory_.data()), nullptr);
    fs::permissions(directory_, fs::perms(0755));
    for (const char* file : {"tools/ferryrun/ferryrun", "tests/e2e/ranks/point_to_point",
                             "client/libferry.so.0", "client/control/libferry_control.so"}) {
      fs::copy_file(file, directory_ + "/" + fs::path(file).filename().string());
    }
    daemon_ = std::make_unique<Command>(std::vector<std::string>{
        "/usr/bin/setpriv", "--bounding-set=-all,+setuid,+setgid,+kill", "--inh-caps=-all",
        "daemon/ferryd", "--run_directory=" + run_directory()});
    ASSERT_TRUE(Eventually([&] { return fs::exists(run_directory() + "/ferryd.json"); }));
  }
  void TearDown() override {
    if (daemon_ != nullptr) {
      daemon_->Signal(SIGTERM);
      EXPECT_EQ(daemon_->Wait().exit_code, 0);
      EXPECT_THAT(daemon_->Leftovers(), IsEmpty());
      fs::remove_all(directory_);
    }
  }

  std::string run_directory() const { return directory_ + "/run"; }

  std::string directory_ = "/tmp/ferry-system-XXXXXX";
  std::unique_ptr<Command> daemon_;
};

TEST_F(SystemDaemonTest, KeepsItsPromisesToAnotherUsersRanks) {
  Command command({"/usr/bin/setpriv", "--reuid=64321", "--regid=64322", "--clear-groups",
                   directory_ + "/ferryrun", "--run_directory=" + run_directory(), "--no-label",
                   "-n", "3", directory_ + "/point_to_point"},
                  {"LD_LIBRARY_PATH=" + directory_});
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "point_to_point: ok\n");
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

}  // namespace
}  // namespace ferry::e2e

#include "daemon/control/run_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/daemon/test_rank.h"

namespace ferry::daemon {
namespace {

using ::testing::ExitedWithCode;

class RunDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/ferry-run-XXXXXX";
    parent_ = mkdtemp(path);
    path_ = parent_ + "/run";
  }
  void TearDown() override { std::filesystem::remove_all(parent_); }

  std::string parent_;
  std::string path_;
};

void ExpectRefusal(const std::string& path, const std::string& words) {
  const StatusOr<RunDirectory> opened = RunDirectory::Open(path, false);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), ErrorCode::kRunDirectory);
  EXPECT_NE(opened.status().message().find(path), std::string::npos);
  EXPECT_NE(opened.status().message().find(words), std::string::npos) << opened.status().message();
}

TEST_F(RunDirectoryTest, MakesAPrivateDirectoryAndRemovesItAgain) {
  {
    const auto opened = RunDirectory::Open(path_, false);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    struct stat info {};
    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(RunDirectoryTest, MakesADirectoryForAllWhateverTheUmask) {
  const mode_t before = umask(0077);
  const auto opened = RunDirectory::Open(path_, true);
  umask(before);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_TRUE(opened->IsOpenToAll());
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0755U);
}

TEST_F(RunDirectoryTest, DoesNotOpenADirectoryThatItDidNotMake) {
  mkdir(path_.c_str(), 0700);
  const auto opened = RunDirectory::Open(path_, true);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_FALSE(opened->IsOpenToAll());
}

// No other user could guess the name, and make the directory first.
TEST_F(RunDirectoryTest, DrawsTheEndOfAnUnmadeNameAndRemovesWhatItMade) {
  std::string first;
  {
    const auto one = RunDirectory::Open(parent_ + "/ferry-7-XXXXXX", false);
    const auto other = RunDirectory::Open(parent_ + "/ferry-7-XXXXXX", true);
    ASSERT_TRUE(one.ok() && other.ok());
    first = one->path();
    EXPECT_TRUE(first.starts_with(parent_ + "/ferry-7-")) << first;
    EXPECT_FALSE(first.ends_with("XXXXXX"));
    EXPECT_NE(first, other->path());
    EXPECT_FALSE(one->IsOpenToAll());
    EXPECT_TRUE(other->IsOpenToAll());
  }
  EXPECT_FALSE(std::filesystem::exists(first));
}

TEST_F(RunDirectoryTest, KeepsADirectoryThatItDidNotMake) {
  mkdir(path_.c_str(), 0755);
  { ASSERT_TRUE(RunDirectory::Open(path_, false).ok()); }
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(RunDirectoryTest, RefusesAMissingParent) {
  ExpectRefusal(parent_ + "/missing/run", "its parent is missing");
}

TEST_F(RunDirectoryTest, RefusesAFile) {
  std::ofstream(path_) << "file";
  ExpectRefusal(path_, "is not a directory");
}

TEST_F(RunDirectoryTest, RefusesADirectoryThatOthersMayWrite) {
  mkdir(path_.c_str(), 0700);
  chmod(path_.c_str(), 0777);
  ExpectRefusal(path_, "can be written by other users");
}

TEST_F(RunDirectoryTest, RefusesADirectoryOfSomeoneElse) {
  if (!CanBecomeOthers()) {
    GTEST_SKIP() << "needs root, outside a user namespace";
  }
  mkdir(path_.c_str(), 0700);
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  ExpectRefusal(path_, "is owned by uid 12345");
}

// Runs in its own process, which gives up root's right to write everywhere.
TEST_F(RunDirectoryTest, RefusesADirectoryThatIsNotWritable) {
  mkdir(path_.c_str(), 0500);
  chmod(parent_.c_str(), 0755);
  if (geteuid() == 0 && !CanBecomeOthers()) {
    GTEST_SKIP() << "root of a user namespace may write everywhere";
  }
  const uid_t uid = geteuid() == 0 ? 12345 : geteuid();
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path_.c_str(), uid, uid), 0);
  }
  EXPECT_EXIT(
      {
        const bool same = geteuid() == uid;
        const bool dropped = same || setresuid(uid, uid, uid) == 0;
        const auto opened = RunDirectory::Open(path_, false);
        const bool refused = !opened.ok() && opened.status().code() == ErrorCode::kRunDirectory &&
                             opened.status().message().find("not writable") != std::string::npos;
        _exit(dropped && refused ? 0 : 1);
      },
      ExitedWithCode(0), "");
}

// Expects the error `words` where this process may have at most `limit` of `resource`.
void OpenWithLimit(int resource, rlim_t limit, const std::string& path, const char* words) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limits = {limit, limit};
  setrlimit(static_cast<__rlimit_resource>(resource), &limits);
  const auto opened = RunDirectory::Open(path, false);
  const std::string message = opened.ok() ? "" : opened.status().message();
  _exit(message.find(words) != std::string::npos && message.find(path) != std::string::npos ? 0
                                                                                            : 1);
}

TEST_F(RunDirectoryTest, WantOfDescriptorsIsNotWantOfRights) {
  EXPECT_EXIT(OpenWithLimit(RLIMIT_NOFILE, 3, path_, "cannot hold ferryd's files: Too many open"),
              ExitedWithCode(0), "");
  EXPECT_FALSE(std::filesystem::exists(path_)) << "it had just been made";
}

// As on a full disk: an empty file can be made there, and nothing be written.
TEST_F(RunDirectoryTest, AFileThatCannotBeWrittenIsNamedAndRemoved) {
  EXPECT_EXIT(OpenWithLimit(RLIMIT_FSIZE, 0, path_, "ferryd.lock: File too large"),
              ExitedWithCode(0), "");
  EXPECT_FALSE(std::filesystem::exists(path_));
  mkdir(path_.c_str(), 0700);  // another user's, who made it for us
  EXPECT_EXIT(OpenWithLimit(RLIMIT_FSIZE, 0, path_, "ferryd.lock: File too large"),
              ExitedWithCode(0), "");
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(RunDirectoryTest, ASecondDaemonIsRefusedWithTheFirstOnesPid) {
  const auto first = RunDirectory::Open(path_, false);
  ASSERT_TRUE(first.ok());
  const auto second = RunDirectory::Open(path_, false);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), ErrorCode::kAlreadyExists);
  EXPECT_NE(second.status().message().find("in use by ferryd with pid " + std::to_string(getpid())),
            std::string::npos)
      << second.status().message();
  EXPECT_TRUE(std::filesystem::exists(first->LockFile()));
}

TEST_F(RunDirectoryTest, RemovesWhatADeadDaemonLeft) {
  const pid_t child = fork();
  if (child == 0) {
    auto opened = RunDirectory::Open(path_, false);
    std::ofstream(opened->AttachSocket()) << "stale";
    std::ofstream(opened->ControlSocket()) << "stale";
    std::ofstream(opened->AdminSocket()) << "stale";
    (void)opened->WriteInfo({}).ok();
    _exit(opened.ok() ? 0 : 1);  // without destructors, as if killed
  }
  int exit_status = 0;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  ASSERT_EQ(exit_status, 0);
  ASSERT_TRUE(std::filesystem::exists(path_ + "/attach.sock"));
  const auto opened = RunDirectory::Open(path_, false);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_FALSE(std::filesystem::exists(opened->AttachSocket()));
  EXPECT_FALSE(std::filesystem::exists(opened->ControlSocket()));
  EXPECT_FALSE(std::filesystem::exists(opened->AdminSocket()));
  EXPECT_FALSE(std::filesystem::exists(opened->InfoFile()));
}

TEST_F(RunDirectoryTest, AForkedChildUnlinksNothing) {
  const auto opened = RunDirectory::Open(path_, false);
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(opened->WriteInfo({}).ok());
  const pid_t child = fork();
  if (child == 0) {
    const_cast<RunDirectory&>(*opened).~RunDirectory();
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(std::filesystem::exists(opened->InfoFile()));
}

TEST_F(RunDirectoryTest, TheInfoFileTellsWhereTheDaemonIs) {
  const auto opened = RunDirectory::Open(path_, false);
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(opened->WriteInfo({"node7", "127.0.0.1:4711", 42}).ok());
  std::ifstream file(opened->InfoFile());
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["pid"], getpid());
  EXPECT_EQ(json["control_address"], "127.0.0.1:4711");
  EXPECT_EQ(json["incarnation"], "42");
  EXPECT_EQ(json["node_name"], "node7");
}

}  // namespace
}  // namespace ferry::daemon

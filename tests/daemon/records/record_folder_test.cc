// The files that are left of jobs: their rights, their number, and folders that are full or gone.
#include "daemon/records/record_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/daemon/ferryd_process.h"
#include "tests/support/http_get.h"

namespace ferry::daemon {
namespace {

namespace fs = std::filesystem;
using tests::ThreadOfUser;

constexpr uid_t kAnn = 12345;
constexpr uid_t kBob = 54321;

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int OpenError(const std::string& path, int flags) {
  const UniqueFd fd(open(path.c_str(), flags | O_CLOEXEC));
  return fd.valid() ? 0 : errno;
}

class RecordFolderTest : public ::testing::Test {
 protected:
  RecordFolderTest() { fs::permissions(path_, fs::perms(0755)); }
  StatusOr<RecordFolder> Open(uint64_t kept = 10) { return RecordFolder::Open(path_, kept); }
  std::string OfUser(uid_t uid) const { return path_ + "/" + std::to_string(uid); }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.path();
};

TEST_F(RecordFolderTest, OneFileEachWholeAndTheOldestGo) {
  StatusOr<RecordFolder> folder = Open(3);
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  for (const char* name : {"2-b.json", "1-a.json", "3-c.json", "5-e.json", "4-d.json"}) {
    ASSERT_TRUE(folder->Write(geteuid(), name, std::string(name) + "\n").ok());
  }
  EXPECT_EQ(Names(OfUser(geteuid())),
            (std::vector<std::string>{"3-c.json", "4-d.json", "5-e.json"}));
  EXPECT_EQ(Read(OfUser(geteuid()) + "/4-d.json"), "4-d.json\n");
}

TEST_F(RecordFolderTest, OnlyTheUserOfAJobReadsItsRecord) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to become several users";
  }
  StatusOr<RecordFolder> folder = Open();
  ASSERT_TRUE(folder.ok());
  const Status status = folder->Write(kAnn, "1-a.json", "{}\n");
  if (status.code() == ErrorCode::kUnsupported) {
    GTEST_SKIP() << status.message();
  }
  ASSERT_TRUE(status.ok()) << status.message();
  const std::string file = OfUser(kAnn) + "/1-a.json";
  struct stat info {};
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U);
  {
    const ThreadOfUser ann(kAnn);
    EXPECT_EQ(Names(OfUser(kAnn)), std::vector<std::string>{"1-a.json"});
    EXPECT_EQ(Read(file), "{}\n");
    EXPECT_EQ(OpenError(file, O_WRONLY), EACCES);
    EXPECT_EQ(unlink(file.c_str()), -1);
    EXPECT_EQ(OpenError(OfUser(kAnn) + "/mine", O_WRONLY | O_CREAT), EACCES);
  }
  {
    const ThreadOfUser bob(kBob);
    EXPECT_EQ(OpenError(file, O_RDONLY), EACCES);
    EXPECT_EQ(OpenError(OfUser(kAnn), O_RDONLY | O_DIRECTORY), EACCES);
  }
}

TEST_F(RecordFolderTest, FoldersOfOthersAreRefused) {
  EXPECT_EQ(RecordFolder::Open(path_ + "/none", 1).status().code(), ErrorCode::kConfiguration);
  fs::permissions(path_, fs::perms(0777));
  EXPECT_NE(Open().status().message().find("others may write to"), std::string::npos);
  if (geteuid() == 0) {
    fs::permissions(path_, fs::perms(0755));
    ASSERT_EQ(chown(path_.c_str(), kAnn, kAnn), 0);
    EXPECT_NE(Open().status().message().find("belongs to uid 12345"), std::string::npos);
    ASSERT_EQ(chown(path_.c_str(), 0, 0), 0);
  }
}

// No record is half there, and none of the user's own making is followed.
TEST_F(RecordFolderTest, AFullFileSystemLeavesNothingHalf) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to mount a small file system";
  }
  if (mount("none", path_.c_str(), "tmpfs", 0, "size=64k,mode=0755") != 0) {
    GTEST_SKIP() << "no file system can be mounted here";
  }
  {
    StatusOr<RecordFolder> folder = Open();
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    const Status status = folder->Write(0, "1-a.json", std::string(200'000, 'x'));
    EXPECT_EQ(status.code(), ErrorCode::kSystem);
    EXPECT_NE(status.message().find("No space left"), std::string::npos) << status.message();
    EXPECT_EQ(Names(OfUser(0)), std::vector<std::string>{});
    EXPECT_TRUE(folder->Write(0, "2-b.json", "{}\n").ok()) << "and goes on";
  }
  EXPECT_EQ(umount2(path_.c_str(), MNT_DETACH), 0);
}

TEST_F(RecordFolderTest, AFolderOfAnotherInTheWayIsNotUsed) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to make another user's folder";
  }
  StatusOr<RecordFolder> folder = Open();
  ASSERT_TRUE(folder.ok());
  ASSERT_EQ(mkdir(OfUser(kAnn).c_str(), 0700), 0);
  ASSERT_EQ(chown(OfUser(kAnn).c_str(), kAnn, kAnn), 0);
  EXPECT_EQ(folder->Write(kAnn, "1-a.json", "{}\n").code(), ErrorCode::kSystem);
  fs::create_directory_symlink("/tmp", OfUser(kBob));
  EXPECT_EQ(folder->Write(kBob, "1-a.json", "{}\n").code(), ErrorCode::kSystem);
}

}  // namespace
}  // namespace ferry::daemon

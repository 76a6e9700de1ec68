#include "common/own_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace ferry {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class OwnFoldersTest : public testing::Test {
 protected:
  OwnFoldersTest() { EXPECT_NE(mkdtemp(base_.data()), nullptr); }
  ~OwnFoldersTest() override { fs::remove_all(base_); }
  std::string Make(const std::string& name, unsigned mode) const {
    const std::string path = base_ + "/" + name;
    fs::create_directory(path);
    fs::permissions(path, fs::perms(mode));
    return path;
  }

  std::string base_ = "/tmp/ferry-folders-XXXXXX";
};

TEST_F(OwnFoldersTest, AreFoundByPrefixAndOwner) {
  const std::string two = Make("mine-2", 0700);
  const std::string one = Make("mine-1", 0755);
  Make("mine-3", 0777);
  Make("other-4", 0700);
  std::ofstream(base_ + "/mine-5") << "a file";
  fs::create_directory_symlink(one, base_ + "/mine-6");
  EXPECT_THAT(FoldersOf(base_, "mine-", geteuid()), ElementsAre(one, two));
  EXPECT_THAT(FoldersOf(base_, "mine-", geteuid() + 1), ElementsAre());
  EXPECT_THAT(FoldersOf(base_ + "/none", "mine-", geteuid()), ElementsAre());
}

TEST_F(OwnFoldersTest, ABaseWhereOthersRenameIsNotSafe) {
  EXPECT_TRUE(IsSafeBase(Make("own", 0700), geteuid()));
  EXPECT_TRUE(IsSafeBase(Make("sticky", 01777), geteuid()));
  EXPECT_FALSE(IsSafeBase(Make("open", 0777), geteuid()));
  EXPECT_FALSE(IsSafeBase(Make("group", 0770), geteuid()));
  EXPECT_FALSE(IsSafeBase(base_ + "/none", geteuid()));
  EXPECT_TRUE(IsSafeBase("/tmp", geteuid()));
  if (geteuid() == 0) {
    EXPECT_TRUE(IsSafeBase(base_, 1)) << "of root's";
  } else {
    EXPECT_FALSE(IsSafeBase(base_, geteuid() + 1));
  }
}

}  // namespace
}  // namespace ferry

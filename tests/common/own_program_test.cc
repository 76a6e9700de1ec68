#include "common/own_program.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

namespace ferry {
namespace {

TEST(OwnProgramTest, IsTheFileThatRuns) {
  struct stat running {};
  struct stat found {};
  ASSERT_EQ(stat("/proc/self/exe", &running), 0);
  ASSERT_EQ(stat(OwnProgram().c_str(), &found), 0);
  EXPECT_EQ(found.st_ino, running.st_ino);
  EXPECT_EQ(found.st_dev, running.st_dev);
  EXPECT_TRUE(std::filesystem::path(OwnProgram()).is_absolute());
}

TEST(OwnProgramTest, LiesInItsDirectory) {
  EXPECT_EQ(OwnDirectory() + "/" + std::filesystem::path(OwnProgram()).filename().string(),
            OwnProgram());
}

}  // namespace
}  // namespace ferry

#include "client/pmix/own_daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace ferry::client {
namespace {

using testing::HasSubstr;

TEST(OwnDaemonTest, LooksWhereFerryrunIsInstalledAndBuilt) {
  EXPECT_THAT(PlacesOfFerryrun("/usr/lib/x86_64-linux-gnu"),
              testing::Contains("/usr/lib/x86_64-linux-gnu/../../bin/ferryrun"));
  EXPECT_THAT(PlacesOfFerryrun("/opt/ferry/lib"),
              testing::Contains("/opt/ferry/lib/../bin/ferryrun"));
  EXPECT_THAT(PlacesOfFerryrun(""), testing::IsEmpty());
}

// With a ferryrun of its own, found by PATH: this test's libraries lie elsewhere.
class OwnDaemonHelperTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    setenv("PATH", (folder_ + ":/usr/bin:/bin").c_str(), 1);
  }
  void Play(const std::string& script) {
    std::ofstream(folder_ + "/ferryrun") << "#!/bin/sh\n" << script;
    std::filesystem::permissions(folder_ + "/ferryrun", std::filesystem::perms::owner_all);
  }

  const std::string folder_ = testing::TempDir() + "helper";
};

TEST_F(OwnDaemonHelperTest, LivesAsLongAsItsOwner) {
  const std::string end = folder_ + "/ended";
  Play("test \"$*\" = --daemon || exit 1\necho serves /run/own\ncat\ntouch " + end + "\n");
  {
    const auto daemon = OwnDaemon::Start();
    ASSERT_TRUE(daemon.ok()) << daemon.status().message();
    EXPECT_EQ((*daemon)->run_directory(), "/run/own");
    EXPECT_FALSE(std::filesystem::exists(end));
  }
  EXPECT_TRUE(std::filesystem::exists(end));
}

TEST_F(OwnDaemonHelperTest, SaysWhyThereIsNone) {
  Play("echo cannot open the fabric\necho it is gone\nexit 1\n");
  const Status status = OwnDaemon::Start().status();
  EXPECT_EQ(status.code(), ErrorCode::kNoDaemon);
  EXPECT_THAT(status.message(), HasSubstr("none could be started for this job: cannot open the "
                                          "fabric\nit is gone"));
  Play("exit 1\n");
  EXPECT_THAT(OwnDaemon::Start().status().message(), HasSubstr("ferryrun said nothing"));
}

TEST_F(OwnDaemonHelperTest, SaysThatThereIsNoFerryrun) {
  std::filesystem::remove(folder_ + "/ferryrun");
  setenv("PATH", folder_.c_str(), 1);
  const Status status = OwnDaemon::Start().status();
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_THAT(status.message(),
              HasSubstr("no ferryd serves this node, and ferryrun, which would start one for this "
                        "job, cannot be run: No such file"));
}

}  // namespace
}  // namespace ferry::client

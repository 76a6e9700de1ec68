#include "tools/admin/daemon_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ferry::tools {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class DaemonSearchTest : public testing::Test {
 protected:
  DaemonSearchTest() {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    places_ = {.usual = directory_ + "/own",
               .system = directory_ + "/system",
               .bases = {directory_ + "/run", directory_ + "/tmp"},
               .uid = geteuid()};
  }
  ~DaemonSearchTest() override { fs::remove_all(directory_); }

  void Serve(const std::string& folder) const {
    fs::create_directories(directory_ + "/" + folder);
    std::ofstream(directory_ + "/" + folder + "/control.sock");
  }
  std::string Private(const std::string& name) const { return PrivateName(geteuid()) + name; }
  static std::string PrivateName(uid_t uid) { return "ferryrun-" + std::to_string(uid) + "-"; }
  // "KIND FOLDER" of each.
  std::vector<std::string> Found() const {
    std::vector<std::string> found;
    for (const DaemonDirectory& daemon : SearchDaemons(places_)) {
      found.push_back(DaemonKindText(daemon.kind) +
                      (" " + daemon.run_directory.substr(directory_.size() + 1)));
    }
    return found;
  }

  std::string directory_ = "/tmp/ferry-search-XXXXXX";
  SearchPlaces places_;
};

TEST_F(DaemonSearchTest, FindsTheUsersOwnTheNodesAJobsAndPrivateOnes) {
  EXPECT_THAT(Found(), ElementsAre("own own", "node system")) << "whether there is one or not";
  Serve("tmp/" + Private("b") + "/1");
  Serve("tmp/" + Private("b") + "/0");
  Serve("run/" + Private("a") + "/0");
  Serve("system/job-7");
  EXPECT_THAT(Found(), ElementsAre("own own", "node system", "job system/job-7",
                                   "private run/" + Private("a") + "/0",
                                   "private tmp/" + Private("b") + "/0",
                                   "private tmp/" + Private("b") + "/1"));
}

TEST_F(DaemonSearchTest, ADirectoryThatIsFoundTwiceIsOne) {
  places_.bases.push_back(places_.bases.front());
  places_.usual = places_.system;
  Serve("run/" + Private("a") + "/0");
  EXPECT_THAT(Found(), ElementsAre("node system", "private run/" + Private("a") + "/0"));
}

// Anybody may make a folder of any name in /tmp.
TEST_F(DaemonSearchTest, WhatIsNotTheUsersIsLeftAlone) {
  Serve("tmp/" + PrivateName(geteuid() + 1) + "a/0");
  fs::create_directories(directory_ + "/tmp");
  fs::create_symlink("/", directory_ + "/tmp/" + Private("link"));
  EXPECT_THAT(Found(), ElementsAre("own own", "node system"));
  ++places_.uid;  // to whom the folder of that name does not belong
  EXPECT_THAT(Found(), ElementsAre("own own", "node system"));
}

TEST_F(DaemonSearchTest, ShellsWithoutTheVariablesFindThemToo) {
  const char* const nothing[] = {nullptr};
  const std::string run = "/run/user/" + std::to_string(geteuid());
  EXPECT_THAT(PlacesOf(nothing).bases, ElementsAre(run, "/tmp"));
  const char* const both[] = {"XDG_RUNTIME_DIR=/x", "TMPDIR=/y", nullptr};
  EXPECT_THAT(PlacesOf(both).bases, ElementsAre("/x", "/y", run, "/tmp"));
}

}  // namespace
}  // namespace ferry::tools

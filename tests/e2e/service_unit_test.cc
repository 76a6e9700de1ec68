// config/ferryd.service as systemd reads it, and ferryd with the rights that it grants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kAnalyze[] = "/usr/bin/systemd-analyze";
constexpr char kSetpriv[] = "/usr/bin/setpriv";
constexpr char kExposureTimesTen[] = "30";  // of 100; below 40 systemd says OK

std::string ReadUnit() {
  std::ifstream file("config/ferryd.service");
  return {std::istreambuf_iterator<char>(file), {}};
}

void Replace(std::string* text, const std::string& from, const std::string& to) {
  ASSERT_NE(text->find(from), text->npos) << from;
  text->replace(text->find(from), from.size(), to);
}

// The value behind `key=` in the unit.
std::string Setting(const std::string& key) {
  std::istringstream lines(ReadUnit());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key + "=")) {
      return line.substr(key.size() + 1);
    }
  }
  ADD_FAILURE() << "the unit has no " << key;
  return "";
}

class ServiceUnitTest : public testing::Test {
 protected:
  ServiceUnitTest() {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    std::string unit = ReadUnit();
    // Files opened through the build's links would lie outside any sandbox.
    Replace(&unit, "@FERRYD@", fs::canonical("daemon/ferryd"));
    Replace(&unit, "@CONFIG@", directory_ + "/ferryd.toml");
    std::ofstream(Unit()) << unit;
    std::ofstream(directory_ + "/ferryd.toml") << "# all defaults\n";
  }
  ~ServiceUnitTest() override { fs::remove_all(directory_); }

  std::string Unit() const { return directory_ + "/ferryd.service"; }
  // Checks that systemd-analyze ARGUMENTS UNIT succeeds without a complaint.
  void Analyze(std::vector<std::string> arguments) const {
    if (!fs::exists(kAnalyze)) {
      GTEST_SKIP() << kAnalyze << " is not there: apt-get install systemd";
    }
    arguments.insert(arguments.begin(), kAnalyze);
    arguments.push_back(Unit());
    const CommandResult result = RunCommand(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_EQ(result.err, "");
  }

  std::string directory_ = "/tmp/ferry-unit-XXXXXX";
};

TEST_F(ServiceUnitTest, IsCorrect) { Analyze({"verify", "--man=no"}); }

TEST_F(ServiceUnitTest, IsHardened) {
  Analyze({"security", "--offline=true", "--no-pager",
           std::string("--threshold=") + kExposureTimesTen});
}

// The flags of ExecStart, and the capabilities and privileges that the unit leaves to root.
TEST_F(ServiceUnitTest, ServesWithTheUnitsCapabilities) {
  if (geteuid() != 0 || !fs::exists(kSetpriv)) {
    GTEST_SKIP() << "needs root and " << kSetpriv << " to take capabilities away";
  }
  std::string capabilities = "-all";
  std::istringstream allowed(Setting("CapabilityBoundingSet"));
  for (std::string name; allowed >> name;) {
    for (char& c : name) {
      c = static_cast<char>(std::tolower(c));
    }
    capabilities += ",+" + name.substr(std::string("cap_").size());
  }
  EXPECT_EQ(capabilities, "-all,+setuid,+setgid,+kill");
  const std::string variable = "FERRY_RUN_DIRECTORY=" + directory_ + "/run";
  Command ferryd({kSetpriv, "--no-new-privs", "--bounding-set", capabilities, "--inh-caps=-all",
                  "daemon/ferryd", "--config", directory_ + "/ferryd.toml"},
                 {variable});
  ASSERT_TRUE(ferryd.WaitForError(" serves "));
  EXPECT_THAT(RunCommand({"tools/ferryctl/ferryctl", "status"}, {variable}).out,
              HasSubstr("serving"));
  const CommandResult job =
      RunCommand({"tools/ferryrun/ferryrun", "-n", "2", "examples/hello/hello"}, {variable});
  EXPECT_EQ(job.exit_code, 0) << job.err;
  EXPECT_THAT(job.out, HasSubstr("rank 0 of 2: rank 1 says hello"));
  ferryd.Signal(SIGTERM);
  EXPECT_EQ(ferryd.Wait().exit_code, 0);
}

}  // namespace
}  // namespace ferry::e2e

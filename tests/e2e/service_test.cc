// ferryd as a service: its messages to the service manager (sd_notify), which this test plays;
// and the unit of systemd that starts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "tests/e2e/command.h"
#include "tests/e2e/notify_socket.h"
#include "tests/support/frozen_thread.h"
#include "tests/support/patience.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using tests::FrozenThread;
using tests::ReadFile;

constexpr char kFerryd[] = "daemon/ferryd";
using tests::kPatienceMs;
constexpr char kWatchdog[] = "WATCHDOG_USEC=100000";  // a sign of life every 50 ms
constexpr int kManySignsMs = 500;

class ServiceTest : public testing::Test {
 protected:
  // ferryd as the manager starts it.
  Words Environment(const Words& more = {}) const {
    return Joined(more, {"NOTIFY_SOCKET=" + manager_.Path(),
                         "FERRY_RUN_DIRECTORY=" + manager_.RunDirectory()});
  }

  NotifySocket manager_;
};

TEST_F(ServiceTest, TellsReadyReloadingAndStopping) {
  Command ferryd({kFerryd}, Environment());
  EXPECT_THAT(manager_.WaitFor("READY=1"), HasSubstr("STATUS=serves " + manager_.RunDirectory()));
  EXPECT_TRUE(fs::exists(manager_.RunDirectory() + "/attach.sock"));

  ferryd.Signal(SIGHUP);
  EXPECT_THAT(manager_.Next(kPatienceMs).value_or(""),
              AllOf(HasSubstr("RELOADING=1\n"), HasSubstr("MONOTONIC_USEC=")));
  EXPECT_THAT(manager_.Next(kPatienceMs).value_or(""), HasSubstr("READY=1\n"));

  ferryd.Signal(SIGTERM);
  // No sign of life came in between: no watchdog is set.
  EXPECT_THAT(manager_.Next(kPatienceMs).value_or(""), HasSubstr("STOPPING=1\n"));
  EXPECT_EQ(ferryd.WaitCleanly().exit_code, 0);
}

TEST_F(ServiceTest, IsNotReadyWhenItCannotStart) {
  Command ferryd({kFerryd, "--provider=nosuch"}, Environment());
  EXPECT_EQ(ferryd.Wait().exit_code, 1);
  EXPECT_EQ(manager_.Next(0), std::nullopt);
}

TEST_F(ServiceTest, ShowsSignsOfLifeWhileItSleeps) {
  Command ferryd({kFerryd}, Environment({kWatchdog}));
  ASSERT_NE(manager_.WaitFor("READY=1"), "");
  for (int sign = 0; sign < 5; ++sign) {
    EXPECT_THAT(manager_.Next(kPatienceMs).value_or(""),
                AllOf(HasSubstr("WATCHDOG=1\n"), HasSubstr("STATUS=serves 0 ranks and 0 jobs")));
  }
}

TEST_F(ServiceTest, AManagerThatReadsNothingHoldsNobodyUp) {
  Command ferryd({kFerryd}, Environment({kWatchdog}));
  ASSERT_NE(manager_.WaitFor("WATCHDOG=1"), "");
  manager_.Fill();
  // A job of several signs' time.
  const CommandResult job =
      RunCommand({"tools/ferryrun/ferryrun", "-n", "2", "examples/hello/hello"},
                 {"FERRY_RUN_DIRECTORY=" + manager_.RunDirectory()});
  EXPECT_EQ(job.exit_code, 0) << job.err;
  manager_.Forget();
  EXPECT_NE(manager_.WaitFor("WATCHDOG=1"), "") << "no sign once it reads again";
  manager_.Fill();
  ferryd.Signal(SIGTERM);
  EXPECT_EQ(ferryd.WaitCleanly().exit_code, 0);
}

// systemd's own socket may be a name of Linux in place of a file.
TEST_F(ServiceTest, TellsAManagerWithoutAFile) {
  const NotifySocket manager(NotifySocket::kAbstract);
  Command ferryd({kFerryd}, {kWatchdog, "NOTIFY_SOCKET=" + manager.Path(),
                             "FERRY_RUN_DIRECTORY=" + manager.RunDirectory()});
  EXPECT_NE(manager.WaitFor("READY=1"), "");
  EXPECT_NE(manager.WaitFor("WATCHDOG=1"), "");
}

TEST_F(ServiceTest, AWatchdogOfAnotherProcessIsNotFed) {
  Command ferryd({kFerryd}, Environment({kWatchdog, "WATCHDOG_PID=1"}));
  ASSERT_NE(manager_.WaitFor("READY=1"), "");
  ferryd.Signal(SIGTERM);
  EXPECT_THAT(manager_.Next(kPatienceMs).value_or(""), HasSubstr("STOPPING=1\n"));
}

TEST_F(ServiceTest, AStuckProgressThreadStarvesTheWatchdog) {
  Command ferryd({kFerryd}, Environment({kWatchdog}));
  ASSERT_NE(manager_.WaitFor("WATCHDOG=1"), "");
  {
    const FrozenThread frozen(ferryd.pid(), "ferry-progress");
    ASSERT_TRUE(ferryd.WaitForError("the progress thread has not answered for 50 ms"));
    manager_.Forget();
    EXPECT_EQ(manager_.Next(kManySignsMs), std::nullopt);
  }
  EXPECT_NE(manager_.WaitFor("WATCHDOG=1"), "") << "it turns again";
}

TEST_F(ServiceTest, AStuckControlLoopStarvesTheWatchdog) {
  Command ferryd({kFerryd}, Environment({kWatchdog}));
  ASSERT_NE(manager_.WaitFor("WATCHDOG=1"), "");
  {
    const FrozenThread frozen(ferryd.pid(), "ferry-control");
    manager_.Forget();
    EXPECT_EQ(manager_.Next(kManySignsMs), std::nullopt);
  }
  EXPECT_NE(manager_.WaitFor("WATCHDOG=1"), "") << "it turns again";
}

// ---- config/ferryd.service as systemd reads it, and ferryd with the rights that it grants

constexpr char kAnalyze[] = "/usr/bin/systemd-analyze";
constexpr char kSetpriv[] = "/usr/bin/setpriv";
constexpr char kExposureTimesTen[] = "24";  // of 100; below 40 systemd says OK

void Replace(std::string* text, const std::string& from, const std::string& to) {
  ASSERT_NE(text->find(from), text->npos) << from;
  text->replace(text->find(from), from.size(), to);
}

Words WordsOf(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

// The values behind `key=` in the unit, line by line.
Words Settings(const std::string& key) {
  Words found;
  std::istringstream lines(ReadFile("config/ferryd.service"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key + "=")) {
      found.push_back(line.substr(key.size() + 1));
    }
  }
  EXPECT_FALSE(found.empty()) << "the unit has no " << key;
  return found;
}

// The system calls that systemd means by a name or by the name of a group.
std::set<std::string> CallsOf(const std::string& name) {
  if (!name.starts_with("@")) {
    return {name};
  }
  const CommandResult told = RunCommand({kAnalyze, "--no-pager", "syscall-filter", name});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  std::set<std::string> calls;
  std::istringstream lines(told.out);
  for (std::string line; std::getline(lines, line);) {
    const Words words = WordsOf(line);
    if (line.starts_with(" ") && words.size() == 1) {  // no heading, no comment
      calls.merge(CallsOf(words[0]));
    }
  }
  return calls;
}

// The system calls that the unit's lines of SystemCallFilter allow, one after the other.
const std::set<std::string>& AllowedCalls() {
  static std::set<std::string> allowed;
  if (!allowed.empty()) {
    return allowed;  // it takes a program for each group
  }
  for (const std::string& line : Settings("SystemCallFilter")) {
    const bool takes_away = line.starts_with("~");
    for (const std::string& name : WordsOf(line.substr(takes_away ? 1 : 0))) {
      for (const std::string& call : CallsOf(name)) {
        takes_away ? (void)allowed.erase(call) : (void)allowed.insert(call);
      }
    }
  }
  return allowed;
}

class ServiceUnitTest : public testing::Test {
 protected:
  ServiceUnitTest() {
    std::string unit = ReadFile("config/ferryd.service");
    // Files opened through the build's links would lie outside any sandbox.
    Replace(&unit, "@FERRYD@", fs::canonical("daemon/ferryd"));
    Replace(&unit, "@CONFIG@", directory_ / "ferryd.toml");
    std::ofstream(Unit()) << unit;
    std::ofstream(directory_ / "ferryd.toml") << "# all defaults\n";
  }

  std::string Unit() const { return directory_ / "ferryd.service"; }
  // Checks that systemd-analyze ARGUMENTS UNIT succeeds without a complaint.
  void Analyze(const Words& arguments) const {
    if (!fs::exists(kAnalyze)) {
      GTEST_SKIP() << kAnalyze << " is not there: apt-get install systemd";
    }
    const CommandResult result = RunCommand(Joined(Joined({kAnalyze}, arguments), {Unit()}));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_EQ(result.err, "");
  }

  // A program with the capabilities and privileges that the unit leaves to root.
  static Words WithCapabilities(const Words& program) {
    std::string capabilities = "-all";
    for (std::string name : WordsOf(Settings("CapabilityBoundingSet").at(0))) {
      for (char& c : name) {
        c = static_cast<char>(std::tolower(c));
      }
      capabilities += ",+" + name.substr(std::string("cap_").size());
    }
    EXPECT_EQ(capabilities, "-all,+setuid,+setgid,+kill");
    return Joined({kSetpriv, "--no-new-privs", "--bounding-set", capabilities, "--inh-caps=-all"},
                  program);
  }

  const TempDirectory directory_;
};

TEST_F(ServiceUnitTest, IsCorrect) { Analyze({"verify", "--man=no"}); }

TEST_F(ServiceUnitTest, IsHardened) {
  Analyze({"security", "--offline=true", "--no-pager",
           std::string("--threshold=") + kExposureTimesTen});
}

// That of users, which serves the page of ferryctl.
TEST_F(ServiceUnitTest, ThatOfThePageIsCorrect) {
  if (!fs::exists(kAnalyze)) {
    GTEST_SKIP() << kAnalyze << " is not there: apt-get install systemd";
  }
  std::string unit = ReadFile("config/ferry-web.service");
  Replace(&unit, "@FERRYCTL@", fs::canonical("tools/ferryctl/ferryctl"));
  const std::string path = directory_ / "ferry-web.service";
  std::ofstream(path) << unit;
  const CommandResult result = RunCommand({kAnalyze, "--user", "verify", "--man=no", path},
                                          {"XDG_RUNTIME_DIR=" + directory_.path()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");
}

// With the flags of ExecStart.
TEST_F(ServiceUnitTest, ServesWithTheUnitsCapabilities) {
  if (geteuid() != 0 || !fs::exists(kSetpriv)) {
    GTEST_SKIP() << "needs root and " << kSetpriv << " to take capabilities away";
  }
  const std::string variable = "FERRY_RUN_DIRECTORY=" + directory_ / "run";
  Command ferryd(WithCapabilities({"daemon/ferryd", "--config", directory_ / "ferryd.toml"}),
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

// With all that the unit leaves a process which a test can take away without systemd: capabilities,
// system calls, address families and what /proc shows. A call that is not allowed kills who makes
// it, ferryd, a worker process or, below, a rank.
class ServiceLimitsTest : public ServiceUnitTest {
 protected:
  static constexpr char kUser[] = "1234567";

  void SetUp() override {
    if (geteuid() != 0 || !fs::exists(kSetpriv)) {
      GTEST_SKIP() << "needs root and " << kSetpriv;
    }
    if (!fs::exists(kAnalyze)) {
      GTEST_SKIP() << kAnalyze << " is not there: apt-get install systemd";
    }
    if (const CommandResult result = RunCommand(WithHiddenProcesses({"true"}));
        result.exit_code != 0) {
      GTEST_SKIP() << "no /proc of its own here: " << result.err;
    }
    std::ofstream names(directory_ / "names");
    for (const std::string& call : AllowedCalls()) {
      names << call << "\n";
    }
    fs::permissions(directory_.path(), fs::perms(0755));  // programs that every user can read
    for (const char* file :
         {"daemon/ferryd", "daemon/ferry-worker", "tools/ferryrun/ferryrun",
          "tools/ferryctl/ferryctl", "tests/e2e/ranks/point_to_point", "tests/e2e/ranks/waits",
          "client/libferry.so.0", "client/direct/libferry_direct.so"}) {
      fs::copy_file(file, directory_ / fs::path(file).filename().string());
    }
  }

  // ProtectProc=invisible.
  static Words WithHiddenProcesses(const Words& program) {
    EXPECT_EQ(Settings("ProtectProc"), Words{"invisible"});
    return Joined({"/usr/bin/unshare", "--mount", "/bin/sh", "-c",
                   "mount -t proc -o hidepid=invisible proc /proc && exec \"$@\"", "sh"},
                  program);
  }
  Words WithCalls(const Words& program) const {
    Words filter = {"tests/fixtures/only_calls", directory_ / "names"};
    for (const std::string& family : WordsOf(Settings("RestrictAddressFamilies").at(0))) {
      filter.push_back(family);
    }
    return Joined(Joined(filter, {"--"}), program);
  }
  std::unique_ptr<Command> As(const std::string& uid, const Words& program) const {
    return std::make_unique<Command>(
        Joined({kSetpriv, "--reuid=" + uid, "--regid=" + uid, "--clear-groups"}, program),
        Words{"FERRY_RUN_DIRECTORY=" + directory_ / "run", "LD_LIBRARY_PATH=" + directory_.path()});
  }
};

TEST_F(ServiceLimitsTest, WhatTheTestRefusesIsRefused) {
  for (const char* call : {"chown", "setpriority", "mount", "ptrace", "reboot", "swapon"}) {
    EXPECT_FALSE(AllowedCalls().contains(call)) << call;
  }
  const CommandResult result = RunCommand(WithCalls({"/bin/chown", "root", directory_.path()}));
  EXPECT_NE(result.exit_code, 0) << result.out;
}

TEST_F(ServiceLimitsTest, ServesAllUsers) {
  const auto daemon =
      StartDaemon(WithHiddenProcesses(WithCapabilities(
                      WithCalls({directory_ / "ferryd", "--config", directory_ / "ferryd.toml"}))),
                  directory_ / "run");
  const CommandResult job =
      As(kUser, {directory_ / "ferryrun", "--no-label", "-n", "4", directory_ / "point_to_point"})
          ->Wait();
  EXPECT_EQ(job.exit_code, 0) << job.err;
  EXPECT_EQ(job.out, "point_to_point: ok\n");
  // ferryd sees what the processes of another user do.
  const auto waiting =
      As(kUser, {directory_ / "ferryrun", "-n", "2", directory_ / "waits", "unmatched"});
  ASSERT_TRUE(UnderWay(waiting.get(), 2));
  const CommandResult why = As("0", {directory_ / "ferryctl", "why"})->Wait();
  EXPECT_THAT(why.out, AllOf(HasSubstr("rank 1 waits for rank 0"), Not(HasSubstr("is gone"))));
  waiting->Signal(SIGTERM);
  waiting->Wait();
  daemon->Signal(SIGHUP);
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait().exit_code, 0);
}

// Daemons that reach each other over a network. Ranks and ferryrun are within the limits, too.
TEST_F(ServiceLimitsTest, CarriesMessagesBetweenNodes) {
  const CommandResult job =
      RunCommand(WithCalls({directory_ / "ferryrun", "--private", "--no-label", "-n", "4",
                            "--nodes", "2", directory_ / "point_to_point"}),
                 {"FERRY_WORKER_MODE=process", "LD_LIBRARY_PATH=" + directory_.path()});
  EXPECT_EQ(job.exit_code, 0) << job.err;
  EXPECT_EQ(job.out, "point_to_point: ok\n");
}

}  // namespace
}  // namespace ferry::e2e

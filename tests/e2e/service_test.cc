// ferryd as a service: its messages to the service manager (sd_notify), which this test plays;
// and the unit of systemd that starts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "tests/e2e/command.h"
#include "tests/support/patience.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using tests::ReadFile;

constexpr char kFerryd[] = "daemon/ferryd";
using tests::kPatienceMs;
constexpr char kWatchdog[] = "WATCHDOG_USEC=100000";  // a sign of life every 50 ms
constexpr int kManySignsMs = 500;

// The manager's end of NOTIFY_SOCKET.
class NotifySocket {
 public:
  NotifySocket() : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    Path().copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~NotifySocket() { close(fd_); }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  std::string Path() const { return directory_ / "notify"; }
  std::string RunDirectory() const { return directory_ / "run"; }
  // The next message; nothing if none comes within `wait_ms`.
  std::optional<std::string> Next(int wait_ms) const {
    pollfd readable = {fd_, POLLIN, 0};
    if (poll(&readable, 1, wait_ms) != 1) {
      return std::nullopt;
    }
    char text[1024];
    const ssize_t size = recv(fd_, text, sizeof(text), 0);
    return std::string(text, size > 0 ? static_cast<size_t>(size) : 0);
  }
  // The next message that begins with `start`; empty if none comes.
  std::string WaitFor(const std::string& start) const {
    while (const auto message = Next(kPatienceMs)) {
      if (message->starts_with(start)) {
        return *message;
      }
    }
    return "";
  }
  void Forget() const {
    while (Next(0).has_value()) {
    }
  }

 private:
  const TempDirectory directory_;
  int fd_;
};

// Stops one thread of a child as a debugger would. SIGSTOP stops all threads of a process,
// whichever it is sent to; ptrace stops one, and needs no hook in ferryd.
class FrozenThread {
 public:
  FrozenThread(pid_t process, const std::string& name) : thread_(Find(process, name)) {
    EXPECT_GT(thread_, 0) << "no thread " << name;
    EXPECT_EQ(ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr), 0);
    EXPECT_EQ(ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr), 0);
    EXPECT_EQ(waitpid(thread_, nullptr, __WALL), thread_);
  }
  ~FrozenThread() { ptrace(PTRACE_DETACH, thread_, nullptr, nullptr); }
  FrozenThread(const FrozenThread&) = delete;
  FrozenThread& operator=(const FrozenThread&) = delete;

 private:
  static pid_t Find(pid_t process, const std::string& name) {
    for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
      std::ifstream file(task.path() / "comm");
      std::string comm;
      if (std::getline(file, comm) && comm == name) {
        return static_cast<pid_t>(std::stoi(task.path().filename()));
      }
    }
    return -1;
  }

  pid_t thread_;
};

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
  // No sign of life came in between: nobody watches.
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
constexpr char kExposureTimesTen[] = "30";  // of 100; below 40 systemd says OK

void Replace(std::string* text, const std::string& from, const std::string& to) {
  ASSERT_NE(text->find(from), text->npos) << from;
  text->replace(text->find(from), from.size(), to);
}

// The value behind `key=` in the unit.
std::string Setting(const std::string& key) {
  std::istringstream lines(ReadFile("config/ferryd.service"));
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

  const TempDirectory directory_;
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
  const std::string variable = "FERRY_RUN_DIRECTORY=" + directory_ / "run";
  Command ferryd({kSetpriv, "--no-new-privs", "--bounding-set", capabilities, "--inh-caps=-all",
                  "daemon/ferryd", "--config", directory_ / "ferryd.toml"},
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

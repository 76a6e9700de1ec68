// ferryd as a service: its messages to the service manager (sd_notify), which this test plays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kFerryd[] = "daemon/ferryd";
constexpr int kPatienceMs = 30'000;
constexpr char kWatchdog[] = "WATCHDOG_USEC=100000";  // a sign of life every 50 ms
constexpr int kManySignsMs = 500;

// The manager's end of NOTIFY_SOCKET.
class NotifySocket {
 public:
  NotifySocket() : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    Path().copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~NotifySocket() {
    close(fd_);
    fs::remove_all(directory_);
  }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  std::string Path() const { return directory_ + "/notify"; }
  std::string RunDirectory() const { return directory_ + "/run"; }
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
  std::string directory_ = "/tmp/ferry-notify-XXXXXX";
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
  std::vector<std::string> Environment(std::vector<std::string> more = {}) const {
    more.push_back("NOTIFY_SOCKET=" + manager_.Path());
    more.push_back("FERRY_RUN_DIRECTORY=" + manager_.RunDirectory());
    return more;
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
  EXPECT_EQ(ferryd.Wait().exit_code, 0);
  EXPECT_THAT(ferryd.Leftovers(), IsEmpty());
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

}  // namespace
}  // namespace ferry::e2e

// ferryrun in a terminal, as its user sees it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/unique_fd.h"
#include "tests/e2e/command.h"
#include "tests/support/patience.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kFakeFerryd[] = "tests/tools/fake_ferryd";
constexpr uint16_t kRows = 37;
constexpr uint16_t kColumns = 91;

// A terminal of its own, in which ferryrun runs as from a shell.
class Terminal {
 public:
  explicit Terminal(const std::vector<std::string>& arguments) {
    std::vector<char*> pointers;
    for (const std::string& argument : arguments) {
      pointers.push_back(const_cast<char*>(argument.c_str()));
    }
    pointers.push_back(nullptr);
    const winsize size = {.ws_row = kRows, .ws_col = kColumns, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = forkpty(&fd_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      execv(pointers[0], pointers.data());
      _exit(127);
    }
    EXPECT_GT(pid_, 0) << "no terminal";
  }
  ~Terminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      close(fd_);
    }
  }

  // Waits until the screen shows it; false if the program ends, or is silent for kPatience.
  bool Shows(const std::string& text) {
    while (screen_.find(text) == std::string::npos) {
      pollfd readable = {fd_, POLLIN, 0};
      char bytes[4096];
      const ssize_t size =
          poll(&readable, 1, tests::kPatienceMs) == 1 ? read(fd_, bytes, sizeof(bytes)) : 0;
      if (size <= 0) {
        return false;
      }
      screen_.append(bytes, static_cast<size_t>(size));
    }
    return true;
  }
  // As a user does who pulls at the corner of the window.
  void Resize(uint16_t rows, uint16_t columns) const {
    const winsize size = {.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(ioctl(fd_, TIOCSWINSZ, &size), 0);
  }
  void Type(const std::string& text) {
    EXPECT_EQ(write(fd_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  // As a shell says it.
  int Wait() {
    Shows("nothing that is ever shown");  // reads on until the end
    int status = -1;
    if (pid_ > 0 && waitpid(std::exchange(pid_, -1), &status, 0) > 0) {
      close(fd_);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  const std::string& screen() const { return screen_; }

 private:
  int fd_ = -1;
  pid_t pid_ = -1;
  std::string screen_;
};

constexpr char kControlC[] = "\x03";

// ferryrun FLAGS PROGRAM, with a private fake daemon.
Words Job(const Words& flags, const Words& program) {
  return Joined(Joined({kFerryrun, "--private", "--ferryd", kFakeFerryd}, flags), program);
}

// A pipe with a name, whose reader the test writes to.
class Fifo {
 public:
  Fifo() { EXPECT_EQ(mkfifo(path().c_str(), 0600), 0); }
  std::string path() const { return directory_ / "fifo"; }
  // Waits for the reader, at the first time.
  void Write(const std::string& text) {
    if (!fd_.valid()) {
      fd_.Reset(open(path().c_str(), O_WRONLY | O_CLOEXEC));
    }
    EXPECT_EQ(write(fd_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

 private:
  const TempDirectory directory_;
  UniqueFd fd_;
};

// Stands in for ssh: the other host is this machine under another address.
class OtherHost {
 public:
  OtherHost() {
    std::ofstream(path()) << "#!/bin/sh\nshift\nexec /bin/sh -c \"exec $*\"\n";
    std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
  }
  // The flags that put all ranks there.
  Words flags() const { return {"--rsh", path(), "--network", "lo", "-hosts", "10.99.0.1:4"}; }

 private:
  std::string path() const { return directory_ / "ssh"; }

  const TempDirectory directory_;
};

// grep keeps what it writes to a pipe until there is much, as C's printf does.
void ExpectLinesAtOnce(const Words& flags) {
  Fifo input;
  Terminal terminal(Job(flags, {"grep", "e", input.path()}));
  input.Write("one\n");
  ASSERT_TRUE(terminal.Shows("one\r\n")) << terminal.screen();
  input.Write("three\n");
  ASSERT_TRUE(terminal.Shows("three\r\n")) << terminal.screen();
}

TEST(FerryrunTerminalTest, ShowsEachLineOfARankAtOnce) { ExpectLinesAtOnce({}); }

TEST(FerryrunTerminalTest, ShowsEachLineOfARankOfAnotherHostAtOnce) {
  const OtherHost host;
  ExpectLinesAtOnce(host.flags());
}

// The user's own terminal adds the \r; a second one would be the rank's.
TEST(FerryrunTerminalTest, OnlyStandardOutputIsATerminalAndItChangesNoByte) {
  Terminal terminal(Job({}, {"sh", "-c",
                             "for fd in 0 1 2; do test -t $fd && echo $fd; done; "
                             "printf 'a\\tb\\004\\003\\n'; echo \"<$PYTHONUNBUFFERED>\""}));
  EXPECT_EQ(terminal.Wait(), 0);
  EXPECT_EQ(terminal.screen(), "1\r\na\tb\004\003\r\n<1>\r\n");
}

TEST(FerryrunTerminalTest, AUsersWordAboutPythonCounts) {
  Terminal terminal(Job({"-x", "PYTHONUNBUFFERED="}, {"sh", "-c", "echo \"<$PYTHONUNBUFFERED>\""}));
  EXPECT_TRUE(terminal.Shows("<>")) << terminal.screen();
}

// A terminal holds less than a pipe, and the rank ends before all of it is read.
TEST(FerryrunTerminalTest, LosesNothingOfMuch) {
  Terminal terminal(Job({}, {"seq", "30000"}));
  EXPECT_EQ(terminal.Wait(), 0);
  std::string expected;
  for (int number = 1; number <= 30000; ++number) {
    expected += std::to_string(number) + "\r\n";
  }
  EXPECT_TRUE(terminal.screen() == expected) << terminal.screen().size() << " bytes";
}

void ExpectSizes(const Words& flags) {
  Terminal terminal(Job(flags, {"sh", "-c",
                                "trap 'stty size <&1; exit 0' WINCH; stty size <&1; sleep 1000 & "
                                "echo ready; wait"}));
  ASSERT_TRUE(terminal.Shows("37 91\r\nready\r\n")) << terminal.screen();
  terminal.Resize(50, 120);
  EXPECT_TRUE(terminal.Shows("50 120\r\n")) << terminal.screen();
}

TEST(FerryrunTerminalTest, TheWindowsSizeReachesRanks) { ExpectSizes({}); }

TEST(FerryrunTerminalTest, TheWindowsSizeReachesRanksOfAnotherHost) {
  const OtherHost host;
  ExpectSizes(host.flags());
}

// Files and pipes get every byte as it is.
TEST(FerryrunTerminalTest, WithoutATerminalRanksHaveNone) {
  const CommandResult result = RunCommand(
      Job({}, {"sh", "-c", "test -t 1 || printf 'a\\n\\r\\nb'; echo \"<$PYTHONUNBUFFERED>\""}));
  EXPECT_EQ(result.out, "a\n\r\nb<>\n") << result.err;
}

TEST(FerryrunTerminalTest, WithFilesForRanksTheyHaveNone) {
  const TempDirectory directory;
  Terminal terminal(Job({"--output", directory / "o"}, {"sh", "-c", "test -t 1 || echo pipe"}));
  EXPECT_EQ(terminal.Wait(), 0);
  EXPECT_EQ(terminal.screen(), "");
  EXPECT_EQ(tests::ReadFile(directory / "o/rank.0.out"), "pipe\n");
}

TEST(FerryrunTerminalTest, ShowsAPromptBeforeTheLineEnds) {
  Terminal terminal({kFerryrun, "--private", "--ferryd", kFakeFerryd, "-n", "2", "sh", "-c",
                     "test $FERRY_RANK = 0 || exit 0; printf 'Your name: '; read name; "
                     "echo Hello $name"});
  ASSERT_TRUE(terminal.Shows("Your name: ")) << terminal.screen();
  terminal.Type("Ada\n");
  EXPECT_TRUE(terminal.Shows("Hello Ada")) << terminal.screen();
  EXPECT_EQ(terminal.Wait(), 0);
}

TEST(FerryrunTerminalTest, AnInterruptSaysWhatItDoesAndEndsWith130) {
  Terminal terminal({kFerryrun, "--private", "--ferryd", kFakeFerryd, "-n", "2", "sh", "-c",
                     "echo ready; exec sleep 100"});
  ASSERT_TRUE(terminal.Shows("ready\r\nready")) << terminal.screen();
  terminal.Type(kControlC);
  EXPECT_TRUE(
      terminal.Shows("ferryrun: interrupted: passing SIGINT on to the 2 ranks; a "
                     "second interrupt kills what is left"))
      << terminal.screen();
  EXPECT_EQ(terminal.Wait(), 128 + SIGINT) << terminal.screen();
}

}  // namespace
}  // namespace ferry::e2e

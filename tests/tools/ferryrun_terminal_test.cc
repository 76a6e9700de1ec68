// ferryrun in a terminal, as its user sees it.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/patience.h"

namespace ferry::e2e {
namespace {

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kFakeFerryd[] = "tests/tools/fake_ferryd";

// A terminal of its own, in which ferryrun runs as from a shell.
class Terminal {
 public:
  explicit Terminal(const std::vector<std::string>& arguments) {
    std::vector<char*> pointers;
    for (const std::string& argument : arguments) {
      pointers.push_back(const_cast<char*>(argument.c_str()));
    }
    pointers.push_back(nullptr);
    pid_ = forkpty(&fd_, nullptr, nullptr, nullptr);
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

// When a rank asks whether its daemon turns, and when it has waited long enough: with a clock of
// the test's own.
#include "client/bootstrap/daemon_life.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "common/process_handle.h"
#include "tests/support/processes.h"

namespace ferry::client {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kLimitNs = 15'000 * kMs;

class LifeQuestionsTest : public testing::Test {
 protected:
  // Looks after as long a pause as it wants.
  void Look(bool is_waiting = true, bool lacks_core = false) {
    now_ns_ += questions_.pause_ns();
    LookLate(0, is_waiting, lacks_core);
  }
  void LookLate(uint64_t late_ns, bool is_waiting = true, bool lacks_core = false) {
    now_ns_ += late_ns;
    questions_.Look(now_ns_, answered_, is_waiting, [&] { return lacks_core; });
  }
  // So long from the first look that finds it waiting until it is told.
  uint64_t TimeToHang(bool lacks_core = false) {
    const uint64_t begin_ns = now_ns_;
    while (!questions_.is_hung()) {
      Look(true, lacks_core);
    }
    return now_ns_ - begin_ns;
  }

  uint64_t now_ns_ = 1'000'000 * kMs;
  uint32_t answered_ = 0;
  LifeQuestions questions_{kLimitNs};
};

TEST_F(LifeQuestionsTest, ARankThatComputesAsksNothing) {
  for (int i = 0; i < 1000; ++i) {
    Look(false);
    ASSERT_EQ(questions_.open(), 0U);
  }
  EXPECT_FALSE(questions_.is_hung());
}

TEST_F(LifeQuestionsTest, AnAnsweredQuestionIsAskedAnewAndNeverHangs) {
  uint32_t asked = 0;
  for (int i = 0; i < 1000; ++i) {
    Look();
    asked += questions_.open() != answered_ ? 1 : 0;
    answered_ = questions_.open() != 0 ? questions_.open() : answered_;
    ASSERT_FALSE(questions_.is_hung());
  }
  EXPECT_GT(asked, 300U);
}

TEST_F(LifeQuestionsTest, SilenceIsNoticedWithinTheLimit) {
  const uint64_t took_ns = TimeToHang();
  EXPECT_LE(took_ns, kLimitNs + questions_.pause_ns());
  EXPECT_GE(took_ns, kLimitNs / 2);
  EXPECT_LE(questions_.silent_ns(), took_ns);
}

TEST_F(LifeQuestionsTest, AnAnswerInTheLastMomentCounts) {
  while (questions_.silent_ns() + 2 * questions_.pause_ns() < kLimitNs * 4 / 5) {
    Look();
  }
  answered_ = questions_.open();
  Look(false);
  EXPECT_EQ(questions_.open(), 0U);
  EXPECT_EQ(questions_.silent_ns(), 0U);
  EXPECT_GE(TimeToHang(), kLimitNs / 2) << "it begins anew";
}

// Suspended with its machine, stopped by a debugger, a container that was frozen: all clocks jump.
TEST_F(LifeQuestionsTest, TimeInWhichItDidNotRunDoesNotCount) {
  Look();
  for (int stop = 0; stop < 3; ++stop) {
    LookLate(1000 * kLimitNs);
    EXPECT_FALSE(questions_.is_hung());
  }
  EXPECT_LE(questions_.silent_ns(), 6 * questions_.pause_ns());
}

TEST_F(LifeQuestionsTest, ADaemonThatGetsNoCoreHasFourTimesAsLong) {
  EXPECT_GE(TimeToHang(/*lacks_core=*/true), 3 * kLimitNs);
  EXPECT_LE(questions_.silent_ns(), kLimitNs);
}

// ---- Words for the user, about a process that is there

class DaemonLifeTest : public testing::Test {
 protected:
  DaemonLifeTest() : child_(fork()) {
    if (child_ == 0) {
      while (true) {
        pause();
      }
    }
  }
  ~DaemonLifeTest() override {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

  // Returns the message once the limit is over. `read`: the number that the control thread has
  // read.
  std::string Words(const std::function<uint32_t(uint32_t asked)>& read) {
    const StatusOr<UniqueFd> process = OpenProcessHandle(child_);
    uint32_t read_number = 0;
    const uint32_t answered = 0;
    std::vector<uint32_t> asked;
    DaemonLife life({.limit_ms = 20,
                     .daemon = child_,
                     .daemon_pidfd = process.ok() ? process->get() : -1,
                     .read = &read_number,
                     .answered = &answered,
                     .ask =
                         [&](uint32_t number) {
                           asked.push_back(number);
                           read_number = read(number);
                           return asked.size() > 1;  // the first time there is no room
                         },
                     .takes_notice = [] { return true; }});
    Status hang;
    while (hang.ok()) {
      hang = life.Look();
      usleep(static_cast<useconds_t>(life.pause_ms()) * 1000);
    }
    EXPECT_EQ(asked, (std::vector<uint32_t>{1, 1})) << "asked until it has left, then no more";
    EXPECT_EQ(hang.code(), ErrorCode::kDaemonDied);
    return hang.message();
  }

  const pid_t child_;
};

TEST_F(DaemonLifeTest, NamesTheThreadThatHangs) {
  EXPECT_NE(Words([](uint32_t) { return 0; }).find("its control thread does not turn"),
            std::string::npos);
  EXPECT_NE(Words([](uint32_t asked) { return asked; }).find("its progress thread does not turn"),
            std::string::npos);
}

TEST_F(DaemonLifeTest, TellsWhetherItIsStopped) {
  tests::Stop(child_);
  const std::string words = Words([](uint32_t) { return 0; });
  EXPECT_NE(words.find("(pid " + std::to_string(child_) + ") has not moved for "),
            std::string::npos)
      << words;
  EXPECT_NE(words.find("it is stopped"), std::string::npos) << words;
}

}  // namespace
}  // namespace ferry::client

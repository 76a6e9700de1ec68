// Checks of two threads that answer, or do not, or late.
#include "daemon/metrics/health.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ferry::daemon {
namespace {

class HealthTest : public ::testing::Test {
 protected:
  HealthTest() {
    check_ = std::make_unique<HealthCheck>(
        context_, HealthSources{[this](std::function<void(const ServedWork&)> answer) {
                                  control_.push_back(std::move(answer));
                                },
                                [this](std::function<void()> answer) {
                                  progress_.push_back(std::move(answer));
                                }});
  }
  void Ask() {
    check_->Ask([this](const Health& health) { answers_.push_back(health); });
  }
  // Runs the loop until nothing is left to wait for; a check's timer is such a thing.
  void Run() {
    context_.restart();
    context_.run();
  }
  void AnswerAll() {
    for (const auto& answer : std::exchange(control_, {})) {
      answer({false, 2, 8});
    }
    for (const auto& answer : std::exchange(progress_, {})) {
      answer();
    }
  }

  boost::asio::io_context context_;
  std::vector<std::function<void(const ServedWork&)>> control_;
  std::vector<std::function<void()>> progress_;
  std::unique_ptr<HealthCheck> check_;
  std::vector<Health> answers_;
};

TEST_F(HealthTest, ManyWhoAskShareOneQuestion) {
  for (int i = 0; i < 100; ++i) {
    Ask();
  }
  EXPECT_EQ(control_.size(), 1U);
  EXPECT_EQ(progress_.size(), 1U);
  AnswerAll();
  Run();
  ASSERT_EQ(answers_.size(), 100U);
  EXPECT_EQ(answers_[99].state, HealthState::kReady);
  EXPECT_EQ(answers_[99].Json("n"),
            "{\"status\":\"ready\",\"node\":\"n\",\"jobs\":2,\"ranks\":8}\n");
}

TEST_F(HealthTest, AThreadThatIsSilentIsNamedAndAskedOnce) {
  Ask();
  progress_[0]();
  Run();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].state, HealthState::kSick);
  EXPECT_EQ(answers_[0].Json("n"),
            "{\"status\":\"sick\",\"node\":\"n\",\"trouble\":\"the control thread does not "
            "answer\"}\n");
  Ask();
  EXPECT_EQ(control_.size(), 1U) << "the first question still lies there";
  EXPECT_EQ(progress_.size(), 2U);
  progress_[1]();
  control_[0]({true, 0, 0});  // late, but now it turns
  Run();
  ASSERT_EQ(answers_.size(), 2U);
  EXPECT_EQ(answers_[1].state, HealthState::kDraining);
}

TEST_F(HealthTest, AnAnswerMayComeWhenNobodyIsLeft) {
  Ask();
  check_.reset();
  AnswerAll();
  Run();
  EXPECT_TRUE(answers_.empty());
}

TEST_F(HealthTest, OddNodeNamesStayJson) {
  Health health;
  health.state = HealthState::kReady;
  EXPECT_EQ(health.Json("a\"\xff\n"),
            "{\"status\":\"ready\",\"node\":\"a\\\"\xef\xbf\xbd\\n\",\"jobs\":0,\"ranks\":0}\n");
}

}  // namespace
}  // namespace ferry::daemon

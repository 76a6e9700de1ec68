#include "tests/hostile/bystander.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <thread>
#include <utility>

#include "common/clock.h"
#include "tests/support/patience.h"
#include "tests/support/processes.h"

namespace ferry::hostile {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::HasSubstr;

constexpr char kMixed[] = "tests/faults/ranks/mixed";
constexpr char kSteady[] = "tests/hostile/steady";
constexpr uint32_t kRanksOfNode = 2;
constexpr uint32_t kRanks = 2 * kRanksOfNode;
constexpr unsigned kLimitS = 7200;  // of all that a job does

std::string Milliseconds(uint64_t us) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f ms", static_cast<double>(us) / 1000);
  return text;
}

}  // namespace

Times::Times(std::vector<uint64_t> times_us) : times_us_(std::move(times_us)) {
  std::sort(times_us_.begin(), times_us_.end());
}

uint64_t Times::Percentile(double percent) const {
  if (times_us_.empty()) {
    return 0;
  }
  const auto index = static_cast<size_t>(static_cast<double>(times_us_.size()) * percent / 100);
  return times_us_[std::min(index, times_us_.size() - 1)];
}

std::string Times::Text() const {
  return std::to_string(count()) + " times: median " + Milliseconds(Percentile(50)) + ", 99 % " +
         Milliseconds(Percentile(99)) + ", longest " + Milliseconds(Percentile(100));
}

struct Bystander::Job {
  daemon::TestLauncher here;
  daemon::TestLauncher there;
  std::vector<std::unique_ptr<Command>> ranks;
};

Bystander::Bystander(Node& here, Node& there) : here_(here), there_(there) {
  steady_ = Start("victim", {kSteady});
  // Else what is measured would pass the daemons by before long.
  here_.ForbidLinks("victim");
  there_.ForbidLinks("victim");
  EXPECT_TRUE(steady_->ranks[0]->WaitForOutput("sample"));
  EXPECT_TRUE(steady_->ranks[1]->WaitForOutput("sample"));
}

Bystander::~Bystander() = default;

std::unique_ptr<Bystander::Job> Bystander::Start(const std::string& id,
                                                 const std::vector<std::string>& program) {
  auto job =
      std::unique_ptr<Job>(new Job{daemon::TestLauncher(here_.run_directory() + "/attach.sock"),
                                   daemon::TestLauncher(there_.run_directory() + "/attach.sock"),
                                   {}});
  const std::vector<std::string> addresses = {here_.address(), there_.address()};
  if (!here_.CreateJob(id, 0, kRanksOfNode, addresses, job->here) ||
      !there_.CreateJob(id, 1, kRanksOfNode, addresses, job->there)) {
    return job;
  }
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const Node& node = rank < kRanksOfNode ? here_ : there_;
    job->ranks.push_back(std::make_unique<Command>(
        program,
        std::vector<std::string>{
            "FERRY_JOB_ID=" + id, "FERRY_JOB_SECRET=" + std::string(daemon::kTestSecret),
            "FERRY_RANK=" + std::to_string(rank), "FERRY_SIZE=" + std::to_string(kRanks),
            "FERRY_ATTACH_TIMEOUT_MS=" + std::to_string(tests::kPatienceMs),
            "FERRY_RUN_DIRECTORY=" + node.run_directory()},
        "", kLimitS));
  }
  return job;
}

std::vector<std::string> Bystander::AwaitEnd(Job& job) {
  const uint64_t end_ns = MonotonicNs() + tests::kPatienceNs;
  const auto has_ended = [](const std::unique_ptr<Command>& rank) {
    const std::string state = tests::StatusOf(rank->pid(), "State");
    return state.empty() || state.starts_with("Z");
  };
  while (!std::all_of(job.ranks.begin(), job.ranks.end(), has_ended)) {
    if (MonotonicNs() > end_ns) {
      ADD_FAILURE() << "a rank waits for ever: messages were lost, and nobody was told";
      for (const auto& rank : job.ranks) {
        rank->Signal(SIGKILL);
      }
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::vector<std::string> outputs;
  for (uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
    const CommandResult result = job.ranks[rank]->Wait();
    const std::string last =
        result.out.substr(result.out.size() - std::min<size_t>(result.out.size(), 500));
    EXPECT_EQ(result.exit_code, 0) << "rank " << rank << ": " << last << result.err;
    EXPECT_THAT(last, HasSubstr("rank " + std::to_string(rank) + ": all right"));
    outputs.push_back(result.out);
  }
  return outputs;
}

uint64_t Bystander::RunJob(const std::string& id) {
  const uint64_t begin_ns = MonotonicNs();
  const std::unique_ptr<Job> job = Start(id, {kMixed, "200"});
  AwaitEnd(*job);
  return (MonotonicNs() - begin_ns) / 1000;
}

void Bystander::EndSteadyJob() {
  for (size_t rank = 0; rank < samples_.size() && rank < steady_->ranks.size(); ++rank) {
    steady_->ranks[rank]->Signal(SIGTERM);
  }
  const std::vector<std::string> outputs = AwaitEnd(*steady_);
  for (size_t rank = 0; rank < samples_.size() && rank < outputs.size(); ++rank) {
    std::istringstream lines(outputs[rank]);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string word;
      Sample sample{};
      if (words >> word >> sample.due_ns >> sample.took_us && word == "sample") {
        samples_[rank].push_back(sample);
      }
    }
  }
  steady_.reset();
}

Times Bystander::Exchanges(bool are_long, const std::vector<Window>& windows) const {
  std::vector<uint64_t> times_us;
  for (const Sample& sample : samples_[are_long ? 1 : 0]) {
    for (const Window& window : windows) {
      if (sample.due_ns >= window.begin_ns && sample.due_ns < window.end_ns) {
        times_us.push_back(sample.took_us);
      }
    }
  }
  return Times(std::move(times_us));
}

}  // namespace ferry::hostile

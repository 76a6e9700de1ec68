#include "tests/e2e/traced_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace ferry::e2e {
namespace {

constexpr char kPairs[] = "tests/faults/ranks/pairs";
constexpr int kReports = 3;  // rank 1 reports every 50th message

}  // namespace

TracedJob::TracedJob(const std::vector<std::string>& flags,
                     const std::vector<std::string>& arguments,
                     std::vector<std::string> variables) {
  std::vector<std::string> words = {"tools/ferryrun/ferryrun",
                                    "--private",
                                    "--ferryd",
                                    "daemon/ferryd",
                                    "--no-label",
                                    "-n",
                                    "2",
                                    "--nodes",
                                    "2"};
  words.insert(words.end(), flags.begin(), flags.end());
  words.emplace_back(kPairs);
  words.insert(words.end(), arguments.begin(), arguments.end());
  job_ = std::make_unique<Command>(std::move(words), std::move(variables));
  if (!job_->WaitForOutput("rank 1: under way\n")) {
    ADD_FAILURE() << job_->Wait().err;
    finished_ = true;
    return;
  }
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(job_->runtime_directory())) {
    if (entry.path().filename() == "ferryd.json") {
      nodes_.push_back(entry.path().parent_path());
    }
  }
  std::sort(nodes_.begin(), nodes_.end());
  EXPECT_THAT(nodes_, testing::SizeIs(2));
}

TracedJob::~TracedJob() { Finish(); }

CommandResult TracedJob::Ask(size_t node, std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(),
                   {"tools/ferryctl/ferryctl", "--run_directory=" + nodes_[node]});
  return RunCommand(std::move(arguments));
}

bool TracedJob::LetMessagesPass() {
  const auto reports = [this] {
    const std::vector<std::string> lines = SortedLines(job_->Output());
    return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("rank 1: message");
    });
  };
  const auto before = reports();
  return Eventually([&] { return reports() >= before + kReports; });
}

void TracedJob::Finish() {
  if (std::exchange(finished_, true)) {
    return;
  }
  for (const pid_t pid : job_->Find(kPairs)) {
    kill(pid, SIGUSR1);
  }
  const CommandResult result = job_->Wait();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(job_->Leftovers(), testing::IsEmpty());
}

}  // namespace ferry::e2e

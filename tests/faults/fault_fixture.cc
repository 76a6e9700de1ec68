#include "tests/faults/fault_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "config/environment.h"
#include "tests/support/processes.h"

namespace ferry::faults {
namespace {

namespace fs = std::filesystem;
constexpr unsigned kDaemonSeconds = 900;  // the longest test

// The rank R if the process was started with "FERRY_RANK=R" in its environment; -1 if not.
int RankOf(pid_t pid) {
  const std::string environment =
      '\0' + tests::ReadFile("/proc/" + std::to_string(pid) + "/environ");
  static const std::string kName = std::string(1, '\0') + "FERRY_RANK=";
  const size_t at = environment.find(kName);
  return at == std::string::npos ? -1 : std::atoi(environment.c_str() + at + kName.size());
}

}  // namespace

int Setting(const char* variable, int otherwise) {
  const auto value = config::FindVariable(config::ProcessEnvironment(), variable);
  return value.has_value() ? std::stoi(std::string(*value)) : otherwise;
}

DaemonForTest::DaemonForTest(const e2e::Words& flags)
    : command_(e2e::StartDaemon(e2e::Joined({"daemon/ferryd"}, flags), run_directory(),
                                kDaemonSeconds)) {}

size_t DaemonForTest::CountMemfds() const { return tests::MemfdsOf(pid()).size(); }

void DaemonForTest::Stop() {
  command_->Signal(SIGTERM);
  const e2e::CommandResult result = command_->WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << "signal " << result.signal << ": " << result.err;
  EXPECT_FALSE(fs::exists(run_directory()));
}

e2e::Words JobOn(const DaemonForTest& daemon, int ranks, const e2e::Words& program) {
  return e2e::Joined({"tools/ferryrun/ferryrun", "--run_directory=" + daemon.run_directory(),
                      "--no-label", "--keep-going", "-n", std::to_string(ranks)},
                     program);
}

e2e::Words PrivateJob(int ranks, int nodes, const e2e::Words& flags, const e2e::Words& program) {
  return e2e::PrivateJob(
      e2e::Joined({"--keep-going", "-n", std::to_string(ranks), "--nodes", std::to_string(nodes)},
                  flags),
      program);
}

void ExpectAllRight(const std::string& out, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_THAT(out, testing::HasSubstr("rank " + std::to_string(rank) + ": all right"));
  }
}

std::vector<pid_t> DaemonPids(const e2e::Command& job, size_t count) {
  std::vector<pid_t> pids = job.Find("--ready-fd");
  EXPECT_THAT(pids, testing::SizeIs(count));
  pids.resize(count);
  return pids;
}

std::vector<pid_t> RankPids(const e2e::Command& job, const std::string& program, int ranks) {
  std::vector<pid_t> pids(static_cast<size_t>(ranks), 0);
  for (const pid_t pid : job.Find(program)) {
    const int rank = RankOf(pid);
    if (rank >= 0 && rank < ranks) {
      pids[static_cast<size_t>(rank)] = pid;
    }
  }
  return std::find(pids.begin(), pids.end(), 0) == pids.end() ? pids : std::vector<pid_t>();
}

std::vector<RankError> ErrorsIn(const std::string& out) {
  std::vector<RankError> errors;
  for (const std::string& line : e2e::SortedLines(out)) {
    RankError error;
    unsigned long long at_ns = 0;
    if (std::sscanf(line.c_str(), "rank %d: error %d at %llu:", &error.rank, &error.code, &at_ns) ==
        3) {
      error.at_ns = at_ns;
      errors.push_back(error);
    }
  }
  return errors;
}

std::vector<RankError> ExpectErrors(const std::string& out, size_t count,
                                    const std::vector<int>& codes) {
  const std::vector<RankError> errors = ErrorsIn(out);
  EXPECT_THAT(errors, testing::SizeIs(count)) << out;
  for (const RankError& error : errors) {
    EXPECT_THAT(codes, testing::Contains(error.code)) << out;
  }
  return errors;
}

double LatestMs(const std::vector<RankError>& errors, uint64_t since_ns) {
  double latest_ms = 0;
  for (const RankError& error : errors) {
    const double after_ns = static_cast<double>(error.at_ns) - static_cast<double>(since_ns);
    latest_ms = std::max(latest_ms, after_ns / 1e6);
  }
  return latest_ms;
}

}  // namespace ferry::faults

#include "tests/faults/fault_fixture.h"

#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "tests/support/processes.h"

namespace ferry::faults {
namespace {

namespace fs = std::filesystem;
constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kFerryd[] = "daemon/ferryd";
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

DaemonForTest::DaemonForTest(std::vector<std::string> flags)
    : directory_("/tmp/ferry-fault-XXXXXX") {
  if (mkdtemp(directory_.data()) == nullptr) {
    std::abort();
  }
  run_directory_ = directory_ + "/run";
  flags.insert(flags.begin(), {kFerryd, "--run_directory=" + run_directory_});
  command_ = std::make_unique<e2e::Command>(std::move(flags), std::vector<std::string>(), "",
                                            kDaemonSeconds);
  e2e::Eventually([&] { return fs::exists(run_directory_ + "/ferryd.json"); });
}

DaemonForTest::~DaemonForTest() {
  command_.reset();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

size_t DaemonForTest::CountMemfds() const { return tests::MemfdsOf(pid()).size(); }

std::string DaemonForTest::Stop() {
  command_->Signal(SIGTERM);
  const e2e::CommandResult result = command_->Wait();
  std::ostringstream wrong;
  if (result.exit_code != 0) {
    wrong << "ferryd ended with " << result.exit_code << ", signal " << result.signal << ": "
          << result.err;
  }
  for (const std::string& leftover : command_->Leftovers()) {
    wrong << leftover << "; ";
  }
  if (fs::exists(run_directory_)) {
    wrong << run_directory_ << " is still there";
  }
  return wrong.str();
}

std::vector<std::string> JobOn(const DaemonForTest& daemon, int ranks,
                               const std::vector<std::string>& program) {
  std::vector<std::string> arguments = {kFerryrun,    "--run_directory=" + daemon.run_directory(),
                                        "--no-label", "--keep-going",
                                        "-n",         std::to_string(ranks)};
  arguments.insert(arguments.end(), program.begin(), program.end());
  return arguments;
}

std::vector<std::string> PrivateJob(int ranks, int nodes, std::vector<std::string> flags,
                                    const std::vector<std::string>& program) {
  std::vector<std::string> arguments = {
      kFerryrun,    "--private",          "--ferryd", kFerryd,
      "--no-label", "--keep-going",       "-n",       std::to_string(ranks),
      "--nodes",    std::to_string(nodes)};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.insert(arguments.end(), program.begin(), program.end());
  return arguments;
}

std::vector<std::string> Daemons(const e2e::Command& job) {
  std::vector<std::string> directories;
  for (const auto& entry : fs::recursive_directory_iterator(job.runtime_directory())) {
    if (entry.path().filename() == "ferryd.json") {
      directories.push_back(entry.path().parent_path());
    }
  }
  std::sort(directories.begin(), directories.end());
  return directories;
}

bool UnderWay(e2e::Command* job, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (!job->WaitForOutput("rank " + std::to_string(rank) + ": under way\n")) {
      std::fprintf(stderr, "rank %d is not under way:\n%s", rank, job->Output().c_str());
      return false;
    }
  }
  return true;
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

double LatestMs(const std::vector<RankError>& errors, uint64_t since_ns) {
  double latest_ms = 0;
  for (const RankError& error : errors) {
    const double after_ns = static_cast<double>(error.at_ns) - static_cast<double>(since_ns);
    latest_ms = std::max(latest_ms, after_ns / 1e6);
  }
  return latest_ms;
}

}  // namespace ferry::faults

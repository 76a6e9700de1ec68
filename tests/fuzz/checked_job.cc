#include "tests/fuzz/checked_job.h"

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "common/own_program.h"
#include "daemon/tls/secrets.h"
#include "tests/support/patience.h"

namespace ferry::fuzz {
namespace {

constexpr char kSecret[] = "the secret of the checked job";
constexpr char kProgram[] = "/../faults/ranks/mixed";
using tests::kPatienceMs;

}  // namespace

CheckedJob::CheckedJob(const std::string& id, WholeDaemon& here, WholeDaemon& there) {
  control::CreateJobRequest request;
  request.set_job_id(id);
  request.set_secret(kSecret);
  request.set_size(2);
  request.add_node_of_rank(0);
  request.add_node_of_rank(1);
  request.add_node_addresses(here.address());
  request.add_node_addresses(there.address());
  const grpc::Status first = here.CreateJob(request);
  request.set_node(1);
  const grpc::Status second = there.CreateJob(request);
  if (!first.ok() || !second.ok()) {
    std::fprintf(stderr, "no job to check: %s%s\n", first.error_message().c_str(),
                 second.error_message().c_str());
    abort();
  }
  Start(id, 0, here);
  Start(id, 1, there);
  for (int round = 0; round < 24; ++round) {  // all sizes and kinds of memory
    if (const std::string wrong = Exchange(); !wrong.empty()) {
      std::fprintf(stderr, "the job to check does not even begin well: %s\n", wrong.c_str());
      abort();
    }
  }
}

CheckedJob::~CheckedJob() {
  for (Rank& rank : ranks_) {
    shutdown(rank.talk.get(), SHUT_WR);
  }
  for (Rank& rank : ranks_) {
    waitpid(rank.pid, nullptr, 0);
  }
}

void CheckedJob::Start(const std::string& id, uint32_t rank, const WholeDaemon& on) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    abort();
  }
  ranks_[rank].talk.Reset(ends[0]);
  const UniqueFd its(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, its.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, its.get(), STDOUT_FILENO);
  std::string program = OwnDirectory() + kProgram;
  std::string argument = "-";
  char* const argv[] = {program.data(), argument.data(), nullptr};
  std::vector<std::string> variables = {
      "FERRY_JOB_ID=" + id,
      "FERRY_JOB_SECRET=" + std::string(kSecret),
      "FERRY_RANK=" + std::to_string(rank),
      "FERRY_SIZE=2",
      "FERRY_ATTACH_TIMEOUT_MS=60000",
      "FERRY_RUN_DIRECTORY=" + on.run_directory(),
  };
  std::vector<char*> envp;
  for (std::string& variable : variables) {
    envp.push_back(variable.data());
  }
  envp.push_back(nullptr);
  const int error =
      posix_spawn(&ranks_[rank].pid, program.c_str(), &actions, nullptr, argv, envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    std::fprintf(stderr, "%s cannot be started: error %d\n", program.c_str(), error);
    abort();
  }
}

bool CheckedJob::ReadLine(Rank& rank, std::string* line) {
  for (;;) {
    if (const size_t end = rank.said.find('\n'); end != std::string::npos) {
      *line = rank.said.substr(0, end);
      rank.said.erase(0, end + 1);
      return true;
    }
    pollfd waiting{rank.talk.get(), POLLIN, 0};
    char piece[256];
    const ssize_t size = poll(&waiting, 1, kPatienceMs) > 0
                             ? recv(rank.talk.get(), piece, sizeof(piece), MSG_DONTWAIT)
                             : 0;
    if (size <= 0) {
      *line = rank.said;
      return false;
    }
    rank.said.append(piece, static_cast<size_t>(size));
  }
}

std::string CheckedJob::Exchange() {
  const std::string round = std::to_string(rounds_++);
  for (const Rank& rank : ranks_) {
    (void)!send(rank.talk.get(), "x", 1, MSG_NOSIGNAL);
  }
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    std::string line;
    const bool answers = ReadLine(ranks_[rank], &line);
    if (!answers || line != "rank " + std::to_string(rank) + ": round " + round) {
      return "round " + round + " of rank " + std::to_string(rank) + ": " +
             (line.empty() ? "it says nothing" : line);
    }
  }
  return "";
}

const std::string& CheckedNodes::WithWorker(const daemon::TemporaryDirectory& directory) {
  namespace fs = std::filesystem;
  fs::permissions(directory.path(), fs::perms(0755));
  fs::copy_file(OwnDirectory() + "/../../daemon/ferry-worker", directory.path() + "/ferry-worker");
  return directory.path();
}

}  // namespace ferry::fuzz

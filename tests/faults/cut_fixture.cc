#include "tests/faults/cut_fixture.h"

#include <gmock/gmock.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using e2e::Eventually;
using e2e::RunCommand;
using testing::SizeIs;

constexpr unsigned kLimitSeconds = 240;

std::string Privileges() { return geteuid() == 0 ? "-n" : "-rn"; }

}  // namespace

bool HasUsersTimeouts() { return kSanitized || Setting("FERRY_FAULT_DEFAULTS", 0) != 0; }

std::chrono::milliseconds CutTest::Scaled(int ms) {
  return std::chrono::milliseconds(HasUsersTimeouts() ? ms : ms / 5);
}

void CutTest::SetUp() {
  if (RunCommand({"/usr/bin/unshare", Privileges(), "true"}).exit_code != 0) {
    GTEST_SKIP() << "this machine lets us make no network namespace";
  }
}

void CutTest::StartJob(int ranks, e2e::Words flags, const e2e::Words& program,
                       int operation_timeout_ms, const std::string& commands) {
  if (!HasUsersTimeouts()) {
    flags.insert(flags.end(), {"--peer_timeout_ms=3000",
                               "--operation_timeout_ms=" + std::to_string(operation_timeout_ms)});
  }
  const e2e::Words in_namespace = {"/usr/bin/unshare",           Privileges(), "sh", "-c",
                                   commands + " && exec \"$@\"", "sh"};
  job_ = std::make_unique<Command>(
      e2e::Joined(in_namespace, PrivateJob(ranks, nodes_, flags, program)), e2e::Words(), "",
      kLimitSeconds);
}

void CutTest::FindRanks(const std::string& program, int ranks) {
  ranks_ = RankPids(*job_, program, ranks);
  ASSERT_THAT(ranks_, SizeIs(ranks));
}

void CutTest::Ip(const e2e::Words& words) {
  e2e::Words enter = {"/usr/bin/nsenter", "-t", std::to_string(ranks_[0]), "-n"};
  if (geteuid() != 0) {
    enter.push_back("-U");
  }
  const CommandResult result = RunCommand(e2e::Joined(e2e::Joined(enter, {"ip"}), words));
  ASSERT_EQ(result.exit_code, 0) << result.err;
}

uint64_t CutTest::When(const std::string& text, const std::string& before) {
  size_t at = std::string::npos;
  EXPECT_TRUE(Eventually([&] {
    at = job_->Output().find(text, before.size());
    return at != std::string::npos;
  })) << job_->Output();
  return at == std::string::npos
             ? 0
             : std::strtoull(job_->Output().c_str() + at + text.size(), nullptr, 10);
}

std::string CutTest::Finish() {
  for (const pid_t rank : ranks_) {
    kill(rank, SIGUSR1);
  }
  const CommandResult result = job_->WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  ExpectAllRight(result.out, static_cast<int>(ranks_.size()));
  return result.out;
}

Sockets SocketsOf(pid_t pid, bool all) {
  const std::string process = "/proc/" + std::to_string(pid);
  std::set<std::string> own;
  for (const auto& fd : std::filesystem::directory_iterator(process + "/fd")) {
    own.insert(std::filesystem::read_symlink(fd).string());
  }
  Sockets sockets;
  for (const char* const table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream lines(process + table);
    for (std::string line; std::getline(lines, line);) {
      unsigned local = 0;
      unsigned remote = 0;
      unsigned state = 0;
      unsigned long inode = 0;
      if (std::sscanf(line.c_str(),
                      " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%x %x %*x:%*x %*x:%*x %*x %*d %*d %lu",
                      &local, &remote, &state, &inode) != 4 ||
          (!all && !own.contains("socket:[" + std::to_string(inode) + "]"))) {
        continue;
      }
      if (state == TCP_ESTABLISHED) {
        sockets.connected.insert({local, remote});
      } else if (state == TCP_LISTEN) {
        sockets.listening.insert(local);
      }
    }
  }
  return sockets;
}

}  // namespace ferry::faults

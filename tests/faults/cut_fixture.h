// Jobs on private daemons whose connections a test cuts, in a network namespace of the test's own.
// Skipped where the machine lets us make no namespace.
//
// The ranks print "rank R: cut at NS" and "rank R: back at NS", and end by SIGUSR1 with "rank R:
// all right".
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {

// Returns true if the job has users' time-outs, instead of shorter ones.
bool HasUsersTimeouts();

// Makes a namespace ready in which rules of routing may swallow packets.
inline constexpr char kRulesMaySwallow[] =
    "ip link set lo up && ip rule add pref 100 lookup local && ip rule del pref 0";

class CutTest : public testing::Test {
 protected:
  // A time span with users' time-outs, if FERRY_FAULT_DEFAULTS is set, or else a fifth of it.
  static std::chrono::milliseconds Scaled(int ms);

  void SetUp() override;
  // Starts a job of `program` in a namespace that `commands` make ready.
  void StartJob(int ranks, e2e::Words flags, const e2e::Words& program,
                int operation_timeout_ms = 4000, const std::string& commands = "ip link set lo up");
  // Finds the ranks, in whose namespace Ip and SetLink work.
  void FindRanks(const std::string& program, int ranks);
  void Ip(const e2e::Words& words);
  void SetLink(const char* state) { Ip({"link", "set", "lo", state}); }

  // Waits until a rank has printed the text, behind `before`, and returns its time.
  uint64_t When(const std::string& text, const std::string& before = "");
  // Ends all ranks, and returns their output.
  std::string Finish();

  int nodes_ = 2;
  std::unique_ptr<e2e::Command> job_;
  std::vector<pid_t> ranks_;
};

// Ports of TCP sockets.
struct Sockets {
  std::set<std::pair<unsigned, unsigned>> connected;  // this end's, and the other one's
  std::set<unsigned> listening;
};

// Returns the TCP sockets of a process, or of all processes in its network namespace.
Sockets SocketsOf(pid_t pid, bool all);

}  // namespace ferry::faults

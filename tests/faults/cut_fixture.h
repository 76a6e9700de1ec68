// Jobs on two nodes in a network namespace of the test's own, whose link a test cuts. Skipped where
// the machine lets us make none.
//
// The ranks print "rank R: cut at NS" and "rank R: back at NS", and end by SIGUSR1 with "rank R:
// all right".
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {

class CutTest : public testing::Test {
 protected:
  // A time span with users' time-outs, if FERRY_FAULT_DEFAULTS is set, or else a fifth of it.
  static std::chrono::milliseconds Scaled(int ms);

  void SetUp() override;
  // Starts a job of `program` in a namespace that `commands` make ready.
  void StartJob(int ranks, std::vector<std::string> flags, const std::vector<std::string>& program,
                int operation_timeout_ms = 4000, const std::string& commands = "ip link set lo up");
  // Finds the ranks, in whose namespace Ip and SetLink work.
  void FindRanks(const std::string& program, int ranks);
  void Ip(const std::vector<std::string>& words);
  void SetLink(const char* state) { Ip({"link", "set", "lo", state}); }

  // Waits until a rank has printed the text, and returns its time.
  uint64_t When(const std::string& text);
  // Ends all ranks, and returns their output.
  std::string Finish();

  std::unique_ptr<e2e::Command> job_;
  std::vector<pid_t> ranks_;
};

}  // namespace ferry::faults

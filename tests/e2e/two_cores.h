// For tests of where processes run: two cores of this machine, and a network namespace of each
// test's own, in which no other job's claims on CPUs count (topology/claims.h). Skipped where the
// machine lets us make none, or has but one core.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "common/topology/affinity.h"
#include "common/topology/discover.h"
#include "common/topology/shares.h"
#include "tests/e2e/command.h"

namespace ferry::e2e {

class TwoCoresTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto machine = topology::ReadThisMachine(topology::Devices::kLeaveOut);
    const auto allowed = topology::AffinityOf(0);
    ASSERT_TRUE(machine.ok() && allowed.ok());
    const std::vector<topology::CpuSet> cores = topology::CoresOf(*machine, *allowed);
    if (cores.size() < 2) {
      GTEST_SKIP() << "this machine has one core for us";
    }
    if (RunCommand(InOwnNetwork({"true"})).exit_code != 0) {
      GTEST_SKIP() << "this machine lets us make no network namespace";
    }
    first_ = cores[0];
    second_ = cores[1];
    both_ = cores[0];
    both_.Add(cores[1]);
  }

  // The command, on these CPUs.
  static Words On(const topology::CpuSet& cpus, const Words& command) {
    return Joined({"/usr/bin/taskset", "-c", cpus.Text()}, command);
  }

  topology::CpuSet first_;
  topology::CpuSet second_;
  topology::CpuSet both_;
};

}  // namespace ferry::e2e

// Runs a program of tests/shmem/ranks as a job of PEs, on one node or on several.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/support/patience.h"

namespace ferry::shmem_tests {

struct JobSettings {
  int pes = 2;
  int nodes = 1;
  std::vector<std::string> flags = {};      // of ferryrun
  std::vector<std::string> variables = {};  // "NAME=value"
  unsigned limit_s = tests::kPatienceS;
};

// The command that runs tests/shmem/ranks/WORDS...
e2e::Words LineOf(const JobSettings& settings, const std::vector<std::string>& words);
// Runs it to its end. Expects it to leave nothing behind.
e2e::CommandResult RunJob(const JobSettings& settings, const std::vector<std::string>& words);

// PEs on two nodes say that they wait for each other; then the daemon of the last one's node is
// killed. Expects the job to end by name, and to leave nothing behind.
void ExpectALostDaemonEnds(const std::vector<std::string>& words,
                           const std::vector<std::string>& variables = {}, int pes = 2);

// Expects the job to end well, with "PE 0: ok" and so on, and nothing else.
void ExpectAllOk(const JobSettings& settings, const std::vector<std::string>& words);

}  // namespace ferry::shmem_tests

// A fixture for jobs of ferryrun on several hosts, which are this machine under many addresses: a
// script stands in for what starts the agents there (ssh, srun).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/support/processes.h"

namespace ferry::e2e {

class StandInHostsTest : public testing::Test {
 protected:
  static constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
  static constexpr char kFakeFerryd[] = "tests/tools/fake_ferryd";
  // A wrapper that does not become its program, as users write them.
  static constexpr char kWrapper[] = "sh -c 'echo ready $FERRY_RANK; exec sleep 1000'; true";

  // The script comes first in the path by the name that it stands in for.
  StandInHostsTest(const std::string& name, const std::string& script) {
    std::ofstream(files_ / name) << script;
    std::filesystem::permissions(files_ / name, std::filesystem::perms::owner_all);
  }

  static std::string HostName(int number) { return "10.99.0." + std::to_string(number); }

  // ferryrun over that many hosts beside this one, with a variable of the script's, followed by the
  // other arguments.
  Words JobOver(int hosts, const std::string& variable, const Words& flags_and_program) const {
    std::string names;
    for (int host = 1; host <= hosts; ++host) {
      names += (host == 1 ? "" : ",") + HostName(host);
    }
    return Joined({"/usr/bin/env", "PATH=" + files_.path() + ":/usr/bin:/bin", variable, kFerryrun,
                   "--private", "--ferryd", std::filesystem::absolute(kFakeFerryd).string(),
                   "--network", "lo", "-hosts", names, "-n", std::to_string(hosts)},
                  flags_and_program);
  }
  static Words AsVariables(const std::string& name, int host) {
    return {name + "=" + HostName(host)};
  }
  static bool AreReady(Command* job, int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      if (!job->WaitForOutput("ready " + std::to_string(rank) + "\n")) {
        return false;
      }
    }
    return true;
  }

  // For ExpectMuchComesWhole: rank 0 copies its input, the others write as much.
  static Words MuchOutput() {
    return {"--no-label", "sh", "-c",
            "if [ $FERRY_RANK = 0 ]; then cat; else head -c 1500000 /dev/zero | "
            "tr '\\0' x; echo; fi"};
  }
  // `of_three`: a job of three ranks that run MuchOutput.
  void ExpectMuchComesWhole(const Words& of_three) const {
    std::string input;
    for (int line = 0; line < 200'000; ++line) {
      input += std::to_string(line) + "\n";
    }
    std::ofstream(files_ / "input") << input;
    Command job(Joined({"/bin/sh", "-c", "exec \"$@\" < " + files_ / "input", "sh"}, of_three));
    const CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::string others = result.out;
    std::erase_if(others, [](char c) { return c != 'x'; });
    EXPECT_EQ(others.size(), 3'000'000U);
    EXPECT_EQ(result.out.size(), input.size() + 3'000'002U);
  }

  const TempDirectory files_;
};

}  // namespace ferry::e2e

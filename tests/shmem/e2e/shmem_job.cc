#include "tests/shmem/e2e/shmem_job.h"

#include <gmock/gmock.h>
#include <signal.h>

namespace ferry::shmem_tests {

e2e::Words LineOf(const JobSettings& settings, const std::vector<std::string>& words) {
  e2e::Words arguments = {"tools/ferryrun/ferryrun",
                          "--private",
                          "--ferryd",
                          "daemon/ferryd",
                          "--no-label",
                          "-n",
                          std::to_string(settings.pes),
                          "--nodes",
                          std::to_string(settings.nodes)};
  arguments.insert(arguments.end(), settings.flags.begin(), settings.flags.end());
  arguments.push_back("tests/shmem/ranks/" + words.front());
  arguments.insert(arguments.end(), words.begin() + 1, words.end());
  return arguments;
}

e2e::CommandResult RunJob(const JobSettings& settings, const std::vector<std::string>& words) {
  e2e::Command command(LineOf(settings, words), settings.variables, "", settings.limit_s);
  e2e::CommandResult result = command.Wait();
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
  return result;
}

void ExpectALostDaemonEnds(const std::vector<std::string>& words,
                           const std::vector<std::string>& variables, int pes) {
  e2e::Command command(LineOf({.pes = pes, .nodes = 2, .flags = {"--keep-going"}}, words),
                       variables);
  for (int pe = 0; pe < pes; ++pe) {
    ASSERT_TRUE(command.WaitForOutput("PE " + std::to_string(pe) + ": waits"));
  }
  const std::vector<pid_t> daemons = command.Find("--ready-fd");
  ASSERT_THAT(daemons, testing::SizeIs(2));
  kill(daemons[1], SIGKILL);
  const e2e::CommandResult result = command.Wait();
  EXPECT_NE(result.exit_code, 0);
  // A PE, or ferryrun, whoever finds out first.
  EXPECT_THAT(result.err, testing::HasSubstr("ferryd"));
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
}

void ExpectAllOk(const JobSettings& settings, const std::vector<std::string>& words) {
  const e2e::CommandResult result = RunJob(settings, words);
  std::vector<std::string> lines;
  lines.reserve(static_cast<size_t>(settings.pes));
  for (int pe = 0; pe < settings.pes; ++pe) {
    lines.push_back("PE " + std::to_string(pe) + ": ok");
  }
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(e2e::SortedLines(result.out), lines) << result.err;
}

}  // namespace ferry::shmem_tests

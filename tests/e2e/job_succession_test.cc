// Programs that follow each other in the slots of one ferryrun: each time the ranks meet again, as
// a new job.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr char kFollows[] = "tests/e2e/ranks/follows";
constexpr char kFerry[] = "tests/e2e/ranks/meeting_ferry";
constexpr char kMpi[] = "tests/e2e/ranks/meeting_mpi";
constexpr char kShmem[] = "tests/e2e/ranks/meeting_shmem";
constexpr char kNobody[] = " after - 0";  // arguments of a program in which all goes well

class SuccessionTest : public testing::TestWithParam<const char*> {
 protected:
  // Ranks that run a script each, on so many nodes.
  static Words Job(int ranks, const std::string& script, const Words& flags = {}) {
    return PrivateJob(Joined({"-n", std::to_string(ranks), "--nodes", GetParam()}, flags),
                      {"bash", "-c", script});
  }
  static int Count(const std::string& text, const std::string& what) {
    int count = 0;
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) {
      ++count;
    }
    return count;
  }
};

TEST_P(SuccessionTest, TheRanksMeetAgain) {
  for (const std::string program : {kFerry, kMpi, kShmem}) {
    const std::string once = program + kNobody;
    const std::string out = RunWell(Job(2, once + " && " + once + " && exec " + once));
    EXPECT_EQ(Count(out, "rank 0: met\n"), 3) << program << out;
    EXPECT_EQ(Count(out, "rank 1: met\n"), 3) << program << out;
  }
}

TEST_P(SuccessionTest, SoTheyDoInProgramsOfDifferentKinds) {
  std::string script = "true";
  for (const std::string program : {kMpi, kShmem, kFerry, kMpi, kFollows}) {
    script += " && " + program + (program == kFollows ? " 5" : kNobody);
  }
  const std::string out = RunWell(Job(3, script));
  EXPECT_EQ(Count(out, ": met\n"), 4 * 3) << out;
  EXPECT_EQ(Count(out, ": 5\n"), 3) << out;
}

// Each program leaves messages behind, and takes the first that come from anywhere.
TEST_P(SuccessionTest, NothingOfOneProgramReachesAnother) {
  const std::string out =
      RunWell(Job(4, std::string("for i in $(seq 12); do ") + kFollows + " $i || exit 1; done"));
  for (int program = 1; program <= 12; ++program) {
    EXPECT_EQ(Count(out, ": " + std::to_string(program) + "\n"), 4) << program << out;
  }
}

TEST_P(SuccessionTest, AlsoWithFerrysMallocAndFewQuotas) {
  const std::string loop = std::string("for i in 1 2 3 4; do ") + kFollows + " $i || exit 1; done";
  EXPECT_EQ(Count(RunWell(Job(2, loop, {"--malloc"})), "rank 1: "), 4);
  EXPECT_EQ(Count(RunWell(Job(2, loop,
                              {"--quota_sessions=2", "--quota_jobs=1", "--quota_ranks=2",
                               "--max_local_ranks=2"})),
                  "rank 1: "),
            4);
}

TEST_P(SuccessionTest, OtherProgramsMayStandBetween) {
  const std::string out = RunWell(Job(2, std::string("uname >&2; ") + kFollows +
                                             " 1 && if [ $FERRY_RANK = 1 ]; then true; fi && " +
                                             kFollows + " 2 && true"));
  EXPECT_EQ(Count(out, "rank 1: 2\n"), 1) << out;
}

// Only the shell looks at it.
TEST_P(SuccessionTest, AnExitCodeAfterTheEndIsTheShells) {
  const CommandResult goes_on =
      RunCleanly(Job(2, std::string(kMpi) +
                            " after 1 5; code=$?; test $FERRY_RANK = 0 || test $code = 5 && exec " +
                            kMpi + kNobody));
  EXPECT_EQ(goes_on.exit_code, 0) << goes_on.err;
  EXPECT_EQ(Count(goes_on.out, ": met\n"), 3) << goes_on.out << goes_on.err;
}

TEST_P(SuccessionTest, ALateRankIsWaitedForAndNamed) {
  const TempDirectory directory;
  const std::string fifo = directory / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Command job(Job(3, std::string(kMpi) + kNobody + " && " + kMpi + " start 2 " + fifo,
                  {"--mpi_warn_after_ms=500"}));
  EXPECT_TRUE(job.WaitForError(" for all ranks of the job to call it; missing: rank 2 ("));
  close(open(fifo.c_str(), O_WRONLY | O_CLOEXEC));
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Count(result.out, ": met\n"), 6) << result.err;
}

// Its first program meets the only one of rank 1, its second one none.
TEST_P(SuccessionTest, ASlotThatHasOneProgramLessIsNamed) {
  const CommandResult result =
      RunCleanly(Job(2, std::string("if [ $FERRY_RANK = 0 ]; then ") + kMpi + kNobody +
                            "; fi; exec " + kMpi + kNobody));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr(") exited with code 0 without another MPI_Init, in which other "
                                    "ranks wait for it"));
  EXPECT_EQ(Count(result.out, ": met\n"), 2) << result.out;
}

// Where the others go on, the daemons tell them.
TEST_P(SuccessionTest, SoItIsWhereOthersAreToGoOn) {
  const CommandResult result = RunCleanly(
      Job(3, std::string(kMpi) + kNobody + "; test $FERRY_RANK = 2 || exec " + kMpi + kNobody,
          {"--keep-going"}));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("rank 2 of job "),
                    HasSubstr("#2 exited with code 0 without another MPI_Init, in which "
                              "other ranks wait for it")));
}

TEST_P(SuccessionTest, ADeathInTheSecondProgramEndsAll) {
  for (const std::string program : {kFerry, kMpi, kShmem}) {
    const CommandResult result =
        RunCleanly(Job(3, program + kNobody + " && exec " + program + " exit 1 3"));
    EXPECT_EQ(result.exit_code, 3) << program << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("ferryrun: rank 1 (pid "),
                                  HasSubstr(") exited with code 3 without ")))
        << program;
  }
}

TEST_P(SuccessionTest, ARankThatIsKilledInTheSecondProgramEndsAll) {
  const CommandResult result =
      RunCleanly(Job(3, std::string(kFollows) + " 1 && exec tests/e2e/ranks/ends kill 2"));
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_THAT(result.err, HasSubstr(") was killed by SIGKILL"));
}

TEST_P(SuccessionTest, AnAbortInTheSecondProgramEndsAll) {
  const CommandResult result =
      RunCleanly(Job(3, std::string(kFollows) + " 1 && tests/e2e/ranks/ends abort 1"));
  EXPECT_EQ(result.exit_code, 37) << result.err;
  EXPECT_THAT(result.err, HasSubstr("ferryrun: rank 1 aborted the job with exit code 37\n"));
}

// The shells do not care, but the ranks cannot meet again.
TEST_P(SuccessionTest, NoProgramFollowsADeath) {
  const CommandResult result =
      RunCleanly(Job(2, std::string("tests/e2e/ranks/ends exit 1; ") + kFollows + " 2; true"));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr(" takes no further program: rank 1 of job "),
                                HasSubstr("ferryrun: rank 1 (pid "),
                                HasSubstr(") exited with code 0 without ferry_finalize")));
  EXPECT_THAT(result.out, Not(HasSubstr(": 2\n")));
}

TEST_P(SuccessionTest, AProgramThatARankStartsIsRefusedAsBefore) {
  const std::string nested = std::string(" \"test $FERRY_RANK = 0 || exec ") + kFollows + " 7\"";
  const CommandResult result = RunCleanly(Job(
      2, std::string(kFollows) + " 1 && " + kFollows + " 2" + nested + " && " + kFollows + " 3"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("rank 1 of job "), HasSubstr("#2 is attached already, by pid ")));
  EXPECT_THAT(result.out, AllOf(HasSubstr("rank 1: it exited with 1\n"), HasSubstr("rank 0: 3\n"),
                                HasSubstr("rank 1: 3\n")));
}

INSTANTIATE_TEST_SUITE_P(Nodes, SuccessionTest, testing::Values("1", "2"));

// ---- What is left in a daemon ----

struct Holdings {
  size_t descriptors = 0;
  size_t threads = 0;
  size_t mappings = 0;
  uint64_t private_kb = 0;
};

Holdings HoldingsOf(pid_t daemon) {
  const std::string proc = "/proc/" + std::to_string(daemon);
  const auto entries = [&](const char* folder) {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(proc + folder), fs::directory_iterator()));
  };
  Holdings holdings{entries("/fd"), entries("/task")};
  std::ifstream maps(proc + "/maps");
  holdings.mappings = static_cast<size_t>(
      std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
  std::ifstream status(proc + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) {
      holdings.private_kb = std::strtoull(line.c_str() + 8, nullptr, 10);
    }
  }
  return holdings;
}

std::vector<pid_t> DaemonsOf(const Command& job) {
  std::vector<pid_t> daemons = job.Find("ferryd");
  std::erase_if(daemons, [](pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
    std::string name;
    return !std::getline(file, name) || name != "ferryd";  // ferryrun's flags name it, too
  });
  std::sort(daemons.begin(), daemons.end());
  return daemons;
}

class ManyProgramsTest : public testing::TestWithParam<const char*> {};

// No rank runs while the daemons are looked at.
TEST_P(ManyProgramsTest, LeaveNothingInTheDaemons) {
  const TempDirectory directory;
  std::string script;
  const Words fifos = {directory / "first", directory / "second"};
  for (const auto& [programs, fifo] : {std::pair(20, fifos[0]), std::pair(200, fifos[1])}) {
    script += "for i in $(seq " + std::to_string(programs) + "); do " + kFollows +
              " $i > /dev/null || exit 1; done; echo $FERRY_RANK waits; read x < " + fifo +
              ".$FERRY_RANK || true; ";
  }
  for (const std::string& fifo : fifos) {
    for (const char* rank : {".0", ".1"}) {
      ASSERT_EQ(mkfifo((fifo + rank).c_str(), 0600), 0);
    }
  }
  Command job(PrivateJob({"-n", "2", "--nodes", GetParam()}, {"bash", "-c", script}), {}, "",
              3 * tests::kPatienceS);
  std::vector<std::vector<Holdings>> seen;
  for (size_t stop = 0; stop < fifos.size(); ++stop) {
    const auto all_wait = [&] {
      const std::string out = job.Output();
      return static_cast<size_t>(std::count(out.begin(), out.end(), '\n')) == 2 * (stop + 1);
    };
    ASSERT_TRUE(Eventually(all_wait) || Eventually(all_wait));
    const std::vector<pid_t> daemons = DaemonsOf(job);
    ASSERT_THAT(daemons, SizeIs(static_cast<size_t>(std::atoi(GetParam()))));
    seen.emplace_back();
    for (size_t i = 0; i < daemons.size(); ++i) {
      Holdings holdings;
      // The last things of ranks may go a moment after them.
      EXPECT_TRUE(Eventually([&] {
        holdings = HoldingsOf(daemons[i]);
        return stop == 0 || (holdings.descriptors <= seen[0][i].descriptors &&
                             holdings.mappings <= seen[0][i].mappings + 8);
      })) << holdings.descriptors
          << " descriptors after " << seen[0][i].descriptors << ", " << holdings.mappings
          << " mappings after " << seen[0][i].mappings;
      seen.back().push_back(holdings);
    }
    for (const char* rank : {".0", ".1"}) {
      close(open((fifos[stop] + rank).c_str(), O_WRONLY | O_CLOEXEC));
    }
  }
  for (size_t i = 0; i < seen[0].size(); ++i) {
    EXPECT_LE(seen[1][i].threads, seen[0][i].threads);
    EXPECT_LE(seen[1][i].private_kb, seen[0][i].private_kb + 2048) << "of 200 programs";
  }
  EXPECT_EQ(job.WaitCleanly().exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(Nodes, ManyProgramsTest, testing::Values("1", "2"));

}  // namespace
}  // namespace ferry::e2e

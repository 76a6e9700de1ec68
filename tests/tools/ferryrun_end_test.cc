// The processes and files left when ferryrun ends, however it ends, and its behaviour with the
// state in which it was started: ignored signals, closed streams, other people's libraries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kFakeFerryd[] = "tests/tools/fake_ferryd";

Words Script(const Words& flags, const std::string& script) {
  return Joined(Joined({kFerryrun, "--private", "--ferryd", kFakeFerryd}, flags),
                {"sh", "-c", script});
}

// A wrapper that does not become its program, as users write them.
constexpr char kWrapper[] = "sh -c 'echo ready $FERRY_RANK; exec sleep 1000'; true";

bool AreReady(Command* command) {
  return command->WaitForOutput("ready 0") && command->WaitForOutput("ready 1");
}

// ---- Killed ----

TEST(FerryrunEndTest, KilledItLeavesNothingBehindAWrapper) {
  Command command(Script({"-n", "2"}, kWrapper));
  ASSERT_TRUE(AreReady(&command));
  command.Signal(SIGKILL);
  EXPECT_EQ(command.WaitCleanly().signal, SIGKILL);
}

// As `kill -9 %1` of a shell does.
TEST(FerryrunEndTest, KilledWithItsGroupItLeavesNothing) {
  Command command(Script({"-n", "2"}, kWrapper));
  ASSERT_TRUE(AreReady(&command));
  kill(-command.pid(), SIGKILL);
  EXPECT_EQ(command.WaitCleanly().signal, SIGKILL);
}

TEST(FerryrunEndTest, KilledItEndsWhatLeftItsRanksToo) {
  Command command(Script({"-n", "2"},
                         "setsid sh -c '(echo ready $FERRY_RANK; exec sleep 1000) & exit' & "
                         "sleep 1000; true"));
  ASSERT_TRUE(AreReady(&command));
  command.Signal(SIGSTOP);
  command.Signal(SIGKILL);
  EXPECT_EQ(command.WaitCleanly().signal, SIGKILL);
}

TEST(FerryrunEndTest, NamesThatAreUsedToKillItDoNotMeanItsGuard) {
  Command command(Script({"-n", "2"}, kWrapper));
  ASSERT_TRUE(AreReady(&command));
  const std::vector<pid_t> guards = command.Find("ferry-guard");
  ASSERT_THAT(guards, SizeIs(1));
  const std::string process = "/proc/" + std::to_string(guards[0]);
  EXPECT_EQ(tests::ReadFile(process + "/comm"), "ferry-guard\n");
  EXPECT_THAT(tests::ReadFile(process + "/cmdline"), Not(HasSubstr("ferryrun")));
  command.Signal(SIGTERM);
  command.WaitCleanly();
}

TEST(FerryrunEndTest, AKilledGuardEndsTheJob) {
  Command command(Script({"-n", "2"}, kWrapper));
  ASSERT_TRUE(AreReady(&command));
  const std::vector<pid_t> guards = command.Find("ferry-guard");
  ASSERT_THAT(guards, SizeIs(1));
  kill(guards[0], SIGKILL);
  const CommandResult result = command.WaitCleanly();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("(ferry-guard) was killed; 2 ranks of this host ended with it\n"));
}

// ---- Ended by itself ----

TEST(FerryrunEndTest, EndsWhatALeftGroupOfItsSessionDoes) {
  RunCleanly({"/bin/sh", "-c",
              std::string("exec ") + kFerryrun + " --private --ferryd " + kFakeFerryd +
                  " bash -c 'set -m; sleep 1000 & true'"});
}

TEST(FerryrunEndTest, LeavesAServerThatMadeASessionOfItsOwn) {
  Command command(Script({},
                         "f=$XDG_RUNTIME_DIR/server; "
                         "setsid sh -c \"echo ready >$f; exec sleep 1000\" >/dev/null 2>&1 & "
                         "until [ -s $f ]; do sleep 0.01; done"));
  EXPECT_EQ(command.Wait().exit_code, 0);
  const std::vector<pid_t> servers = command.Find("sleep");
  ASSERT_THAT(servers, SizeIs(1));
  kill(servers[0], SIGKILL);
}

TEST(FerryrunEndTest, SaysWhatEndedAtASignal) {
  Command command(Script({"-n", "2", "--grace-ms", "100"},
                         "test $FERRY_RANK = 0 || trap '' TERM; echo ready $FERRY_RANK; "
                         "while :; do sleep 0.01; done"));
  ASSERT_TRUE(AreReady(&command));
  command.Signal(SIGTERM);
  const CommandResult result = command.WaitCleanly();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_THAT(result.err, MatchesRegex("ferryrun: told to end by SIGTERM; .*\n"
                                       "ferryrun: ended by SIGTERM: job [0-9a-f]+ has ended, with "
                                       "2 of 2 ranks that still ran; 1 had to be killed\n"));
}

// Each of them would take five seconds for a call, and a second to be killed.
TEST(FerryrunEndTest, DaemonsThatHangHoldItUpTogetherNotOneAfterTheOther) {
  constexpr int kDaemons = 16;
  Command command(
      Joined({kFerryrun, "--private", "--ferryd", kFakeFerryd, "-n", std::to_string(kDaemons),
              "--nodes", std::to_string(kDaemons), "--grace-ms", "1000"},
             {"sh", "-c", "echo ready $FERRY_RANK; exec sleep 1000"}),
      {}, "", /*limit_s=*/60);
  for (int rank = 0; rank < kDaemons; ++rank) {
    ASSERT_TRUE(command.WaitForOutput("ready " + std::to_string(rank) + "\n"));
  }
  const std::vector<pid_t> daemons = command.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(kDaemons));
  for (const pid_t daemon : daemons) {
    kill(daemon, SIGSTOP);
  }
  command.Signal(SIGTERM);
  const CommandResult result = command.WaitCleanly();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  for (const pid_t daemon : daemons) {
    EXPECT_THAT(result.err, HasSubstr("(pid " + std::to_string(daemon) +
                                      ") did not stop as it should: it was killed by SIGKILL"));
  }
}

// ---- Signals ignored at its start ----

// As nohup does, and shells that start commands in the background. Signals come in the order of
// their numbers.
TEST(FerryrunEndTest, SignalsThatWereIgnoredStayIgnored) {
  Command command({"/bin/sh", "-c",
                   std::string("trap '' HUP INT QUIT TERM; exec ") + kFerryrun +
                       " --private --ferryd " + kFakeFerryd +
                       " sh -c 'kill -HUP $$; kill -INT $$; kill -QUIT $$; kill -TERM $$; "
                       "trap \"echo got it; exit 0\" USR1; echo ready; "
                       "while :; do sleep 0.01; done'"});
  ASSERT_TRUE(command.WaitForOutput("ready"));
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1}) {
    command.Signal(signal);
  }
  const CommandResult result = command.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "ready\ngot it\n");
  EXPECT_THAT(result.err, Not(HasSubstr("ferryrun")));
}

TEST(FerryrunEndTest, SeesHowRanksEndWhereSigchldIsIgnored) {
  EXPECT_EQ(RunCleanly({"/usr/bin/perl", "-e", "$SIG{CHLD} = 'IGNORE'; exec @ARGV", kFerryrun,
                        "--private", "--ferryd", kFakeFerryd, "sh", "-c", "exit 3"})
                .exit_code,
            3);
}

TEST(FerryrunEndTest, AClosedInputIsAnEmptyOne) {
  EXPECT_EQ(RunWell({"/bin/sh", "-c",
                     std::string("exec ") + kFerryrun + " --private --ferryd " + kFakeFerryd +
                         " -n 2 sh -c 'read x; echo got $? of $x' 0<&-"}),
            "got 1 of\ngot 1 of\n");
}

TEST(FerryrunEndTest, ClosedOutputsHarmNothing) {
  const std::string ferryrun =
      std::string(kFerryrun) + " --private --ferryd " + kFakeFerryd + " -n 2 sh -c ";
  const CommandResult result =
      RunCleanly({"/bin/sh", "-c",
                  ferryrun + "'echo lost; echo seen >&2' >&-; " + ferryrun +
                      "'echo out; echo lost >&2; exit 4' 0<&- 2>&-"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.err, "seen\nseen\n");
  EXPECT_EQ(result.out, "out\nout\n");
}

TEST(FerryrunEndTest, SaysThatRanksUseAnotherLibrary) {
  const CommandResult result = RunCleanly(
      {kFerryrun, "--private", "--ferryd", kFakeFerryd, "-n", "3", "tests/tools/foreign_rank"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, AllOf(HasSubstr("none of the 3 ranks joined the job: each ran alone"),
                                HasSubstr("libmpi.so.99")));
  // One rank is what it would have been anyway, and other programs need no such library.
  EXPECT_EQ(
      RunCleanly({kFerryrun, "--private", "--ferryd", kFakeFerryd, "tests/tools/foreign_rank"}).err,
      "");
  EXPECT_EQ(RunCleanly(Script({"-n", "3"}, "true")).err, "");
}

// ---- Where it may write ----

TEST(FerryrunEndTest, AReadOnlyTmpIsNotNeeded) {
  const Words unshared = {"/usr/bin/unshare", "-m", "sh", "-c"};
  // With a /dev/shm of its own: other tests look for what is left in that of all.
  const std::string read_only =
      "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp && "
      "mount -t tmpfs -o mode=1777 tmpfs /dev/shm";
  if (RunCommand(Joined(unshared, {read_only})).exit_code != 0) {
    GTEST_SKIP() << "mount namespaces are not permitted here";
  }
  const CommandResult result =
      RunCommand(Joined(unshared, {read_only + " && env -u XDG_RUNTIME_DIR -u TMPDIR " + kFerryrun +
                                   " --private --ferryd " + kFakeFerryd +
                                   " sh -c 'echo $FERRY_RUN_DIRECTORY' && ls -A /dev/shm"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, MatchesRegex("/dev/shm/ferryrun-[0-9]+-....../0\n"));
}

}  // namespace
}  // namespace ferry::e2e

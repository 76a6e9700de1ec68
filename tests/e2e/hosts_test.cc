// Jobs on several hosts: network namespaces of this machine, which only a launcher enters, with the
// real daemon and the real library.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kIp[] = "/usr/sbin/ip";
// For sh -c: a wrapper that does not become its program.
constexpr char kWrapper[] = "sh -c 'echo ready $FERRY_RANK; exec sleep 100'; true";

void WriteScript(const std::string& path, const std::string& text) {
  std::ofstream(path) << "#!/bin/sh\n" << text;
  fs::permissions(path, fs::perms::owner_all);
}

// Two hosts beside this one, on a network of their own, and a launcher that enters them.
class Hosts {
 public:
  Hosts()
      : id_(std::to_string(getpid())),
        network_("10." + std::to_string(128 + getpid() / 250 % 100) + "." +
                 std::to_string(getpid() % 250)),
        bridge_("fb" + id_) {
    if (!fs::exists(kIp)) {
      why_not_ = std::string(kIp) + " is not there: apt-get install iproute2";
      return;
    }
    Run({"link", "add", bridge_, "type", "bridge"});
    Run({"addr", "add", network_ + ".254/24", "dev", bridge_});
    Run({"link", "set", bridge_, "up"});
    for (const std::string number : {"1", "2"}) {
      const std::string space = Space(number);
      const std::string veth = "fv" + number + "-" + id_;
      Run({"netns", "add", space});
      Run({"link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", space});
      Run({"link", "set", veth, "master", bridge_, "up"});
      Run({"-n", space, "addr", "add", network_ + "." + number + "/24", "dev", "eth0"});
      Run({"-n", space, "link", "set", "eth0", "up"});
      Run({"-n", space, "link", "set", "lo", "up"});
    }
    WriteScript(launcher(), "host=$1\nshift\nexec " + std::string(kIp) + " netns exec ferry" + id_ +
                                "-${host##*.} \"$@\"\n");
  }
  ~Hosts() {
    for (const std::string number : {"1", "2"}) {
      RunCommand({kIp, "netns", "del", Space(number)});
    }
    RunCommand({kIp, "link", "del", bridge_});
  }

  // Why there are no hosts; empty if there are.
  const std::string& why_not() const { return why_not_; }
  std::string Address(const std::string& number) const { return network_ + "." + number; }
  std::string both() const { return Address("1") + "," + Address("2"); }
  std::string with_this() const { return Address("254") + "," + both(); }
  std::string Space(const std::string& number) const { return "ferry" + id_ + "-" + number; }
  std::string launcher() const { return testing::TempDir() + "launcher"; }

 private:
  void Run(const Words& arguments) {
    const CommandResult result = RunCommand(Joined({kIp}, arguments));
    if (result.exit_code != 0 && why_not_.empty()) {
      why_not_ = "network namespaces are not permitted here: " + result.err;
    }
  }

  const std::string id_;
  const std::string network_;
  const std::string bridge_;
  std::string why_not_;
};

class HostsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { hosts_ = std::make_unique<Hosts>(); }
  static void TearDownTestSuite() { hosts_.reset(); }
  void SetUp() override {
    if (!hosts_->why_not().empty()) {
      GTEST_SKIP() << hosts_->why_not();
    }
  }

  // ferryrun on `hosts`, followed by the other arguments.
  static Words Job(const std::string& hosts, const Words& flags_and_program) {
    return Joined({kFerryrun, "--private", "--ferryd", Ferryd(), "--rsh", hosts_->launcher(),
                   "-hosts", hosts},
                  flags_and_program);
  }
  // Waits until each rank has said "ready RANK".
  static bool AreReady(Command* job, int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      if (!job->WaitForOutput("ready " + std::to_string(rank))) {
        return false;
      }
    }
    return true;
  }
  static std::string Ferryd() { return fs::absolute("daemon/ferryd").string(); }

  static std::unique_ptr<Hosts> hosts_;
};

std::unique_ptr<Hosts> HostsTest::hosts_;

TEST_F(HostsTest, RanksGreetEachOtherAcrossHosts) {
  EXPECT_THAT(SortedLines(RunWell(Job(hosts_->both(), {"-n", "4", "--map-by", "node", "--no-label",
                                                       "examples/hello/hello"}))),
              ElementsAre("rank 0 of 4: rank 3 says hello", "rank 1 of 4: rank 0 says hello",
                          "rank 2 of 4: rank 1 says hello", "rank 3 of 4: rank 2 says hello"));
}

// By servers of the agents' and, where this host takes part, of ferryrun's.
TEST_F(HostsTest, RanksOfOtherLibrariesMeet) {
  int families = 0;
  for (const auto& [family, library] :
       {std::pair("mpich", "libmpich.so.12"), std::pair("openmpi", "libmpi.so.40")}) {
    if (dlopen(library, RTLD_LAZY | RTLD_LOCAL) == nullptr) {
      continue;
    }
    ++families;
    for (const std::string& hosts : {hosts_->both(), hosts_->with_this()}) {
      const TempDirectory files;
      // Open MPI's segments in /dev/shm have the name of the machine, which these hosts share.
      const CommandResult result =
          RunCleanly(Job(hosts, {"-n", "4", "--abi=native", "--map-by", "node", "--no-label", "-x",
                                 "TMPDIR=" + files.path(), "-x", "OMPI_MCA_btl=self,tcp",
                                 "tests/tools/foreign_mpi", family, "sum"}),
                     {"HOME=/tmp"});
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_THAT(SortedLines(result.out), ElementsAre("rank 0 of 4: sum 6", "rank 1 of 4: sum 6",
                                                       "rank 2 of 4: sum 6", "rank 3 of 4: sum 6"));
      EXPECT_THAT(result.err, HasSubstr("they meet by ferryrun's"));
    }
  }
  if (families == 0) {
    GTEST_SKIP() << "no other MPI library is installed: apt-get install libmpich12 libopenmpi3";
  }
}

TEST_F(HostsTest, ThisHostTakesPart) {
  EXPECT_EQ(RunWell(Job(hosts_->with_this(),
                        {"-n", "3", "--no-label", "tests/e2e/ranks/point_to_point"})),
            "point_to_point: ok\n");
}

TEST_F(HostsTest, RanksRunWhereAndHowTheyShould) {
  EXPECT_THAT(SortedLines(RunWell(
                  Job(hosts_->with_this(),
                      {"-l", "-x", "GIVEN=value", "-wdir", "/tmp", "-n", "3", "sh", "-c",
                       "echo $FERRY_NODE $GIVEN $OTHER $(pwd) $(ip -4 -o addr show scope global | "
                       "grep -c eth0)"}),
                  {"OTHER=kept"})),
              ElementsAre(testing::StartsWith("[0] 0 value kept /tmp "), "[1] 1 value kept /tmp 1",
                          "[2] 2 value kept /tmp 1"));
}

TEST_F(HostsTest, StandardInputGoesToRankZeroWhereverItIs) {
  const std::string input(60000, 'y');
  Command command(Job(hosts_->both(), {"-l", "-n", "2", "wc", "-c"}), {}, input);
  EXPECT_THAT(SortedLines(command.WaitCleanly().out), ElementsAre("[0] 60000", "[1] 0"));
}

TEST_F(HostsTest, MuchOutputComesWhole) {
  const CommandResult result = RunCommand(Job(
      hosts_->Address("1"), {"--no-label", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"}));
  EXPECT_EQ(result.out.size(), 3000000U);
}

TEST_F(HostsTest, ReportsTheRankThatFailed) {
  const CommandResult result = RunCleanly(Job(
      hosts_->both(), {"-n", "2", "sh", "-c", "test $FERRY_RANK = 0 || exit 3; exec sleep 100"}));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, testing::MatchesRegex("ferryrun: rank 1 \\(pid [0-9]+ on host " +
                                                hosts_->Address("2") +
                                                "\\) exited with code 3; ending the other rank\n"));
}

TEST_F(HostsTest, ReportsTheRankThatWasKilled) {
  const CommandResult result =
      RunCleanly(Job(hosts_->both(), {"-n", "2", "sh", "-c",
                                      "test $FERRY_RANK = 0 || kill -SEGV $$; exec sleep 100"}));
  EXPECT_EQ(result.exit_code, 128 + SIGSEGV);
  EXPECT_THAT(result.err, HasSubstr("was killed by SIGSEGV"));
}

TEST_F(HostsTest, ForwardsSignals) {
  Command command(
      Job(hosts_->with_this(), {"-l", "-n", "3", "sh", "-c",
                                "trap 'echo got it; exit 0' USR1; echo ready $FERRY_RANK; "
                                "while :; do sleep 0.01; done"}));
  ASSERT_TRUE(AreReady(&command, 3));
  command.Signal(SIGUSR1);
  const CommandResult result = command.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("[0] got it"), HasSubstr("[1] got it"), HasSubstr("[2] got it")));
}

TEST_F(HostsTest, AnAbortHasItsOwnExitCode) {
  for (const char* who : {"0", "2"}) {
    const CommandResult result =
        RunCleanly(Job(hosts_->with_this(), {"-n", "3", "tests/e2e/ranks/ends", "abort", who}));
    EXPECT_EQ(result.exit_code, 37) << result.err;
    EXPECT_THAT(result.err, HasSubstr("ferryrun: rank " + std::string(who) +
                                      " aborted the job with exit code 37\n"));
  }
}

// Ranks of other hosts tell ferryrun by their agents.
TEST_F(HostsTest, TheRankThatEndedFirstIsBlamed) {
  for (const char* who : {"0", "2"}) {
    const CommandResult result =
        RunCleanly(Job(hosts_->with_this(), {"-n", "3", "tests/e2e/ranks/ends", "exit", who}));
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("ferryrun: rank " + std::string(who) + " (pid "),
                                  HasSubstr(") exited with code 3 without ferry_finalize")));
  }
}

TEST_F(HostsTest, AProgramThatEndsWithoutStartingEndsTheOthers) {
  const CommandResult result =
      RunCleanly(Job(hosts_->with_this(),
                     {"-n", "2", "tests/e2e/ranks/ends", "finalize", "0", ":", "-n", "1", "true"}));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("ferryrun: rank 2 (pid "),
                                HasSubstr(") exited with code 0 without ferry_init, in which other "
                                          "ranks wait for it")));
}

class HostsEndTest : public HostsTest, public testing::WithParamInterface<int> {};

TEST_P(HostsEndTest, LeavesNothingOnAnyHost) {
  Command command(Job(hosts_->with_this(), {"-n", "3", "sh", "-c", kWrapper}));
  ASSERT_TRUE(AreReady(&command, 3));
  command.Signal(GetParam());
  const CommandResult result = command.WaitCleanly();
  EXPECT_NE(result.exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(Signals, HostsEndTest, testing::Values(SIGINT, SIGTERM, SIGKILL));

TEST_F(HostsTest, AHostThatIsLostFailsTheJob) {
  Command command(Job(hosts_->both(), {"-n", "2", "sh", "-c", kWrapper}));
  ASSERT_TRUE(AreReady(&command, 2));
  const std::vector<pid_t> agents = command.Find("--agent");
  ASSERT_THAT(agents, SizeIs(2));
  kill(agents[1], SIGKILL);
  const CommandResult result = command.WaitCleanly();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("is lost: " + hosts_->launcher() + " was killed by SIGKILL"),
                    HasSubstr("its 1 rank counts as failed")));
}

TEST_F(HostsTest, ADaemonThatDiesThereIsReported) {
  Command command(Job(hosts_->both(), {"-n", "2", "--grace-ms", "50", "sh", "-c",
                                       "echo ready $FERRY_RANK; exec sleep 100"}));
  ASSERT_TRUE(AreReady(&command, 2));
  const std::vector<pid_t> daemons = command.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(2));
  kill(daemons[0], SIGKILL);
  const CommandResult result = command.WaitCleanly();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, AllOf(HasSubstr("ferryrun: host " + hosts_->Address("")),
                                HasSubstr("was killed by SIGKILL while the job ran")));
}

TEST_F(HostsTest, SaysWhatCannotBeRunThere) {
  const CommandResult result = RunCleanly(Job(hosts_->both(), {"-n", "2", "nosuchprogram"}));
  EXPECT_EQ(result.exit_code, 127);
  EXPECT_THAT(result.err, HasSubstr("host " + hosts_->Address("")));
  EXPECT_THAT(result.err, HasSubstr("cannot run 'nosuchprogram': No such file or directory"));

  const CommandResult refused =
      RunCleanly(Job(hosts_->both(), {"-wdir", "/nonexistent", "-n", "2", "true"}));
  EXPECT_EQ(refused.exit_code, 126);
  EXPECT_THAT(refused.err, HasSubstr("in the directory '/nonexistent': No such file"));
}

TEST_F(HostsTest, AHostThatCannotBeReachedIsNamed) {
  const CommandResult result =
      RunCleanly(Job(hosts_->both() + "," + hosts_->Address("3"), {"-n", "3", "true"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot reach host " + hosts_->Address("3") + ": "));
}

TEST_F(HostsTest, ANetworkThatAHostLacksIsNamed) {
  const CommandResult result =
      RunCleanly(Job(hosts_->both(), {"--network", "ib7", "-n", "2", "true"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(
      result.err,
      HasSubstr("no address in --network ib7; there is: " + hosts_->Address("1") + " (eth0)"));
}

// The launchers are scripts with the names of a user's: ssh gives its words to a shell, srun does
// not, and starts agents on all hosts, which find out by which of this host's addresses they reach
// it.
TEST_F(HostsTest, ReachesHostsBySshAndSrun) {
  const std::string folder = testing::TempDir() + "launchers";
  fs::create_directory(folder);
  WriteScript(folder + "/ssh",
              "test \"$1 $2 $3\" = '-x -o BatchMode=yes' || exit 99\nshift 3\n"
              "echo Welcome to $1\nhost=$1\nshift\nexec " +
                  hosts_->launcher() + " $host /bin/sh -c \"exec $*\"\n");
  WriteScript(folder + "/srun",
              "for word; do case $word in\n"
              "  --nodelist=*) list=${word#*=} ;;\n"
              "  --*) ;;\n"
              "  *) break ;;\n"
              "esac; shift; done\n"
              "stem=${list%%\\[*}; range=${list#*\\[}; range=${range%\\]}\n"
              "for number in $(seq ${range%-*} ${range#*-}); do\n"
              "  " +
                  hosts_->launcher() +
                  " $stem$number env SLURMD_NODENAME=$stem$number \"$@\" &\ndone\nwait\n");
  for (const char* launcher : {"ssh", "srun"}) {
    EXPECT_THAT(
        SortedLines(RunWell({"/usr/bin/env", "PATH=" + folder + ":/usr/bin:/bin", kFerryrun,
                             "--private", "--ferryd", Ferryd(), "--launcher", launcher, "-hosts",
                             hosts_->both(), "-n", "2", "--no-label", "examples/hello/hello"})),
        ElementsAre("rank 0 of 2: rank 1 says hello", "rank 1 of 2: rank 0 says hello"));
  }
}

// A daemon on each host, with `flags`, and a launcher that finds them, whose agents and ranks are
// those of the user who launches, or of `user`.
class RunningDaemons {
 public:
  RunningDaemons(const Hosts& hosts, const std::string& ferryd, const Words& flags = {},
                 const std::string& user = "") {
    fs::permissions(folder_.path(), fs::perms(0755));
    RunWell({"tools/ferryctl/ferryctl", "certs", folder_ / "tls", "--node",
             "one," + hosts.Address("1"), "--node", "two," + hosts.Address("2")});
    for (const auto& [number, name] : {std::pair{"1", "one"}, {"2", "two"}}) {
      const std::string tls = folder_ / "tls/";
      daemons_.push_back(StartDaemon(
          Joined(
              {hosts.launcher(), hosts.Address(number), ferryd, "--node_name=" + std::string(name),
               "--control_address=" + hosts.Address(number),
               "--fabric_address=" + hosts.Address(number), "--tls_ca_file=" + tls + "ca.pem",
               "--tls_cert_file=" + tls + name + ".pem", "--tls_key_file=" + tls + name + ".key"},
              flags),
          folder_ / number));
    }
    const std::string become =
        user.empty() ? "" : "setpriv --reuid=" + user + " --regid=" + user + " --clear-groups ";
    WriteScript(launcher(), "export FERRY_RUN_DIRECTORY=" + folder_.path() +
                                "/${1##*.}\nhost=$1\nshift\nexec " + hosts.launcher() + " $host " +
                                become + "\"$@\"\n");
  }
  std::string launcher() const { return folder_ / "launcher"; }
  std::string RunDirectory(const std::string& number) const { return folder_ / number; }
  void Stop() {
    for (const auto& daemon : daemons_) {
      daemon->Signal(SIGTERM);
      EXPECT_EQ(daemon->Wait().exit_code, 0);
    }
  }

 private:
  const TempDirectory folder_;
  std::vector<std::unique_ptr<Command>> daemons_;
};

// Running daemons are used if every host has one that the others reach.
TEST_F(HostsTest, UsesDaemonsThatRun) {
  RunningDaemons daemons(*hosts_, Ferryd());
  EXPECT_THAT(SortedLines(RunWell({kFerryrun, "--rsh", daemons.launcher(), "-hosts", hosts_->both(),
                                   "-n", "2", "--no-label", "sh", "-c",
                                   "echo $FERRY_RUN_DIRECTORY; exec examples/hello/hello"})),
              ElementsAre(daemons.RunDirectory("1"), daemons.RunDirectory("2"),
                          "rank 0 of 2: rank 1 says hello", "rank 1 of 2: rank 0 says hello"));
  daemons.Stop();
}

// Daemons of root's, which have a worker process for these ranks.
TEST_F(HostsTest, RanksOfAnotherUserHaveDirectLinks) {
  const TempDirectory bin;
  fs::permissions(bin.path(), fs::perms(0755));
  for (const char* file :
       {"daemon/ferryd", "daemon/ferry-worker", kFerryrun, "tests/e2e/ranks/switching",
        "client/libferry.so.0", "client/direct/libferry_direct.so"}) {
    fs::copy_file(file, bin / fs::path(file).filename());
  }
  RunningDaemons daemons(*hosts_, bin / "ferryd",
                         {"--direct_link_messages=3", "--direct_link_idle_ms=5"}, "1234567");
  const std::string out =
      RunWell({bin / "ferryrun", "--rsh", daemons.launcher(), "-hosts", hosts_->both(), "-n", "4",
               "--map-by", "node", "--no-label", bin / "switching", "40", "6", "25"},
              {"LD_LIBRARY_PATH=" + bin.path()}, 120);
  EXPECT_THAT(out, testing::ContainsRegex("link_messages_sent: [1-9]"));
  EXPECT_THAT(out, HasSubstr("link_errors: 0\n"));
  daemons.Stop();
}

}  // namespace
}  // namespace ferry::e2e

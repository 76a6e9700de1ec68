// A daemon that serves all users of a node, ranks that see the node through namespaces of their
// own, and jobs that have worker processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/unique_fd.h"
#include "daemon/sockets/packet_socket.h"
#include "tests/e2e/command.h"
#include "tests/support/slice.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kFerryd[] = "daemon/ferryd";
constexpr char kPointToPoint[] = "tests/e2e/ranks/point_to_point";
constexpr char kAllPromisesKept[] = "point_to_point: ok\n";
constexpr char kAnn[] = "1234567";
constexpr char kBob[] = "7654321";
constexpr char kCid[] = "3456789";
// Of one test each, which looks at all that is theirs in /tmp.
constexpr char kCarol[] = "3456789";
constexpr char kDora[] = "2345678";

// ---- Namespaces ----

// "" or why ranks cannot be put into such namespaces here.
std::string WhyNot(const std::string& unshare) {
  const CommandResult result = RunCommand({"/bin/sh", "-c", unshare + " true"});
  return result.exit_code == 0 ? "" : unshare + " does not work here: " + result.err;
}

// Runs point_to_point over a private daemon, each rank by `script`, which gets it as `$0`.
void ExpectConformance(const std::string& ranks, const std::string& script) {
  EXPECT_EQ(RunWell(PrivateJob({"-n", ranks}, {"/bin/sh", "-c", script, kPointToPoint})),
            kAllPromisesKept);
}

class NamespaceTest : public testing::TestWithParam<const char*> {};

TEST_P(NamespaceTest, RanksInTheirOwnKeepThePromises) {
  if (const std::string why = WhyNot(GetParam()); !why.empty()) {
    GTEST_SKIP() << why;
  }
  ExpectConformance("3", std::string("exec ") + GetParam() + " \"$0\"");
}

TEST_P(NamespaceTest, RanksInTheirOwnAndRanksOutsideMeet) {
  if (const std::string why = WhyNot(GetParam()); !why.empty()) {
    GTEST_SKIP() << why;
  }
  ExpectConformance("4", std::string("test $((FERRY_RANK % 2)) = 0 && exec \"$0\"; exec ") +
                             GetParam() + " \"$0\"");
}

// A network namespace: abstract sockets would not be found from there.
INSTANTIATE_TEST_SUITE_P(Unshare, NamespaceTest,
                         testing::ValuesIn(tests::Slice<const char*>(
                             {"unshare -U -r -p -f --mount-proc", "unshare -U -r -n"},
                             {"unshare -U -r -p -f", "unshare -U -r"})));

// ---- Users ----

// Programs that every user can read, and a daemon of root's.
class UsersTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root, to become several users";
    }
    if (const std::string why = WhyNot(Setpriv(kAnn)); !why.empty()) {
      GTEST_SKIP() << why;
    }
    fs::permissions(directory_.path(), fs::perms(0755));
    for (const char* file : {kFerryd, "daemon/ferry-worker", kFerryrun, "tools/ferryctl/ferryctl",
                             kPointToPoint, "examples/hello/hello", "client/libferry.so.0"}) {
      fs::copy_file(file, Path(fs::path(file).filename()));
    }
  }
  void TearDown() override {
    if (daemon_ != nullptr) {
      daemon_->Signal(SIGTERM);
      EXPECT_EQ(daemon_->WaitCleanly().exit_code, 0);
      EXPECT_FALSE(fs::exists(Path("run")));
    }
  }

  std::string Path(const std::string& name) const { return directory_ / name; }
  static std::string Setpriv(const std::string& uid) {
    return "setpriv --reuid=" + uid + " --regid=" + uid + " --clear-groups";
  }
  void StartDaemon(const Words& flags = {}, const Words& launcher = {}) {
    daemon_ = e2e::StartDaemon(Joined(Joined(launcher, {Path("ferryd")}), flags), Path("run"));
  }
  // A shell command of that user, with the programs in its path.
  std::unique_ptr<Command> As(const std::string& uid, const std::string& line) {
    return std::make_unique<Command>(
        Words{"/bin/sh", "-c", "cd / && exec " + Setpriv(uid) + " sh -c 'exec " + line + "'"},
        Words{"FERRY_RUN_DIRECTORY=" + Path("run"), "LD_LIBRARY_PATH=" + directory_.path(),
              "BIN=" + directory_.path()});
  }
  CommandResult RunAs(const std::string& uid, const std::string& line) {
    return As(uid, line)->Wait();
  }
  void ExpectSaid(const std::string& words, const CommandResult& result) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, words);
  }

  const TempDirectory directory_;
  std::unique_ptr<Command> daemon_;
};

TEST_F(UsersTest, AnOrdinaryUserRunsAJobOnRootsDaemon) {
  StartDaemon();
  ExpectSaid(kAllPromisesKept, RunAs(kAnn, "$BIN/ferryrun --no-label -n 4 $BIN/point_to_point"));
}

// The daemon does not touch another user's device memory; a process of that user does, for it.
TEST_F(UsersTest, AWorkerOfTheUserImportsHisDeviceMemory) {
  constexpr char kDevice[] = "tests/e2e/ranks/device";
  constexpr char kCuda[] = "tests/fixtures/cuda/libcuda_13.so";
  for (const char* file : {kDevice, kCuda}) {
    fs::copy_file(file, Path(fs::path(file).filename()));
  }
  const std::string library = Path("libcuda_13.so");
  StartDaemon({"--gpu_backend=cuda", "--cuda_library=" + library});
  for (const char* program : {"sizes", "windows"}) {
    ExpectSaid("device: ok\n",
               RunAs(kAnn, "env FERRY_GPU_BACKEND=cuda FERRY_CUDA_LIBRARY=" + library +
                               " $BIN/ferryrun --no-label -n 3 $BIN/device " + program));
  }
  daemon_->Signal(SIGTERM);
  EXPECT_THAT(std::exchange(daemon_, nullptr)->Wait().err,
              Not(HasSubstr("stages its device memory")));
}

TEST_F(UsersTest, SoDoesOneWhoseRanksHaveNamespacesOfTheirOwn) {
  if (const std::string why = WhyNot(Setpriv(kAnn) + " unshare -U -r -p -f --mount-proc");
      !why.empty()) {
    GTEST_SKIP() << why;
  }
  StartDaemon();
  const CommandResult result = RunAs(
      kAnn, "$BIN/ferryrun --no-label -n 2 unshare -U -r -p -f --mount-proc $BIN/point_to_point");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "point_to_point: ok\n");
}

TEST_F(UsersTest, EachSeesHisOwnJobsAndTheAdministratorAll) {
  StartDaemon();
  const auto ann = As(kAnn, "$BIN/ferryrun -n 1 sh -c \"echo here; exec sleep 100\"");
  const auto bob = As(kBob, "$BIN/ferryrun -n 1 sh -c \"echo here; exec sleep 100\"");
  ASSERT_TRUE(ann->WaitForOutput("here"));
  ASSERT_TRUE(bob->WaitForOutput("here"));
  const std::string seen = RunAs(kAnn, "$BIN/ferryctl status").out;
  EXPECT_THAT(seen, AllOf(HasSubstr(kAnn), Not(HasSubstr(kBob))));
  const std::string all = RunAs("0", "$BIN/ferryctl status").out;
  EXPECT_THAT(all, AllOf(HasSubstr(kAnn), HasSubstr(kBob), HasSubstr("1 of 256")));
  for (const auto& command : {&ann, &bob}) {
    (*command)->Signal(SIGTERM);
    (*command)->Wait();
  }
}

// Two users' jobs, each with a rank that waits, under one daemon.
class TwoUsersTest : public UsersTest {
 protected:
  struct User {
    std::unique_ptr<Command> command;
    std::string job;
    Words pids;
  };

  void SetUp() override {
    UsersTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    fs::copy_file("tests/e2e/ranks/waits", Path("waits"));
    StartDaemon();
    ann_ = StartJob(kAnn);
    bob_ = StartJob(kBob);
  }
  void TearDown() override {
    for (User* user : {&ann_, &bob_}) {
      if (user->command != nullptr) {
        user->command->Signal(SIGTERM);
        user->command->Wait();
      }
    }
    UsersTest::TearDown();
  }

  User StartJob(const std::string& uid) {
    User user;
    user.command = As(uid, "$BIN/ferryrun --no-label -n 2 $BIN/waits unmatched");
    EXPECT_TRUE(user.command->WaitForOutput("rank 0: under way"));
    EXPECT_TRUE(user.command->WaitForOutput("rank 1: under way"));
    const json sessions = json::parse(RunAs("0", "$BIN/ferryctl sessions --json").out);
    for (const json& session : sessions["sessions"]) {
      if (std::to_string(session["uid"].get<unsigned>()) == uid) {
        user.job = session["job_id"];
        user.pids.push_back(std::to_string(session["pid"].get<int>()));
      }
    }
    EXPECT_EQ(user.pids.size(), 2U);
    return user;
  }
  // Nothing that Ann is told belongs to Bob: neither his uid, his job, nor his processes.
  void ExpectNothingOfBob(const std::string& question, const CommandResult& told) const {
    EXPECT_THAT(told.out + told.err, AllOf(Not(HasSubstr(kBob)), Not(HasSubstr(bob_.job))))
        << question;
    const json answer = json::parse(told.out, nullptr, false);
    for (const std::string& pid : bob_.pids) {
      EXPECT_FALSE(answer.is_discarded() || HasPid(answer, pid)) << question << told.out;
    }
  }
  static bool HasPid(const json& value, const std::string& pid) {
    return (value.is_object() && value.contains("pid") && value["pid"].dump() == pid) ||
           (value.is_structured() && std::any_of(value.begin(), value.end(), [&](const json& item) {
              return HasPid(item, pid);
            }));
  }

  User ann_;
  User bob_;
};

TEST_F(TwoUsersTest, EachLooksAtHisOwnJobs) {
  for (const char* question : {"status", "sessions", "counters", "why", "top --once"}) {
    const CommandResult told = RunAs(kAnn, std::string("$BIN/ferryctl ") + question + " --json");
    EXPECT_EQ(told.exit_code, 0) << question << told.err;
    EXPECT_THAT(told.out, HasSubstr(ann_.job)) << question;
    ExpectNothingOfBob(question, told);
    const CommandResult all = RunAs("0", std::string("$BIN/ferryctl ") + question + " --json");
    EXPECT_THAT(all.out, AllOf(HasSubstr(ann_.job), HasSubstr(bob_.job))) << question;
  }
  const CommandResult why = RunAs(kAnn, "$BIN/ferryctl why " + ann_.job + ".1");
  EXPECT_THAT(why.out, HasSubstr("rank 1 waits for rank 0"));
  const CommandResult nics = RunAs(kAnn, "$BIN/ferryctl nics --json");
  EXPECT_EQ(nics.exit_code, 0) << nics.err;
  EXPECT_FALSE(json::parse(nics.out)["nics"].empty());
}

// Ann learns nothing of Bob's jobs even if she asks for them by name.
TEST_F(TwoUsersTest, AnothersJobIsAsIfItWereNotThere) {
  for (const std::string& question : {"why " + bob_.job, "why " + bob_.job + ".0",
                                      "counters " + bob_.job + ".0", "trace " + bob_.job}) {
    const std::string unknown =
        std::string(question).replace(question.find(bob_.job), bob_.job.size(), "nosuchjob");
    const CommandResult told = RunAs(kAnn, "$BIN/ferryctl " + question);
    const CommandResult of_unknown = RunAs(kAnn, "$BIN/ferryctl " + unknown);
    EXPECT_NE(told.exit_code, 0) << told.out;
    EXPECT_EQ(told.exit_code, of_unknown.exit_code);
    EXPECT_EQ(told.out, "");
    std::string words = told.err;
    if (const size_t name = words.find(bob_.job); name != std::string::npos) {
      words.replace(name, bob_.job.size(), "nosuchjob");
    }
    EXPECT_EQ(words, of_unknown.err);
  }
}

TEST_F(TwoUsersTest, NoProblemIsFoundInADaemonOfAllUsers) {
  const json report = json::parse(RunAs(kAnn, "$BIN/ferryctl doctor --json").out, nullptr, false);
  ASSERT_TRUE(report.is_object());
  int found = 0;
  for (const json& finding : report["findings"]) {
    const std::string name = finding["name"];
    if (name == "daemon" || name == "run directory" || name == "versions" || name == "devices") {
      ++found;
      EXPECT_EQ(finding["verdict"], "ok") << finding.dump();
    }
    if (name == "daemon") {
      EXPECT_THAT(finding["found"].get<std::string>(), HasSubstr(", serving, provider"));
    }
  }
  EXPECT_EQ(found, 4);
}

TEST_F(UsersTest, AdministrationIsRefusedToOrdinaryUsersInAClearSentence) {
  StartDaemon();
  const CommandResult result = RunAs(kAnn, "$BIN/ferryctl shutdown");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "ferryctl: uid 1234567 may not use " + Path("run/admin.sock") +
                            ", which is open only to root and to the user that this ferryd runs "
                            "as; `ferryctl status` shows what is your own\n");
}

TEST_F(UsersTest, AKilledLauncherLeavesNoJob) {
  StartDaemon();
  const auto ann = As(kAnn, "$BIN/ferryrun -n 2 sh -c \"echo here; exec sleep 100\"");
  ASSERT_TRUE(ann->WaitForOutput("here"));
  ASSERT_THAT(RunAs("0", "$BIN/ferryctl status").out, HasSubstr(kAnn));
  ann->Signal(SIGKILL);
  ann->Wait();
  EXPECT_TRUE(Eventually(
      [&] { return RunAs("0", "$BIN/ferryctl status").out.find(kAnn) == std::string::npos; }));
}

TEST_F(UsersTest, AQuotaBoundsOneUserAndNotAnother) {
  StartDaemon({"--quota_sessions=2", "--quota_pinned_bytes=300000000"});
  const CommandResult many = RunAs(kAnn, "$BIN/ferryrun -n 3 $BIN/hello");
  EXPECT_NE(many.exit_code, 0);
  EXPECT_THAT(many.err,
              HasSubstr("uid 1234567 has reached quota_sessions: it uses 2 of 2 sessions"));
  const CommandResult few = RunAs(kBob, "$BIN/ferryrun --no-label -n 2 $BIN/hello");
  EXPECT_EQ(few.exit_code, 0) << few.err;
  EXPECT_THAT(RunAs("0", "$BIN/ferryctl status --json").out, HasSubstr("\"users\": []"));
}

// Two who mean it leave a third one room, unless the administrator says otherwise.
TEST_F(UsersTest, TwoUsersWhoTakeAllTheyGetLeaveRoomForAThird) {
  StartDaemon({"--max_local_ranks=8"});
  fs::copy_file("tests/e2e/ranks/waits", Path("waits"));
  const auto ann = As(kAnn, "$BIN/ferryrun -n 6 $BIN/waits unmatched");
  ASSERT_TRUE(ann->WaitForOutput("under way"));
  const CommandResult both = RunAs(kBob, "$BIN/ferryrun -n 2 $BIN/hello");
  EXPECT_NE(both.exit_code, 0);
  EXPECT_THAT(both.err, HasSubstr("uid 7654321 has reached quota_sessions: it uses 1 of 1 sessions "
                                  "(three quarters of what other users leave of 8)"));
  const auto bob = As(kBob, "$BIN/ferryrun -n 1 $BIN/waits alone");
  ASSERT_TRUE(bob->WaitForOutput("under way"));
  EXPECT_EQ(RunAs(kCid, "$BIN/ferryrun -n 1 $BIN/hello").exit_code, 0);
  ann->Signal(SIGTERM);
  bob->Signal(SIGTERM);
  ann->Wait();
  bob->Wait();
}

TEST_F(UsersTest, NoUserTakesAllPlaces) {
  StartDaemon({"--max_local_ranks=4"});
  const CommandResult many = RunAs(kAnn, "$BIN/ferryrun -n 4 $BIN/hello");
  EXPECT_NE(many.exit_code, 0);
  EXPECT_THAT(many.err,
              HasSubstr("uid 1234567 has reached quota_sessions: it uses 3 of 3 sessions"));
  fs::copy_file("tests/e2e/ranks/waits", Path("waits"));
  const auto ann = As(kAnn, "$BIN/ferryrun -n 3 $BIN/waits unmatched");
  ASSERT_TRUE(ann->WaitForOutput("under way"));
  EXPECT_EQ(RunAs(kBob, "$BIN/ferryrun -n 1 $BIN/hello").exit_code, 0);
  ann->Signal(SIGTERM);
  ann->Wait();
}

TEST_F(UsersTest, OneUserMayHaveAllPlacesIfTheAdministratorSaysSo) {
  StartDaemon({"--max_local_ranks=4", "--quota_sessions=4"});
  EXPECT_EQ(RunAs(kAnn, "$BIN/ferryrun -n 4 $BIN/hello").exit_code, 0);
}

// ---- Those who pass for a daemon

// Sockets of Bob's where Ann's programs may look for a daemon.
class Trap {
 public:
  explicit Trap(const std::string& directory) : directory_(directory) {
    const uid_t bob = static_cast<uid_t>(std::stoul(kBob));
    EXPECT_EQ(mkdir(directory.c_str(), 0755), 0) << directory;
    EXPECT_EQ(chmod(directory.c_str(), 0755), 0);
    EXPECT_EQ(chown(directory.c_str(), bob, bob), 0);
    EXPECT_EQ(seteuid(bob), 0);
    for (const auto& [name, type] :
         {std::pair("attach.sock", SOCK_SEQPACKET), std::pair("control.sock", SOCK_STREAM),
          std::pair("admin.sock", SOCK_STREAM)}) {
      StatusOr<UniqueFd> listener = daemon::ListenUnix(directory + "/" + name, type, 0666);
      EXPECT_TRUE(listener.ok()) << listener.status().message();
      listeners_.push_back(std::move(*listener));
    }
    EXPECT_EQ(seteuid(0), 0);
  }
  ~Trap() { fs::remove_all(directory_); }
  Trap(const Trap&) = delete;
  Trap& operator=(const Trap&) = delete;

  bool HasCaught() const {
    return std::any_of(listeners_.begin(), listeners_.end(), [](const UniqueFd& listener) {
      pollfd somebody{listener.get(), POLLIN, 0};
      return poll(&somebody, 1, 0) > 0;
    });
  }

 private:
  const std::string directory_;
  std::vector<UniqueFd> listeners_;
};

constexpr char kBare[] = "env -u FERRY_RUN_DIRECTORY -u XDG_RUNTIME_DIR -u TMPDIR ";

TEST_F(UsersTest, NamesThatAnybodyCanMakeCatchNobody) {
  const std::string base = "/tmp/ferry-" + std::string(kDora);
  const Trap plain(base);
  const Trap unmade(base + "-XXXXXX");
  const Trap made(base + "-abcdef");
  const Trap of_a_job("/tmp/ferryrun-" + std::string(kDora) + "-abcdef");
  ExpectSaid(
      kAllPromisesKept,
      RunAs(kDora, kBare + std::string("$BIN/ferryrun --no-label -n 2 $BIN/point_to_point")));
  EXPECT_THAT(RunAs(kDora, kBare + std::string("$BIN/ferryctl")).out,
              HasSubstr("no ferryd serves you here"));
  for (const Trap* trap : {&plain, &unmade, &made, &of_a_job}) {
    EXPECT_FALSE(trap->HasCaught());
  }
}

TEST_F(UsersTest, NobodySpeaksToAServerOfAThirdUser) {
  const Trap trap(Path("trap"));
  const std::string there = "env FERRY_RUN_DIRECTORY=" + Path("trap") + " ";
  const std::string whose = Path("trap") + " is of uid 7654321, not root's or your own";
  for (const char* command :
       {"$BIN/ferryrun -n 1 $BIN/hello", "$BIN/ferryctl status", "$BIN/ferryctl shutdown",
        "env FERRY_JOB_ID=x FERRY_JOB_SECRET=0123456789abcdef FERRY_RANK=0 FERRY_SIZE=1 "
        "$BIN/hello"}) {
    for (const char* user : {kAnn, "0"}) {
      const CommandResult result = RunAs(user, there + command);
      EXPECT_NE(result.exit_code, 0) << command;
      EXPECT_THAT(result.err, HasSubstr(whose)) << command;
    }
  }
  EXPECT_FALSE(trap.HasCaught());
}

// As a site may have it, for which one user serves all.
TEST_F(UsersTest, ADaemonThatRunsAsAUserOfItsOwnIsNamedByTheSite) {
  fs::create_directory(Path("run"));
  fs::permissions(Path("run"), fs::perms(0755));
  ASSERT_EQ(chown(Path("run").c_str(), 7654321, 7654321), 0);
  const auto bobs = e2e::StartDaemon(
      {"/bin/sh", "-c", "exec " + Setpriv(kBob) + " " + Path("ferryd") + " --users=all \"$@\"",
       "sh"},
      Path("run"));
  const CommandResult stranger = RunAs(kAnn, "$BIN/ferryctl status");
  EXPECT_THAT(stranger.err, HasSubstr("set FERRY_DAEMON_USER=7654321"));
  const CommandResult known = RunAs(kAnn, "$BIN/ferryctl --daemon_user=7654321 status");
  EXPECT_EQ(known.exit_code, 0) << known.err;
  bobs->Signal(SIGTERM);
  bobs->Wait();
}

// A daemon that a user starts where no session manager has made a place is found by its owner.
TEST_F(UsersTest, AUsersOwnDaemonIsFoundByItsOwner) {
  const auto ferryd = As(kCarol, kBare + std::string("$BIN/ferryd"));
  ASSERT_TRUE(ferryd->WaitForError("serves /tmp/ferry-3456789-")) << ferryd->Wait().err;
  const std::string seen = RunAs(kCarol, kBare + std::string("$BIN/ferryctl status")).out;
  EXPECT_THAT(seen, AllOf(HasSubstr("run directory /tmp/ferry-3456789-"), Not(HasSubstr("XXXX"))));
  EXPECT_EQ(RunAs(kCarol, kBare + std::string("$BIN/ferryrun -n 1 $BIN/hello")).exit_code, 0);
  ferryd->Signal(SIGTERM);
  EXPECT_EQ(ferryd->Wait().exit_code, 0);
  for (const auto& entry : fs::directory_iterator("/tmp")) {
    EXPECT_THAT(entry.path().string(), Not(HasSubstr("ferry-3456789-")));
  }
}

TEST_F(UsersTest, ADaemonForItsOwnUserIsClosedToOthers) {
  StartDaemon({"--users=own"});
  const CommandResult result = RunAs(kAnn, "$BIN/ferryrun -n 1 true");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("uid 1234567 may not use " + Path("run/control.sock")),
                                HasSubstr("--private starts a daemon for this job alone")));
}

// ---- Worker processes

class WorkerPointToPointTest : public testing::TestWithParam<Words> {};

TEST_P(WorkerPointToPointTest, KeepsItsPromises) {
  EXPECT_EQ(RunWell(WithoutCapabilities(PrivateJob(GetParam(), {kPointToPoint})),
                    {"FERRY_WORKER_MODE=process"}),
            kAllPromisesKept);
}

INSTANTIATE_TEST_SUITE_P(Placements, WorkerPointToPointTest,
                         testing::Values(Words{"-n", "2"}, Words{"-n", "4", "--nodes", "2"}));

// A system ferryd: root's, with the capabilities of config/ferryd.service. Its launcher and ranks
// are an ordinary user's, whose group has another number.
using SystemDaemonTest = UsersTest;

TEST_F(SystemDaemonTest, KeepsItsPromisesToAnotherUsersRanks) {
  StartDaemon({},
              {"/usr/bin/setpriv", "--bounding-set=-all,+setuid,+setgid,+kill", "--inh-caps=-all"});
  EXPECT_EQ(RunWell({"/usr/bin/setpriv", "--reuid=64321", "--regid=64322", "--clear-groups",
                     Path("ferryrun"), "--run_directory=" + Path("run"), "--no-label", "-n", "3",
                     Path("point_to_point")},
                    {"LD_LIBRARY_PATH=" + directory_.path()}),
            kAllPromisesKept);
}

}  // namespace
}  // namespace ferry::e2e

// ferryctl as its user meets it, with a stand-in for ferryd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "common/version.h"
#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// "(layout 1, protocol 3)", of this program or of one whose protocol is `newer`.
std::string Versions(uint32_t newer = 0) {
  return "(layout " + std::to_string(kLayoutVersion) + ", protocol " +
         std::to_string(kProtocolVersion + newer) + ")";
}

constexpr char kFerryctl[] = "tools/ferryctl/ferryctl";
constexpr char kFakeFerryd[] = "tests/tools/fake_ferryd";

class FerryctlTest : public testing::Test {
 protected:
  FerryctlTest() { fs::create_directory(run_directory()); }

  std::string run_directory() const { return directory_ / "run"; }
  CommandResult Ferryctl(const Words& arguments) {
    return RunCommand(Joined({kFerryctl, "--run_directory=" + run_directory()}, arguments));
  }
  // Starts the stand-in and waits until it serves.
  std::unique_ptr<Command> StartDaemon(const Words& variables = {}) {
    auto daemon = std::make_unique<Command>(
        Words{kFakeFerryd}, Joined(variables, {"FERRY_RUN_DIRECTORY=" + run_directory()}));
    EXPECT_TRUE(Eventually([&] { return fs::exists(run_directory() + "/ferryd.json"); }));
    return daemon;
  }

 private:
  const TempDirectory directory_;
};

TEST_F(FerryctlTest, SaysWhichDirectoryHasNoDaemon) {
  fs::remove_all(run_directory());
  const CommandResult missing = Ferryctl({"status"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, StartsWith("ferryctl: no ferryd serves " + run_directory() +
                                      " (the directory does not exist): start one with `ferryd "
                                      "--run_directory=" +
                                      run_directory() + "`"));
  fs::create_directory(run_directory());
  EXPECT_THAT(Ferryctl({"status"}).err, HasSubstr("(the directory holds no admin.sock)"));
}

TEST_F(FerryctlTest, RecognisesTheSocketOfADeadDaemon) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (run_directory() + "/admin.sock").copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(fd);
  const CommandResult result = Ferryctl({"status"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("(a dead ferryd left its socket there)"));
}

TEST_F(FerryctlTest, RefusesADaemonOfAnotherVersionAndNamesBoth) {
  const auto daemon = StartDaemon({"FAKE_FERRYD=old"});
  const CommandResult result = Ferryctl({"sessions"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("has another version " + Versions(1)),
                                HasSubstr("than this program " + Versions())));
}

TEST_F(FerryctlTest, ShowsAStoppedDaemonAsSuch) {
  const auto daemon = StartDaemon();
  daemon->Signal(SIGSTOP);
  const CommandResult result = Ferryctl({"status"});
  daemon->Signal(SIGCONT);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("did not answer within 3000 ms: is it stopped?"));
}

TEST_F(FerryctlTest, ShowsTablesAndJson) {
  const auto daemon = StartDaemon();
  const CommandResult status = Ferryctl({"status"});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_THAT(status.out, HasSubstr(": serving, pid " + std::to_string(daemon->pid())));
  EXPECT_THAT(Ferryctl({"sessions"}).out, HasSubstr("\nabc.3 "));
  const auto json = nlohmann::json::parse(Ferryctl({"--json", "sessions"}).out, nullptr, false);
  EXPECT_EQ(json["sessions"][0]["bytes_sent"], 5'000'000'000);
  EXPECT_EQ(nlohmann::json::parse(Ferryctl({"sessions", "--json"}).out, nullptr, false), json);
}

TEST_F(FerryctlTest, HidesCountersThatAreZeroFromPeople) {
  const auto daemon = StartDaemon();
  EXPECT_THAT(Ferryctl({"counters"}).out, AllOf(HasSubstr("busy"), Not(HasSubstr("idle"))));
  EXPECT_THAT(Ferryctl({"counters", "--all"}).out, AllOf(HasSubstr("busy"), HasSubstr("idle")));
  EXPECT_THAT(Ferryctl({"counters", "--json"}).out, HasSubstr("idle"));
}

TEST_F(FerryctlTest, TellsTheCountersAndLinksOfManyRanksInGroups) {
  const auto daemon = StartDaemon({"FAKE_FERRYD=ranks"});
  std::string text;
  const auto lines = [&](const Words& words) {
    text = Ferryctl(words).out;
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_LT(lines({"counters"}), 10) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("heat  sends      100  5050   100       99"),
                          HasSubstr("(--all lists each rank)\n")));
  EXPECT_GT(lines({"counters", "--all"}), 100);
  EXPECT_THAT(text, HasSubstr("job heat rank 42 "));
  EXPECT_GT(lines({"counters", "--json"}), 100);
  EXPECT_THAT(text, HasSubstr("job 0badcafe rank 42"));
  EXPECT_LT(lines({"links"}), 10) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("heat  up      100 "), HasSubstr("0-99")));
  EXPECT_GT(lines({"links", "--all"}), 100);
  EXPECT_THAT(text, HasSubstr("\nheat.42 "));
  EXPECT_GT(lines({"links", "--json"}), 100);
}

// As those of a node with very many ranks.
TEST_F(FerryctlTest, TakesLongAnswers) {
  const auto daemon = StartDaemon({"FAKE_FERRYD=large"});
  const CommandResult result = Ferryctl({"counters", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_EQ(json["counters"].size(), 8002U);
}

TEST_F(FerryctlTest, ListsTheDaemonThatIsNamed) {
  EXPECT_EQ(Ferryctl({}).exit_code, 1) << "there is none";
  const auto daemon = StartDaemon();
  const CommandResult list = Ferryctl({});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, AllOf(StartsWith("RUN DIRECTORY"), HasSubstr(run_directory()),
                              HasSubstr(" " + std::to_string(daemon->pid()) + " ")));
  const auto json = nlohmann::json::parse(Ferryctl({"--json"}).out, nullptr, false);
  EXPECT_EQ(json["daemons"][0]["pid"], daemon->pid());
  EXPECT_EQ(json["daemons"][0]["state"], "serving");
}

TEST_F(FerryctlTest, ShowsOfOneJobOnly) {
  const auto daemon = StartDaemon();
  EXPECT_THAT(Ferryctl({"-j", "abc", "sessions"}).err, HasSubstr("has a job abc of yours"));
  EXPECT_EQ(Ferryctl({"-j", "abc"}).exit_code, 1);
}

// Programs that follow each other are jobs of their own: the launch's name means the newest.
TEST_F(FerryctlTest, NamesTheProgramsOfALaunch) {
  const auto daemon = StartDaemon({"FAKE_FERRYD=programs"});
  const auto asked = [&](const std::string& name) { return Ferryctl({"why", name}).err; };
  EXPECT_EQ(asked("run.5"), "ferryctl: no rank 5 in job run#10\n");
  EXPECT_EQ(asked("run#2.5"), "ferryctl: no rank 5 in job run#2\n");
  EXPECT_EQ(asked("run#1.5"), "ferryctl: no rank 5 in job run\n");
  EXPECT_THAT(asked("run#3.5"), HasSubstr("there is no job run#3 on this daemon"));
  EXPECT_THAT(asked("run"), HasSubstr("in job run#10\n"));
  EXPECT_THAT(asked("run#2"), HasSubstr("in job run#2\n"));

  EXPECT_THAT(Ferryctl({"-j", "run", "sessions"}).out, HasSubstr("\nrun#10.0 "));
  EXPECT_THAT(Ferryctl({"-j", "run#10", "sessions"}).out, HasSubstr("\nrun#10.0 "));
  EXPECT_THAT(Ferryctl({"-j", "run#2", "sessions"}).out, Not(HasSubstr("run#10")));
  EXPECT_THAT(Ferryctl({"-j", "run", "status"}).out,
              AllOf(HasSubstr("run#10"), Not(HasSubstr("run#2"))));
  EXPECT_THAT(Ferryctl({"-j", "run#2", "status"}).out,
              AllOf(HasSubstr("run#2"), Not(HasSubstr("run#10"))));
  EXPECT_THAT(Ferryctl({"-j", "run#3", "status"}).err, HasSubstr("has a job run#3 of yours"));
}

TEST_F(FerryctlTest, PassesOnWhatTheDaemonSays) {
  const auto daemon = StartDaemon({"FAKE_FERRYD=programs"});
  const CommandResult result = Ferryctl({"why", "run#2.5"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "ferryctl: no rank 5 in job run#2\n");
  EXPECT_EQ(Ferryctl({"why", "5"}).err, "ferryctl: no rank 5 in job run#10\n")
      << "of the only launch";
}

TEST_F(FerryctlTest, KnowsARequestThatTheDaemonDoesNot) {
  const auto daemon = StartDaemon();
  EXPECT_THAT(Ferryctl({"drain"}).err, HasSubstr("does not know this request"));
}

TEST_F(FerryctlTest, TellsItsVersionAndWhatShellsMayComplete) {
  EXPECT_EQ(Ferryctl({"--version"}).out, std::string("ferryctl ") + kFerryVersion + "\n");
  const CommandResult bash = Ferryctl({"--completion", "bash"});
  EXPECT_EQ(bash.exit_code, 0) << bash.err;
  EXPECT_THAT(bash.out, AllOf(HasSubstr("complete -o default -F _ferryctl ferryctl\n"),
                              HasSubstr("compgen -W 'status sessions"), HasSubstr("--json")));
  EXPECT_EQ(Ferryctl({"--completion", "csh"}).exit_code, 2);
}

TEST_F(FerryctlTest, NeedsNoNetworkLibrary) {
  const CommandResult libraries = RunCommand({kFerryctl}, {"LD_TRACE_LOADED_OBJECTS=1"});
  EXPECT_THAT(libraries.out, AllOf(HasSubstr("libc.so"), Not(HasSubstr("libfabric"))));
}

TEST_F(FerryctlTest, ReportsMistakesAsSuch) {
  for (const auto& [arguments, message] : std::vector<std::pair<Words, std::string>>{
           {{"statsu"}, "unknown word statsu; did you mean status?"},
           {{"status", "--jsno"}, "unknown word --jsno; did you mean --json?"},
           {{"frobnicate"}, "unknown word frobnicate (ferryctl --help"},
           {{"status", "--now"}, "unknown word --now"},
           {{"config", "--log_level=loud"}, "log_level cannot be \"loud\""}}) {
    const CommandResult result = Ferryctl(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, AllOf(StartsWith("ferryctl: "), HasSubstr(message)));
  }
}

TEST_F(FerryctlTest, ShowsOptionsAndVersionWithoutADaemon) {
  const CommandResult options = Ferryctl({"config", "--spin-pauses=9"});
  EXPECT_EQ(options.exit_code, 0) << options.err;
  EXPECT_THAT(options.out,
              testing::ContainsRegex("\nspin_pauses +9 +pauses +flag --spin_pauses\n"));
  const CommandResult version = Ferryctl({"version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, AllOf(StartsWith("ferryctl "), HasSubstr(Versions()),
                                 HasSubstr("\ndaemon: no ferryd serves ")));
}

TEST_F(FerryctlTest, HasColoursOnATerminalUnlessSomebodyWantsNone) {
  constexpr char kScript[] = "/usr/bin/script";
  if (!fs::exists(kScript)) {
    GTEST_SKIP() << kScript << " is not there: apt-get install bsdutils";
  }
  const std::string line = std::string(kFerryctl) + " config --run_directory=" + run_directory();
  const Words on_terminal = {kScript, "-qec", line, "/dev/null"};
  EXPECT_THAT(RunCommand(on_terminal, {"TERM=xterm"}).out, HasSubstr("\033[1mOPTION"));
  EXPECT_THAT(RunCommand(on_terminal, {"TERM=xterm", "NO_COLOR=1"}).out,
              testing::Not(HasSubstr("\033")));
  EXPECT_THAT(RunCommand({"/bin/sh", "-c", line}, {"TERM=xterm"}).out,
              testing::Not(HasSubstr("\033")));
}

TEST_F(FerryctlTest, DoctorNeedsNoDaemonAndFailsOnProblems) {
  const CommandResult result = Ferryctl({"doctor", "--json"});
  const auto json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.out << result.err;
  EXPECT_GE(json["findings"].size(), 10U);
  const CommandResult broken = Ferryctl({"doctor", "--provider=no-such"});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.out, AllOf(HasSubstr("problem  providers: "), HasSubstr("not no-such"),
                                HasSubstr("\n         -> provider = \"auto\"")));
  EXPECT_THAT(broken.err, HasSubstr("doctor found problems"));
  const CommandResult unknown = Ferryctl({"doctor", "--spin_pauses=many"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.out,
              HasSubstr("problem  options: flag --spin_pauses: spin_pauses cannot be"));
}

}  // namespace
}  // namespace ferry::e2e

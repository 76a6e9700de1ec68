// ferryrun as its user meets it, with shell scripts for ranks and a stand-in for ferryd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/version.h"
#include "tests/e2e/command.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

// "(layout 1, protocol 3)", of this program or of one whose protocol is `newer`.
std::string Versions(uint32_t newer = 0) {
  return "(layout " + std::to_string(kLayoutVersion) + ", protocol " +
         std::to_string(kProtocolVersion + newer) + ")";
}

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kFakeFerryd[] = "tests/tools/fake_ferryd";

// ferryrun FLAGS_AND_PROGRAM, with a private fake daemon.
Words Private(const Words& flags_and_program) {
  return Joined({kFerryrun, "--private", "--ferryd", kFakeFerryd}, flags_and_program);
}

// ferryrun FLAGS sh -c SCRIPT, with labels, too, which tell ranks apart.
Words Script(const Words& flags, const std::string& script) {
  return Private(Joined(Joined({"-l"}, flags), {"sh", "-c", script}));
}

void WriteExecutable(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

struct Mistake {
  Words flags;
  int exit_code;
  std::string message;
};

class FerryrunMistakeTest : public testing::TestWithParam<Mistake> {};

TEST_P(FerryrunMistakeTest, IsNamedBeforeAnythingStarts) {
  const CommandResult result =
      RunCommand(Joined({kFerryrun, "--ferryd", "/nonexistent"}, GetParam().flags));
  EXPECT_EQ(result.exit_code, GetParam().exit_code);
  EXPECT_THAT(result.err, AllOf(StartsWith("ferryrun: "), HasSubstr(GetParam().message)));
  EXPECT_EQ(result.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    All, FerryrunMistakeTest,
    testing::Values(
        Mistake{{"-n", "0", "true"}, 2, "-n 0: a job has at least one rank"},
        Mistake{{"-n", "four", "true"}, 2, "'four' is not a whole number"},
        Mistake{{"-n", "-3", "true"}, 2, "'-3' is not a whole number"},
        Mistake{{"-n"}, 2, "-n needs N after it"},
        Mistake{{"-n", "70000", "true"}, 2, "a job has at most 65536 ranks"},
        Mistake{{"--max_local_ranks=64", "-n", "65", "true"},
                2,
                "puts 65 ranks on one, but a daemon serves at most 64"},
        Mistake{{"-n", "4", "--nodes", "5", "true"}, 2, "--nodes 5 for -n 4"},
        Mistake{{"-n", "4", "--nodes", "0", "true"}, 2, "--nodes 0"},
        Mistake{{"-n", "4"}, 2, "no program to run"},
        Mistake{{"-n", "4", "--lable", "true"}, 2, "unknown flag --lable"},
        Mistake{{"-n", "2", "--bind-to", "rack", "true"},
                2,
                "--bind-to rack: it knows auto, none, core"},
        Mistake{{"-wdir", "/nonexistent", "true"}, 2, "there is no such directory"},
        Mistake{{"-n", "1", "true", ":", "-n", "0", "true"}, 2, "-n 0"},
        Mistake{{"true", ":", "nosuchprogram"}, 127, "cannot run 'nosuchprogram'"},
        Mistake{{"--launcher", "none", "-host", "192.0.2.1", "true"},
                1,
                "192.0.2.1 is another host, and launcher is none"},
        Mistake{{"--launcher", "telnet", "true"}, 2, "launcher cannot be \"telnet\""},
        Mistake{{"--rsh", "/nonexistent/rsh", "-host", "192.0.2.1", "true"},
                1,
                "host 192.0.2.1: cannot run '/nonexistent/rsh': No such file"},
        Mistake{{"--rsh", "false", "-host", "192.0.2.1", "true"},
                1,
                "cannot reach host 192.0.2.1: false exited with code 1"},
        Mistake{{"--rsh", "/bin/echo hello from", "-host", "192.0.2.1", "true"},
                1,
                "/bin/echo exited with code 0; it wrote:\n  hello from 192.0.2.1"},
        Mistake{{"--log_level=loud", "true"}, 2, "log_level cannot be \"loud\""},
        Mistake{{"-n", "2", "nosuchprogram"},
                127,
                "cannot run 'nosuchprogram': No such file or directory (is it in PATH, or did you "
                "mean ./nosuchprogram?)"},
        Mistake{{"./nosuchprogram"}, 127, "cannot run './nosuchprogram': No such file"},
        Mistake{{"/tmp"}, 126, "cannot run '/tmp': Is a directory"},
        Mistake{{"/etc/passwd"}, 126, "is it executable? try chmod +x"},
        Mistake{{"--run_directory=/nonexistent", "true"},
                1,
                "no ferryd serves /nonexistent (the directory does not exist): start one with "
                "`ferryd --run_directory=/nonexistent`"},
        Mistake{{"--private", "true"}, 1, "cannot run '/nonexistent': No such file"}));

TEST(FerryrunTest, SaysWhatMakesAProgramOfASource) {
  const TempDirectory folder;
  for (const char* file : {"hello.c", "hello.cc", "hello.py"}) {
    std::ofstream(folder / file) << "";
  }
  const auto words = [&folder](const std::string& name) {
    const CommandResult result = RunCommand(Private({"-wdir", folder.path(), name}));
    EXPECT_EQ(result.exit_code, 126) << name;
    return result.err;
  };
  EXPECT_EQ(words("hello.c"),
            "ferryrun: cannot run 'hello.c': it is a source file: ferrycc hello.c -o hello makes a "
            "program of it\n");
  EXPECT_THAT(words("./hello.cc"), HasSubstr("ferrycxx ./hello.cc -o ./hello makes"));
  EXPECT_THAT(words("hello.py"), HasSubstr("ferryrun python3 hello.py runs it"));
  EXPECT_EQ(RunCommand(Private({"nosuch.c"})).exit_code, 127);
}

// Hosts that ferryrun has from Slurm are reached by srun only where the user names no launcher.
TEST(FerryrunTest, HostsOfSlurmAreReachedAsTheUserSays) {
  const TempDirectory folder;
  for (const char* launcher : {"ssh", "srun", "other"}) {
    WriteExecutable(folder / launcher, "#!/bin/sh\nexit 7\n");
  }
  const auto reached_by = [&folder](const std::string& file, const Words& variables,
                                    const Words& flags) {
    std::ofstream(folder / "ferryd.toml") << "# Of this test.\n" << file;
    const CommandResult result = RunCommand(
        Joined(Joined({kFerryrun, "--private", "--ferryd", kFakeFerryd}, flags), {"true"}),
        Joined({"PATH=" + folder.path() + ":/usr/bin:/bin", "SLURM_JOB_ID=1",
                "SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=1(x2)",
                "FERRY_CONFIG_FILE=" + (folder / "ferryd.toml")},
               variables));
    EXPECT_EQ(result.exit_code, 1);
    const std::string words = "cannot reach host n1: ";
    const size_t at = result.err.find(words);
    return at == result.err.npos ? result.err
                                 : result.err.substr(at + words.size(), result.err.find(" exited") -
                                                                            at - words.size());
  };
  EXPECT_EQ(reached_by("", {}, {}), "srun");
  EXPECT_EQ(reached_by("launcher = \"ssh\"\n", {}, {}), "ssh");
  EXPECT_EQ(reached_by("", {"FERRY_LAUNCHER=ssh"}, {}), "ssh");
  EXPECT_EQ(reached_by("", {}, {"--launcher", "ssh"}), "ssh");
  EXPECT_EQ(reached_by("rsh = \"other -v\"\n", {}, {}), "other");
}

TEST(FerryrunTest, WarnsOnceOfVariablesThatMeanNothing) {
  const CommandResult result =
      RunCommand(Script({"-n", "2", "-x", "FERRY_EAGER_MAX_BYTE=1"},
                        "echo $FERRY_LOG_LEVLE $FERRY_HOME $FERRY_EAGER_MAX_BYTE"),
                 {"FERRY_LOG_LEVLE=info", "FERRY_HOME=/opt/ferry"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(
      SortedLines(result.err),
      ElementsAre("ferryrun: warning: environment variable FERRY_EAGER_MAX_BYTE belongs to no "
                  "option of Ferry; did you mean FERRY_EAGER_MAX_BYTES?",
                  "ferryrun: warning: environment variable FERRY_LOG_LEVLE belongs to no "
                  "option of Ferry; did you mean FERRY_LOG_LEVEL?"));
  EXPECT_THAT(SortedLines(result.out),
              ElementsAre("[0] info /opt/ferry 1", "[1] info /opt/ferry 1"));
}

TEST(FerryrunTest, SaysThatAProgramIsNoProgram) {
  const std::string path = testing::TempDir() + "not_a_program";
  WriteExecutable(path,
                  "\x7f"
                  "ELF?");
  const CommandResult result = RunCleanly(Private({path}));
  EXPECT_EQ(result.exit_code, 126);
  EXPECT_THAT(result.err, HasSubstr("not_a_program': Exec format error"));
}

TEST(FerryrunTest, SaysThatAnInterpreterIsMissing) {
  const std::string path = testing::TempDir() + "no_interpreter";
  WriteExecutable(path, "#!/no/such/shell\n");
  const CommandResult result = RunCleanly(Private({path}));
  EXPECT_EQ(result.exit_code, 127);
  EXPECT_THAT(result.err, HasSubstr("no_interpreter': it is there, but not the interpreter that "
                                    "its first line, or the loader that its ELF header names"));
}

TEST(FerryrunTest, ExplainsAProgramThatEndsAtOnceForWantOfALibrary) {
  // A command that its shell does not find ends in the same way as one without a library.
  const CommandResult result = RunCommand(Script({"-n", "2"}, "nosuchprogram"));
  EXPECT_EQ(result.exit_code, 127);
  EXPECT_THAT(result.err, HasSubstr("exited with code 127, as a program does that finds no shared "
                                    "library, or a shell that finds no command"));
}

TEST(FerryrunTest, PlacesAndLabelsRanks) {
  const CommandResult result = RunCleanly(Script({"-n", "5", "--nodes", "2"},
                                                 "echo $FERRY_RANK of $FERRY_SIZE on $FERRY_NODE; "
                                                 "echo secret ${#FERRY_JOB_SECRET} >&2"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(SortedLines(result.out),
              ElementsAre("[0] 0 of 5 on 0", "[1] 1 of 5 on 0", "[2] 2 of 5 on 0",
                          "[3] 3 of 5 on 1", "[4] 4 of 5 on 1"));
  EXPECT_THAT(SortedLines(result.err),
              ElementsAre("[0] secret 64", "[1] secret 64", "[2] secret 64", "[3] secret 64",
                          "[4] secret 64"));
}

TEST(FerryrunTest, TellsEachDaemonAboutTheJob) {
  const CommandResult result =
      RunCommand(Script({"-n", "3", "--nodes", "2"}, "cat $FERRY_RUN_DIRECTORY.calls"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(SortedLines(result.out),
              ElementsAre("[0] create node 0 size 3 secret_bytes 64 placed 0 0 1 nodes 2",
                          "[1] create node 0 size 3 secret_bytes 64 placed 0 0 1 nodes 2",
                          "[2] create node 1 size 3 secret_bytes 64 placed 0 0 1 nodes 2"));
}

TEST(FerryrunTest, RunsSeveralProgramsAsOneJob) {
  EXPECT_THAT(SortedLines(RunWell(Private({"-l",
                                           "-genv",
                                           "ALL",
                                           "both",
                                           "-n",
                                           "1",
                                           "-x",
                                           "A=first",
                                           "-x",
                                           "HOME",
                                           "sh",
                                           "-c",
                                           "echo $FERRY_RANK of $FERRY_SIZE $ALL $A $HOME",
                                           ":",
                                           "-np",
                                           "2",
                                           "-wdir",
                                           "/tmp",
                                           "sh",
                                           "-c",
                                           "echo $FERRY_RANK of $FERRY_SIZE $ALL $A$PWD; pwd"}),
                                  {"HOME=/home/test"})),
              ElementsAre("[0] 0 of 3 both first /home/test", "[1] /tmp", "[1] 1 of 3 both /tmp",
                          "[2] /tmp", "[2] 2 of 3 both /tmp"));
}

TEST(FerryrunTest, FindsAProgramFromItsDirectory) {
  const std::string folder = testing::TempDir() + "bin";
  std::filesystem::create_directory(folder);
  WriteExecutable(folder + "/here", "#!/bin/sh\necho found\n");
  const CommandResult result = RunCommand(Private({"-wdir", folder, "./here"}));
  EXPECT_EQ(result.out, "found\n") << result.err;
}

TEST(FerryrunTest, ThisHostByItsNameIsNoOther) {
  const CommandResult result =
      RunCommand(Script({"-n", "3", "-host", "localhost:2,127.0.0.1", "--rsh", "/nonexistent"},
                        "echo $FERRY_RANK on $FERRY_NODE"));
  EXPECT_THAT(SortedLines(result.out), ElementsAre("[0] 0 on 0", "[1] 1 on 0", "[2] 2 on 0"))
      << result.err;
}

TEST(FerryrunTest, DealsOutRanksAsAsked) {
  const std::string echo = "echo $FERRY_RANK on $FERRY_NODE";
  EXPECT_THAT(
      SortedLines(RunCommand(Script({"-n", "3", "--nodes", "2", "--map-by", "node"}, echo)).out),
      ElementsAre("[0] 0 on 0", "[1] 1 on 1", "[2] 2 on 0"));
  EXPECT_THAT(SortedLines(RunCommand(Script({"-n", "3", "--nodes", "2", "-ppn", "1"}, echo)).out),
              ElementsAre("[0] 0 on 0", "[1] 1 on 1", "[2] 2 on 0"));
}

TEST(FerryrunTest, EndsAJobThatTakesTooLong) {
  const CommandResult result =
      RunCleanly(Script({"-n", "2", "--timeout", "1"}, "echo started; exec sleep 100"));
  EXPECT_EQ(result.exit_code, 124);
  EXPECT_EQ(result.err,
            "ferryrun: the job did not end within 1 s (--timeout); ending its 2 ranks\n");
  EXPECT_THAT(SortedLines(result.out), ElementsAre("[0] started", "[1] started"));
}

TEST(FerryrunTest, AJobInTimeKeepsItsExitCode) {
  EXPECT_EQ(RunCommand(Script({"--timeout", "60"}, "exit 3")).exit_code, 3);
}

TEST(FerryrunTest, LabelsAlignFromTenRanksOn) {
  const CommandResult result = RunCommand(Script({"-n", "11"}, "test $FERRY_RANK = 3 && echo x"));
  EXPECT_EQ(result.out, "[ 3] x\n");
}

TEST(FerryrunTest, ItsDirectoryIsWhereTemporaryFilesBelong) {
  const TempDirectory directory;
  EXPECT_THAT(
      RunCommand(Joined({"/usr/bin/env", "-u", "XDG_RUNTIME_DIR", "TMPDIR=" + directory.path()},
                        Private({"sh", "-c", "echo $FERRY_RUN_DIRECTORY"})))
          .out,
      StartsWith(directory / "ferryrun-"));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(FerryrunTest, WantOfDescriptorsIsSaid) {
  for (const int descriptors : {6, 10}) {
    const CommandResult result =
        RunCommand({"/bin/sh", "-c",
                    "ulimit -c 0; ulimit -n " + std::to_string(descriptors) + "; exec " +
                        kFerryrun + " --private --ferryd " + kFakeFerryd + " -n 8 true"});
    EXPECT_GT(result.exit_code, 0) << descriptors << ": " << result.err;
    EXPECT_THAT(result.err, HasSubstr("Too many open files")) << descriptors;
  }
}

TEST(FerryrunTest, PassesOptionsOn) {
  Command command(
      Script({"--eager-max-bytes=512"}, "echo $FERRY_EAGER_MAX_BYTES $FERRY_SPIN_PAUSES $OTHER"),
      {"FERRY_SPIN_PAUSES=7", "OTHER=kept"});
  EXPECT_EQ(command.Wait().out, "[0] 512 7 kept\n");
}

TEST(FerryrunTest, PrivateDaemonsDoNotSpeakForTheServiceThatItRunsIn) {
  Command command(Script({}, "echo ready; exec sleep 100"),
                  {"NOTIFY_SOCKET=/run/systemd/notify", "WATCHDOG_USEC=1000", "OTHER=kept"});
  ASSERT_TRUE(command.WaitForOutput("ready"));
  const std::vector<pid_t> daemons = command.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(1));
  EXPECT_THAT(tests::ReadFile("/proc/" + std::to_string(daemons[0]) + "/environ"),
              AllOf(HasSubstr("OTHER=kept"), testing::Not(HasSubstr("NOTIFY_SOCKET")),
                    testing::Not(HasSubstr("WATCHDOG"))));
}

TEST(FerryrunTest, LeavesOutputAloneWithoutLabels) {
  const CommandResult result =
      RunCommand(Script({"--no-label"}, "printf 'a\\nb'; printf 'c\\n\\nd'; printf e >&2"));
  EXPECT_EQ(result.out, "a\nbc\n\nd");
  EXPECT_EQ(result.err, "e");
}

TEST(FerryrunTest, OutputHasNoLabelsByDefault) {
  const CommandResult result = RunCommand(Private({"-n", "2", "sh", "-c", "echo a; echo b >&2"}));
  EXPECT_EQ(result.out, "a\na\n");
  EXPECT_EQ(result.err, "b\nb\n");
}

TEST(FerryrunTest, NeverMixesLines) {
  // Each rank writes its lines at once.
  const std::string script =
      "i=0; while [ $i -lt 200 ]; do echo $FERRY_RANK$FERRY_RANK$FERRY_RANK$FERRY_RANK; "
      "i=$((i+1)); done";
  const CommandResult result = RunCommand(Script({"-n", "3"}, script));
  const Words lines = SortedLines(result.out);
  EXPECT_THAT(lines, SizeIs(600));
  for (const std::string& line : lines) {
    EXPECT_THAT((Words{"[0] 0000", "[1] 1111", "[2] 2222"}), testing::Contains(line));
  }
}

TEST(FerryrunTest, ForwardsMuchOutputWhole) {
  const CommandResult result =
      RunCommand(Script({"--no-label"}, "head -c 3000000 /dev/zero | tr '\\0' x"));
  EXPECT_EQ(result.out.size(), 3000000u);
}

TEST(FerryrunTest, GivesStandardInputToRankZeroOnly) {
  const std::string input(50000, 'y');
  EXPECT_THAT(SortedLines(RunCommand(Script({"-n", "2"}, "wc -c"), {}, input).out),
              ElementsAre("[0] 50000", "[1] 0"));
}

TEST(FerryrunTest, ReportsTheRankThatExited) {
  const CommandResult result =
      RunCleanly(Script({"-n", "4"}, "test $FERRY_RANK != 2 || exit 3; exec sleep 100"));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err,
              testing::MatchesRegex("ferryrun: rank 2 \\(pid [0-9]+\\) exited with code "
                                    "3; ending the other 3 ranks\n"));
}

TEST(FerryrunTest, ReportsTheRankThatWasKilled) {
  const CommandResult result =
      RunCleanly(Script({"-n", "2"}, "test $FERRY_RANK != 1 || kill -SEGV $$; exec sleep 100"));
  EXPECT_EQ(result.exit_code, 128 + SIGSEGV);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("ferryrun: rank 1 (pid "), HasSubstr("was killed by SIGSEGV"),
                    HasSubstr("; ending the other rank\n")));
}

TEST(FerryrunTest, KeepsGoingWhenAsked) {
  const CommandResult result = RunCommand(
      Script({"-n", "2", "--keep-going"}, "read line; test $FERRY_RANK = 0 || exit 4; echo done"));
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.out, "[0] done\n");
  EXPECT_THAT(result.err, HasSubstr("exited with code 4\n"));
}

TEST(FerryrunTest, SaysOnceWhatManyRanksSay) {
  const CommandResult result = RunCommand(
      Script({"-n", "3", "--keep-going"},
             "read line; echo same >&2; echo libferry: rank $FERRY_RANK: no >&2; exit 4"));
  EXPECT_EQ(result.exit_code, 4);
  Words own;
  size_t whole = 0;
  for (const std::string& line : SortedLines(result.err)) {
    whole += line.starts_with("[") && line.find("libferry: rank ") != line.npos;
    if (line.ends_with("] same")) {
      own.push_back(line);
    }
  }
  EXPECT_THAT(own, ElementsAre("[0] same", "[1] same", "[2] same"));
  EXPECT_EQ(whole, 1u) << result.err;
  EXPECT_THAT(result.err,
              testing::ContainsRegex("the same from [12] more ranks? \\([-, 0-2]+\\): no"));
  EXPECT_THAT(result.err,
              testing::ContainsRegex("the same from [12] more ranks? .*: exited with code 4"));
}

TEST(FerryrunTest, KillsRanksThatIgnoreTheRequestToEnd) {
  // Rank 0 fails once rank 1 ignores SIGTERM.
  Command command(Script({"-n", "2", "--grace-ms", "50"},
                         "flag=$XDG_RUNTIME_DIR/trapped; "
                         "if [ $FERRY_RANK = 0 ]; then "
                         "  until [ -e $flag ]; do sleep 0.01; done; rm $flag; exit 5; "
                         "fi; trap '' TERM; touch $flag; while :; do sleep 1; done"));
  EXPECT_EQ(command.WaitCleanly().exit_code, 5);
}

TEST(FerryrunTest, EndsWhatARankLeftBehind) {
  EXPECT_EQ(RunWell(Script({}, "sleep 100 & echo started")), "[0] started\n");
}

TEST(FerryrunTest, ForwardsSignals) {
  Command command(Script({"-n", "2"},
                         "trap 'echo got it; exit 0' USR1; echo ready $FERRY_RANK; "
                         "while :; do sleep 0.01; done"));
  ASSERT_TRUE(command.WaitForOutput("ready 0"));
  ASSERT_TRUE(command.WaitForOutput("ready 1"));
  command.Signal(SIGUSR1);
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(SortedLines(result.out),
              ElementsAre("[0] got it", "[0] ready 0", "[1] got it", "[1] ready 1"));
}

TEST(FerryrunTest, EndsTheJobOnSigterm) {
  Command command(Script({"-n", "2"}, "echo ready; exec sleep 100"));
  ASSERT_TRUE(command.WaitForOutput("ready"));
  command.Signal(SIGTERM);
  const CommandResult result = command.WaitCleanly();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_THAT(result.err,
              testing::MatchesRegex("ferryrun: told to end by SIGTERM; passing it on to the 2 "
                                    "ranks, and killing what is left after 5000 ms\n"
                                    "ferryrun: ended by SIGTERM: job [0-9a-f]+ has ended, with 2 "
                                    "of 2 ranks that still ran\n"));
}

// Whatever the ranks make of it.
TEST(FerryrunTest, EndsWithTheSignalThatWasAskedToEndIt) {
  Command command(Script({}, "trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(command.WaitForOutput("ready"));
  command.Signal(SIGTERM);
  EXPECT_EQ(command.Wait().exit_code, 128 + SIGTERM);
}

// It asked them first.
TEST(FerryrunTest, ARankThatCatchesTheInterruptDecidesTheExitCode) {
  Command command(Script({}, "trap 'exit 3' INT; echo ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(command.WaitForOutput("ready"));
  command.Signal(SIGINT);
  EXPECT_EQ(command.Wait().exit_code, 3);
}

TEST(FerryrunTest, KillsOnTheSecondInterrupt) {
  Command command(Script({}, "trap 'echo again' INT; echo ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(command.WaitForOutput("ready"));
  command.Signal(SIGINT);
  ASSERT_TRUE(command.WaitForOutput("again"));
  command.Signal(SIGINT);
  const CommandResult result = command.WaitCleanly();
  EXPECT_EQ(result.exit_code, 128 + SIGINT);
  EXPECT_THAT(result.err, HasSubstr("ferryrun: interrupted again: killing the rank\n"));
}

TEST(FerryrunTest, ShowsTheLastWordsOfADaemonThatCannotStart) {
  const CommandResult result =
      RunCleanly(Script({"-n", "2", "--nodes", "2"}, "echo never"), {"FAKE_FERRYD=crash"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("ferryd of node 0 (pid "),
                    HasSubstr("could not start: it exited with code 7; its last log lines:\n"
                              "  opening the fabric\n  there is no fabric\n")));
  EXPECT_EQ(result.out, "");
}

TEST(FerryrunTest, CanBeInterruptedWhileADaemonStarts) {
  for (const auto& [signal, name] : {std::pair{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}}) {
    Command command(Script({}, "echo never"), {"FAKE_FERRYD=hang"});
    ASSERT_TRUE(Eventually([&] { return !command.Find("--ready-fd").empty(); }));
    command.Signal(signal);
    const CommandResult result = command.WaitCleanly();
    EXPECT_EQ(result.exit_code, 128 + signal);
    EXPECT_EQ(result.err,
              std::string("ferryrun: interrupted by ") + name + " before the job started\n");
  }
}

TEST(FerryrunTest, RefusesADaemonOfAnotherVersion) {
  const CommandResult result = RunCommand(Script({}, "echo never"), {"FAKE_FERRYD=old"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("has another version " + Versions(1)), HasSubstr(Versions())));
}

TEST(FerryrunTest, KillsADaemonThatDoesNotStop) {
  const CommandResult result =
      RunCleanly(Script({"--grace-ms", "50"}, "exit 0"), {"FAKE_FERRYD=stubborn"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("did not stop as it should: it was killed by SIGKILL"));
}

TEST(FerryrunTest, ReportsADaemonThatDiesAndEndsTheRanks) {
  Command command(
      Script({"-n", "2", "--nodes", "2", "--grace-ms", "50"}, "echo ready; exec sleep 100"));
  ASSERT_TRUE(command.WaitForOutput("ready"));
  const std::vector<pid_t> daemons = command.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(2));
  kill(daemons[0], SIGKILL);
  const CommandResult result = command.WaitCleanly();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_THAT(result.err, AllOf(HasSubstr("ferryd of node "),
                                HasSubstr("was killed by SIGKILL while the job ran")));
}

TEST(FerryrunTest, LeavesNothingWhenItIsKilled) {
  Command command(Script({"-n", "2"}, "echo ready; exec sleep 100"));
  ASSERT_TRUE(command.WaitForOutput("ready"));
  command.Signal(SIGKILL);
  EXPECT_EQ(command.WaitCleanly().signal, SIGKILL);
}

TEST(FerryrunTest, RemovesWhatAKilledOneLeft) {
  Command first(Script({}, "echo ready; exec sleep 100"));
  ASSERT_TRUE(first.WaitForOutput("ready"));
  const std::string variable = "XDG_RUNTIME_DIR=" + first.runtime_directory();
  const auto directories = [&] {
    return std::distance(std::filesystem::directory_iterator(first.runtime_directory()), {});
  };

  EXPECT_EQ(RunCommand(With({variable}, Private({"true"}))).exit_code, 0);
  EXPECT_EQ(directories(), 1) << "the living one's directory must stay";

  // Its daemon too, at one stroke: else either would tidy up.
  const std::vector<pid_t> daemons = first.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(1));
  first.Signal(SIGSTOP);
  kill(daemons[0], SIGKILL);
  first.Signal(SIGKILL);
  first.Wait();
  EXPECT_EQ(directories(), 1);
  EXPECT_EQ(RunCommand(With({variable}, Private({"true"}))).exit_code, 0);
  EXPECT_EQ(directories(), 0);
}

TEST(FerryrunTest, UsesTheDaemonThatRuns) {
  const TempDirectory parent;
  const std::string directory = parent / "run";
  Command daemon({kFakeFerryd}, {"FERRY_RUN_DIRECTORY=" + directory});
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(directory + "/ferryd.json"); }));
  EXPECT_THAT(SortedLines(RunWell({kFerryrun, "-n", "2", "sh", "-c", "echo $FERRY_RUN_DIRECTORY"},
                                  {"FERRY_RUN_DIRECTORY=" + directory})),
              ElementsAre(directory, directory));
  EXPECT_THAT(tests::ReadFile(directory + ".calls"), testing::EndsWith("\ndestroy\n"));
  daemon.Signal(SIGTERM);
  daemon.Wait();
}

TEST(FerryrunTest, EndsWhenNobodyReadsItsOutput) {
  const CommandResult result = RunCleanly(
      {"/bin/sh", "-c",
       std::string(kFerryrun) + " --private --ferryd " + kFakeFerryd + " yes | head -n 1; true"});
  EXPECT_EQ(result.out, "y\n");
  EXPECT_THAT(result.err, HasSubstr("cannot write to standard output: Broken pipe"));
}

}  // namespace
}  // namespace ferry::e2e

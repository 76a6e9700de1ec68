// The parts of ferryctl that need no daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/admin/daemon_search.h"
#include "tools/ferryctl/job_names.h"
#include "tools/ferryctl/option_report.h"
#include "tools/ferryctl/queues.h"
#include "tools/ferryctl/rank_name.h"
#include "tools/flags/completion.h"

namespace ferry::tools {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// ---- Options and their origins

OptionOrigin Find(const StatusOr<std::vector<OptionOrigin>>& report, std::string_view name) {
  for (const OptionOrigin& row : *report) {
    if (row.option->name == name) {
      return row;
    }
  }
  ADD_FAILURE() << "no row for " << name;
  return {};
}

TEST(OptionReportTest, NamesTheSourceThatWins) {
  const std::string file = testing::TempDir() + "report.toml";
  std::ofstream(file) << "spin_pauses = 1\nheap_bytes = 2097152\nmax_ranks = 200\n";
  const std::string variable = "FERRY_CONFIG_FILE=" + file;
  const char* environment[] = {variable.c_str(), "FERRY_SPIN_PAUSES=2", "FERRY_MAX_RANKS=300",
                               "FERRY_JOB_SECRET=hush", nullptr};
  const auto report = ReportOptions({"--spin_pauses=3"}, environment);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(Find(report, "spin_pauses").value, "3");
  EXPECT_EQ(Find(report, "spin_pauses").origin, "flag --spin_pauses");
  EXPECT_EQ(Find(report, "max_ranks").value, "300");
  EXPECT_EQ(Find(report, "max_ranks").origin, "variable FERRY_MAX_RANKS");
  EXPECT_EQ(Find(report, "heap_bytes").value, "2097152");
  EXPECT_EQ(Find(report, "heap_bytes").origin, "file " + file);
  EXPECT_EQ(Find(report, "log_level").origin, "default");
  EXPECT_EQ(Find(report, "job_secret").value, "(secret)");
}

TEST(OptionReportTest, TellsAValueSetToItsDefaultFromTheDefault) {
  const char* environment[] = {"FERRY_SPIN_PAUSES=64", "FERRY_LOG_FILE=", nullptr};
  const auto report = ReportOptions({}, environment);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(Find(report, "spin_pauses").origin, "variable FERRY_SPIN_PAUSES");
  EXPECT_EQ(Find(report, "log_file").origin, "variable FERRY_LOG_FILE");
  EXPECT_EQ(Find(report, "job_secret").value, "");
}

TEST(OptionReportTest, PassesMistakesOn) {
  const char* environment[] = {"FERRY_SPIN_PAUSES=many", nullptr};
  const auto report = ReportOptions({}, environment);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.status().message(), testing::HasSubstr("FERRY_SPIN_PAUSES"));
}

// ---- Names of ranks

TEST(RankNameTest, SplitsAtTheLastDot) {
  const StatusOr<RankName> name = ParseRankName("slurm.12.7");
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(name->job_id, "slurm.12");
  EXPECT_EQ(name->rank, 7u);
}

TEST(RankNameTest, RejectsWhatIsNoRank) {
  for (const char* text :
       {"", "job", "job.", ".3", "job.x", "job.-1", "job.3x", "job.9999999999"}) {
    const StatusOr<RankName> name = ParseRankName(text);
    ASSERT_FALSE(name.ok()) << text;
    EXPECT_EQ(name.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(name.status().message(), testing::HasSubstr("write JOB.RANK"));
  }
}

// ---- Names of jobs

control::JobStatus Job(const std::string& id, const std::string& name, const std::string& program,
                       uint32_t uid = 1000) {
  control::JobStatus job;
  job.set_job_id(id);
  job.set_name(name);
  job.set_program(program);
  job.set_uid(uid);
  job.set_size(4);
  job.set_age_ms(65'000);
  return job;
}

TEST(JobNamesTest, AJobIsCalledByItsNameElseByItsProgramElseByItsId) {
  const JobList jobs = {Job("a1", "weather", "wrf"), Job("b2", "", "heat2d"), Job("c3", "", "lu"),
                        Job("d4", "", "lu"), Job("e5", "", "")};
  EXPECT_EQ(LabelOf(jobs, "a1"), "weather");
  EXPECT_EQ(LabelOf(jobs, "b2"), "heat2d");
  EXPECT_EQ(LabelOf(jobs, "c3"), "c3") << "two are called lu";
  EXPECT_EQ(LabelOf(jobs, "e5"), "e5");
  EXPECT_EQ(LabelOf(jobs, "unknown"), "unknown");
}

// A name that reads as JOB.RANK, or as another job's id, would lead elsewhere.
TEST(JobNamesTest, ANameThatMisleadsIsNoLabel) {
  const JobList jobs = {Job("a1", "run.3", "p"), Job("b2", "a1", "q"), Job("c3", "two words", "r")};
  EXPECT_EQ(LabelOf(jobs, "a1"), "p");
  EXPECT_EQ(LabelOf(jobs, "b2"), "q");
  EXPECT_EQ(LabelOf(jobs, "c3"), "r");
  EXPECT_EQ(*MeantJob(jobs, "a1"), "a1") << "an id counts before a name";
}

TEST(JobNamesTest, NamesWorkWhereIdsDo) {
  const JobList jobs = {Job("a1", "weather", "wrf"), Job("b2", "", "heat2d")};
  for (const char* name : {"a1", "weather", "wrf"}) {
    EXPECT_EQ(ReadMeant(jobs, name, 1000)->job_id, "a1") << name;
    const StatusOr<Meant> rank = ReadMeant(jobs, std::string(name) + ".3", 1000);
    ASSERT_TRUE(rank.ok()) << name;
    EXPECT_EQ(rank->job_id, "a1");
    EXPECT_EQ(rank->rank, 3U);
  }
  const StatusOr<Meant> unknown = ReadMeant(jobs, "UNKNOWN", 1000);
  EXPECT_EQ(unknown.status().code(), ErrorCode::kNotFound);
  EXPECT_THAT(unknown.status().message(), HasSubstr("there is no job UNKNOWN"));
  EXPECT_THAT(ReadMeant(jobs, "nojob.0", 1000).status().message(),
              HasSubstr("there is no job nojob on this daemon"));
}

TEST(JobNamesTest, ProgramsThatFollowEachOtherShareTheName) {
  const JobList jobs = {Job("a1", "weather", ""), Job("a1#2", "weather", "")};
  EXPECT_EQ(LabelOf(jobs, "a1#2"), "weather#2");
  EXPECT_EQ(*MeantJob(jobs, "weather"), "a1#2");
  EXPECT_EQ(*MeantJob(jobs, "weather#1"), "a1");
  EXPECT_EQ(*MeantJob(jobs, "a1"), "a1#2");
  EXPECT_EQ(*MeantJob(jobs, "a1#1"), "a1");
}

TEST(JobNamesTest, TheOnlyJobNeedsNoId) {
  const JobList mine = {Job("a1", "", "lu"), Job("b2", "", "others", 7)};
  EXPECT_EQ(ReadMeant(mine, "3", 1000)->job_id, "a1");
  EXPECT_EQ(ReadMeant(mine, "3", 1000)->rank, 3U);
  EXPECT_EQ(ReadMeant({}, "3", 1000).status().code(), ErrorCode::kNotFound);
  const JobList two = {Job("a1", "", "lu"), Job("b2", "night", "lu")};
  const Status several = ReadMeant(two, "3", 1000).status();
  EXPECT_EQ(several.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(several.message(),
              testing::AllOf(HasSubstr("you have 2 jobs here: type JOB.RANK, with one of these"),
                             HasSubstr("\n  a1: 4 ranks of lu, for "),
                             HasSubstr("\n  night (b2): 4 ranks of lu, for ")));
  EXPECT_THAT(ReadMeant(two, "lu", 1000).status().message(),
              HasSubstr("2 jobs are called lu: type the id in place of the name"));
}

// ---- Daemons of this machine

class DaemonSearchTest : public testing::Test {
 protected:
  DaemonSearchTest() {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    places_ = {.usual = directory_ + "/own",
               .system = directory_ + "/system",
               .bases = {directory_ + "/run", directory_ + "/tmp"},
               .uid = geteuid()};
  }
  ~DaemonSearchTest() override { fs::remove_all(directory_); }

  void Serve(const std::string& folder) const {
    fs::create_directories(directory_ + "/" + folder);
    std::ofstream(directory_ + "/" + folder + "/control.sock");
  }
  std::string Private(const std::string& name) const { return PrivateName(geteuid()) + name; }
  static std::string PrivateName(uid_t uid) { return "ferryrun-" + std::to_string(uid) + "-"; }
  // "KIND FOLDER" of each.
  std::vector<std::string> Found() const {
    std::vector<std::string> found;
    for (const DaemonDirectory& daemon : SearchDaemons(places_)) {
      found.push_back(DaemonKindText(daemon.kind) +
                      (" " + daemon.run_directory.substr(directory_.size() + 1)));
    }
    return found;
  }

  std::string directory_ = "/tmp/ferry-search-XXXXXX";
  SearchPlaces places_;
};

TEST_F(DaemonSearchTest, FindsTheUsersOwnTheNodesAJobsAndPrivateOnes) {
  EXPECT_THAT(Found(), ElementsAre("own own", "node system")) << "whether there is one or not";
  Serve("tmp/" + Private("b") + "/1");
  Serve("tmp/" + Private("b") + "/0");
  Serve("run/" + Private("a") + "/0");
  Serve("system/job-7");
  EXPECT_THAT(Found(), ElementsAre("own own", "node system", "job system/job-7",
                                   "private run/" + Private("a") + "/0",
                                   "private tmp/" + Private("b") + "/0",
                                   "private tmp/" + Private("b") + "/1"));
}

TEST_F(DaemonSearchTest, ADirectoryThatIsFoundTwiceIsOne) {
  places_.bases.push_back(places_.bases.front());
  places_.usual = places_.system;
  Serve("run/" + Private("a") + "/0");
  EXPECT_THAT(Found(), ElementsAre("node system", "private run/" + Private("a") + "/0"));
}

// Anybody may make a folder of any name in /tmp.
TEST_F(DaemonSearchTest, WhatIsNotTheUsersIsLeftAlone) {
  Serve("tmp/" + PrivateName(geteuid() + 1) + "a/0");
  fs::create_directories(directory_ + "/tmp");
  fs::create_symlink("/", directory_ + "/tmp/" + Private("link"));
  EXPECT_THAT(Found(), ElementsAre("own own", "node system"));
  ++places_.uid;  // to whom the folder of that name does not belong
  EXPECT_THAT(Found(), ElementsAre("own own", "node system"));
}

TEST_F(DaemonSearchTest, ShellsWithoutTheVariablesFindThemToo) {
  const char* const nothing[] = {nullptr};
  const std::string run = "/run/user/" + std::to_string(geteuid());
  EXPECT_THAT(PlacesOf(nothing).bases, ElementsAre(run, "/tmp", "/dev/shm"));
  const char* const both[] = {"XDG_RUNTIME_DIR=/x", "TMPDIR=/y", nullptr};
  EXPECT_THAT(PlacesOf(both).bases, ElementsAre("/x", "/y", run, "/tmp", "/dev/shm"));
}

// ---- The scripts for shells; bash, which is there, runs its own

CommandLine Launcher() {
  return {.tool = "launcher",
          .flags = {{"-n", "how many", 1}, {"-env", "a variable", 2}, {"--label", "it's a label"}},
          .commands = {}};
}

CommandLine Control() {
  return {.tool = "control",
          .flags = {{"--json", "print JSON"}, {"--output", "a file", 1, "trace"}},
          .commands = {{"status", "How it is: now"}, {"trace", "Records"}}};
}

std::string Script(const CommandLine& line, const char* shell) {
  const StatusOr<std::string> script = CompletionScript(line, shell);
  EXPECT_TRUE(script.ok()) << script.status().message();
  return script.ok() ? *script : "";
}

// Bash's completions of the last of `words`.
std::string Offers(const CommandLine& line, const std::string& words) {
  const std::string file = testing::TempDir() + "completion.bash";
  std::ofstream(file) << Script(line, "bash") << "COMP_WORDS=(" << line.tool << " " << words
                      << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_" << line.tool
                      << "\necho \"${COMPREPLY[*]}\"\n";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(("bash " + file + " 2>&1").c_str(), "r"),
                                                   pclose);
  char text[4096] = {};
  const size_t size = pipe == nullptr ? 0 : fread(text, 1, sizeof(text) - 1, pipe.get());
  return {text, size};
}

TEST(CompletionTest, BashOffersFlagsUntilTheProgram) {
  EXPECT_EQ(Offers(Launcher(), "-"), "-n -env --label\n");
  EXPECT_EQ(Offers(Launcher(), "-n 4 --l"), "--label\n");
  EXPECT_EQ(Offers(Launcher(), "-n -"), "\n");  // its value
  EXPECT_EQ(Offers(Launcher(), "-env A B --l"), "--label\n");
  EXPECT_EQ(Offers(Launcher(), "./program --l"), "\n");  // the program's own
  EXPECT_THAT(Offers(Launcher(), "-n 4 tru"), HasSubstr("true"));
}

TEST(CompletionTest, BashOffersCommandsAndTheirFlags) {
  EXPECT_EQ(Offers(Control(), "''"), "status trace\n");
  EXPECT_EQ(Offers(Control(), "st"), "status\n");
  EXPECT_EQ(Offers(Control(), "status -"), "--json\n");
  EXPECT_EQ(Offers(Control(), "trace -"), "--json --output\n");
  EXPECT_EQ(Offers(Control(), "--json tr"), "trace\n");
}

TEST(CompletionTest, OtherShellsAreToldTheSame) {
  const std::string zsh = Script(Control(), "zsh");
  EXPECT_THAT(zsh, HasSubstr("#compdef control\n"));
  EXPECT_THAT(zsh, HasSubstr("'status:How it is: now'\n"));
  EXPECT_THAT(zsh, HasSubstr("local word command\nflags=(\n  '--json:print JSON'\n)\n"));
  EXPECT_THAT(zsh, HasSubstr("    trace) command=$word; flags+=(\n  '--output:a file'\n    );;\n"));
  EXPECT_THAT(Script(Launcher(), "zsh"), HasSubstr("'--label:it'\\''s a label'\n"));
  const std::string fish = Script(Control(), "fish");
  EXPECT_THAT(fish, HasSubstr("-n __fish_use_subcommand -f -a status -d 'How it is: now'\n"));
  EXPECT_THAT(fish, HasSubstr("-n '__fish_seen_subcommand_from trace' -l output -r -d 'a file'\n"));
  EXPECT_THAT(Script(Launcher(), "fish"),
              HasSubstr("complete -c launcher -s n -r -d 'how many'\n"));
  EXPECT_THAT(Script(Launcher(), "fish"), HasSubstr("complete -c launcher -o env -r -d"));
}

TEST(CompletionTest, KnowsNoOtherShell) {
  EXPECT_THAT(CompletionScript(Control(), "csh").status().message(),
              HasSubstr("--completion csh: it knows bash, zsh and fish"));
}

// ---- Queues

control::WaitReason* AddOperation(const std::string& operation, int peer, int tag, uint32_t context,
                                  control::RankWait* rank) {
  control::WaitReason* const reason = rank->add_reasons();
  reason->set_operation(operation);
  reason->set_peer(peer);
  reason->set_tag(tag);
  reason->set_context(context);
  reason->set_size_bytes(64);
  reason->set_step("a step");
  return reason;
}

TEST(QueuesViewTest, SortsByCommunicatorAndQueue) {
  control::WhyReply reply;
  control::RankWait* const rank = reply.add_ranks();
  rank->set_rank(3);
  rank->set_pid(1);
  rank->set_detail("waits");
  rank->set_unfinished(6);
  AddOperation("receive", -1, -1, 8, rank);
  AddOperation("send", 2, 7, 8, rank);
  AddOperation("send", 1, 0, 9, rank);
  AddOperation("receive", 0, 4, 17 * 8, rank);
  AddOperation("receive", 0, 5, 0, rank);
  control::UnexpectedMessages* const messages = rank->add_unexpected();
  messages->set_source(5);
  messages->set_tag(6);
  messages->set_context(8);
  messages->set_count(2);
  const View view = QueuesView("abc", "heat", reply);
  const auto& queues = view.json["queues"];
  ASSERT_EQ(queues.size(), 4U);
  EXPECT_EQ(queues[0]["of"], "messages of ferry.h");
  EXPECT_EQ(queues[1]["of"], "MPI_COMM_WORLD");
  EXPECT_EQ(queues[1]["sends"].size(), 1U);
  EXPECT_EQ(queues[1]["sends"][0]["peer"], 2);
  EXPECT_EQ(queues[1]["receives"].size(), 1U);
  EXPECT_EQ(queues[1]["receives"][0]["peer"], -1);
  EXPECT_EQ(queues[1]["unexpected"][0]["count"], 2);
  EXPECT_EQ(queues[2]["of"], "collectives of MPI_COMM_WORLD");
  EXPECT_EQ(queues[3]["of"], "communicator 17");
  EXPECT_EQ(view.json["further"], 1U);
  EXPECT_THAT(view.text, HasSubstr("rank 3 of job heat waits\n\nmessages of ferry.h\npending rec"));
  EXPECT_THAT(view.text, HasSubstr("MPI_COMM_WORLD\npending sends:\n"));
  EXPECT_THAT(view.text, HasSubstr("any  any"));
  EXPECT_THAT(view.text, HasSubstr("unexpected messages:\n"));
  EXPECT_THAT(view.text, HasSubstr("\nand 1 more operations\n"));
}

TEST(QueuesViewTest, OfALongQueueTheFirstAreListed) {
  control::WhyReply reply;
  control::RankWait* const rank = reply.add_ranks();
  rank->set_pid(1);
  rank->set_unfinished(1000);
  for (int peer = 0; peer < 1000; ++peer) {
    AddOperation("receive", peer, 0, 8, rank);
    rank->add_unexpected()->set_context(8);
  }
  const View view = QueuesView("abc", "heat", reply);
  EXPECT_LT(std::count(view.text.begin(), view.text.end(), '\n'), 80) << view.text;
  EXPECT_THAT(view.text, HasSubstr("\nand 968 more (--all lists them)\n"));
  EXPECT_EQ(view.json["queues"][0]["receives"].size(), 1000U) << "programs get all";
  const std::string all = QueuesView("abc", "heat", reply, /*all=*/true).text;
  EXPECT_GT(std::count(all.begin(), all.end(), '\n'), 2000);
  EXPECT_THAT(all, testing::Not(HasSubstr("more")));
}

TEST(QueuesViewTest, SaysThatAllAreEmpty) {
  control::WhyReply reply;
  reply.add_ranks()->set_pid(1);
  EXPECT_THAT(QueuesView("abc", "heat", reply).text, HasSubstr("no message waits for it"));
  reply.mutable_ranks(0)->set_pid(0);
  EXPECT_THAT(QueuesView("abc", "heat", reply).text, HasSubstr("not on this daemon's node"));
}

}  // namespace
}  // namespace ferry::tools

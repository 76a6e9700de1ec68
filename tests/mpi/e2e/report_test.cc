// ferryrun --report names what makes programs slow, and reports all ranks: on one node and on two,
// of jobs whose ranks are killed, or never call Ferry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "tests/e2e/hosts_here.h"
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

using e2e::Words;
using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Reported {
  e2e::CommandResult result;
  json report;
};

Reported Report(const Words& flags, const std::string& program, int ranks = 2) {
  const e2e::TempDirectory folder;
  const std::string file = folder / "report.json";
  Words all = {"-n", std::to_string(ranks)};
  all.insert(all.end(), flags.begin(), flags.end());
  all.push_back("--report=" + file);
  e2e::CommandResult result = RunJob({"", all}, {"tests/mpi/ranks/slow", program});
  return {std::move(result), json::parse(ReadFile(file), nullptr, false)};
}

// The advice with that cause, or null.
json AdviceOf(const json& report, const std::string& cause) {
  for (const json& advice : report.value("advice", json::array())) {
    if (advice["cause"] == cause) {
      return advice;
    }
  }
  return {};
}

// ---- Planted causes -----------------------------------------------------------------------------

int MoreThanCpus() { return static_cast<int>(std::thread::hardware_concurrency()) + 1; }

struct Planted {
  const char* program;
  const char* cause;
  const char* culprit;  // a part of the sentence
  Words flags = {};
  int ranks = 2;
};

void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.program; }

class PlantedTest : public testing::TestWithParam<Planted> {};

TEST_P(PlantedTest, IsNamed) {
  const Planted& planted = GetParam();
  const Reported run = Report(planted.flags, planted.program, planted.ranks);
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  const json advice = AdviceOf(run.report, planted.cause);
  ASSERT_FALSE(advice.is_null()) << run.report["advice"].dump(1) << run.report["calls"].dump(1);
  EXPECT_THAT(advice["sentence"].get<std::string>(), HasSubstr(planted.culprit));
}

INSTANTIATE_TEST_SUITE_P(
    OneNode, PlantedTest,
    testing::Values(Planted{"late_sender", "late_sender", "for rank 0 to send, rank 1 most"},
                    Planted{"late_isend", "late_sender", "for rank 0 to send, rank 1 most"},
                    Planted{"late_receiver", "late_receiver", "for rank 1 to receive, rank 0 most"},
                    Planted{"slow_rank", "slow_rank", "rank 1 came last to"},
                    Planted{"imbalance", "imbalance", "MPI_Barrier on MPI_COMM_WORLD"},
                    Planted{"small", "many_small_messages", "messages have less than 512 B"},
                    Planted{"unequal", "unequal_blocks", "rank 1 moves", {}, 3},
                    Planted{"lock", "window_lock", "most for that of rank 0"},
                    Planted{"partitions", "late_partitions", "ends of partitioned messages"},
                    Planted{"eager", "eager_max_bytes", "500 of", {"--eager_max_bytes=1024"}},
                    Planted{"unbound", "unbound", "may run on any CPU", {"--bind-to", "none"}},
                    Planted{"nothing", "crowded", "ranks share cores", {}, MoreThanCpus()}),
    [](const auto& info) { return std::string(info.param.program); });

INSTANTIATE_TEST_SUITE_P(
    TwoNodes, PlantedTest,
    testing::Values(Planted{"late_sender", "late_sender", "for rank 0 to send", {"--nodes", "2"}},
                    Planted{"slow_rank", "slow_rank", "rank 1 came last to", {"--nodes", "2"}, 3},
                    Planted{"private",
                            "private_memory",
                            "MiB between nodes came from private memory",
                            {"--nodes", "2", "--direct_links=off"}}),
    [](const auto& info) { return std::string(info.param.program); });

// ---- What a report holds ------------------------------------------------------------------------

TEST(ReportTest, CountsCallsPeersSizesAndPaths) {
  const Reported run = Report({}, "late_sender");
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  EXPECT_EQ(run.report["exit_code"], 0);
  EXPECT_EQ(run.report["measured_ranks"], 2);
  ASSERT_EQ(run.report["ranks"].size(), 2U);
  EXPECT_TRUE(run.report["ranks"][1]["ended_well"]);
  // Rank 1 waits for 15 times 20 ms.
  EXPECT_GE(run.report["ranks"][1]["waited_seconds"].get<double>(), 0.25);
  EXPECT_LE(run.report["ranks"][1]["waited_seconds"], run.report["ranks"][1]["ferry_seconds"]);
  bool has_send = false;
  for (const json& call : run.report["peers"]) {
    if (call["call"] == "MPI_Send" && call["rank"] == 0 && call["peer"] == 1) {
      has_send = true;
      EXPECT_EQ(call["count"], 15);
      EXPECT_EQ(call["bytes"], 60);
    }
  }
  EXPECT_TRUE(has_send) << run.report["peers"].dump(1);
  uint64_t sent = 0;
  for (const json& pair : run.report["traffic"]) {
    sent += pair["from"] == 0 && pair["to"] == 1 ? pair["bytes"].get<uint64_t>() : 0;
  }
  EXPECT_GE(sent, 60U);
  EXPECT_FALSE(run.report["sent_sizes"].empty());
  EXPECT_FALSE(run.report["paths"].empty());
  ASSERT_EQ(run.report["nodes"].size(), 1U);
}

// The time for which the loop leaves the core to others does not count.
TEST(ReportTest, ALoopOfLooksIsNamedWhereItTakesATenthOfTheTime) {
  const Reported run = Report({}, "polls");
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  const json& rank = run.report["ranks"][1];
  EXPECT_GT(rank["polls"], 0);
  EXPECT_GT(rank["polled_seconds"], 0.0);
  const json advice = AdviceOf(run.report, "polling");
  if (rank["polled_seconds"] < 0.1 * rank["seconds"].get<double>()) {
    EXPECT_TRUE(advice.is_null()) << advice.dump(1);
    return;
  }
  ASSERT_FALSE(advice.is_null()) << rank.dump(1);
  EXPECT_THAT(advice["sentence"].get<std::string>(), HasSubstr("1 rank looked in vain"));
}

TEST(ReportTest, TellsOfFiles) {
  const e2e::TempDirectory folder;
  const std::string path = folder / "report.json";
  const std::string name = folder / "slow-file";
  const e2e::CommandResult result =
      RunJob({"", {"-n", "2", "--report=" + path}}, {"tests/mpi/ranks/slow", "files", name});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json report = json::parse(ReadFile(path), nullptr, false);
  ASSERT_EQ(report["files"].size(), 1U) << report["files"].dump(1);
  const json& file = report["files"][0];
  EXPECT_EQ(file["name"], name);
  EXPECT_EQ(file["opens"], 2);
  EXPECT_EQ(file["ranks"], 2);
  EXPECT_EQ(file["writes"], 2 * 2005);
  EXPECT_EQ(file["bytes_written"], 2 * (2000 * 10 + 5 * 1000));
  EXPECT_EQ(file["reads"], 2);
  EXPECT_EQ(file["bytes_read"], 200);
  EXPECT_EQ(file["calls"], 2 * (2005 + 1 + 2)) << "open, accesses, close";
  EXPECT_GT(file["seconds"], file["longest_seconds"]);
  EXPECT_LE(file["waited_seconds"], file["seconds"]);
  std::set<std::string> calls;
  for (const json& call : report["calls"]) {
    if (call["call"].is_null()) {  // the calls that no line of their own tells of
      continue;
    }
    calls.insert(call["call"].get<std::string>() +
                 (call.contains("of") ? " of " + call["of"].get<std::string>() : ""));
  }
  for (const char* name : {"MPI_File_open", "MPI_File_write_at", "MPI_File_write_at_all",
                           "MPI_File_read_at", "MPI_Wait of MPI_File_read_at", "MPI_File_close"}) {
    EXPECT_THAT(calls, Contains(name));
  }
}

TEST(ReportTest, ARankThatIsKilledIsInIt) {
  const Reported run = Report({}, "killed");
  EXPECT_NE(run.result.exit_code, 0);
  ASSERT_EQ(run.report["ranks"].size(), 2U) << run.result.err;
  EXPECT_EQ(run.report["measured_ranks"], 2);
  EXPECT_FALSE(run.report["ranks"][1]["ended_well"]);
  EXPECT_FALSE(AdviceOf(run.report, "slow_rank").is_null()) << run.report["advice"].dump(1);
}

TEST(ReportTest, RanksThatNeverCallFerryAreNamed) {
  const e2e::TempDirectory folder;
  const std::string file = folder / "report.json";
  const e2e::CommandResult result = RunJob({"", {"-n", "2", "--report=" + file}}, {"/bin/true"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json report = json::parse(ReadFile(file), nullptr, false);
  ASSERT_EQ(report["ranks"].size(), 2U);
  EXPECT_FALSE(report["ranks"][1]["measured"]);
  EXPECT_EQ(report["ranks"][1]["note"], "never called Ferry");
}

TEST(ReportTest, BeyondTheBoundRanksAreNotMeasuredAndTheReportSaysSo) {
  const Reported run = Report({"--profile_bytes=500000"}, "slow_rank");
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  EXPECT_EQ(run.report["measured_ranks"], 1);
  EXPECT_THAT(run.report["ranks"].dump(), HasSubstr("option profile_bytes"));
}

TEST(ReportTest, ItIsTextOnStandardErrorWithoutAFile) {
  const e2e::CommandResult result =
      RunJob({"", {"-n", "2", "--report"}}, {"tests/mpi/ranks/slow", "slow_rank"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("Report of job "));
  EXPECT_THAT(result.err, HasSubstr("slow_rank: rank 1 came last to"));
  EXPECT_THAT(result.err, HasSubstr("Collectives: who came last"));
}

TEST(ReportTest, APageForBrowsersIsWhole) {
  const e2e::TempDirectory folder;
  const std::string file = folder / "report.html";
  const e2e::CommandResult result =
      RunJob({"", {"-n", "2", "--report=" + file}}, {"tests/mpi/ranks/slow", "slow_rank"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string page = ReadFile(file);
  EXPECT_THAT(page, testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(page, testing::EndsWith("</html>\n"));
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr("rank 1 came last to"));
  for (const char* outside : {"http", "<script", "<link", "src="}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
}

TEST(ReportTest, AFileThatCannotBeWrittenEndsTheJobBeforeItBegins) {
  const e2e::CommandResult result =
      RunJob({"", {"-n", "2", "--report=/nowhere/report.json"}}, {"/bin/echo", "ran"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("/nowhere"));
  EXPECT_EQ(result.out, "");
}

TEST(ReportTest, AnotherSuffixIsRefused) {
  const e2e::CommandResult result = RunJob({"", {"-n", "2", "--report=report.pdf"}}, {"/bin/true"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr(".txt, .json or .html"));
}

// ---- Other hosts --------------------------------------------------------------------------------

// Agents ask their daemons for them.
TEST(ReportTest, RanksOfOtherHostsAreInIt) {
  const e2e::TempDirectory folder;
  const Words hosts = e2e::HostsHere(folder, "10.99.0.1:1,10.99.0.2:2");
  const Reported run = Report(hosts, "slow_rank", 3);
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  EXPECT_EQ(run.report["measured_ranks"], 3) << run.result.err;
  ASSERT_EQ(run.report["nodes"].size(), 2U);
  const json advice = AdviceOf(run.report, "slow_rank");
  ASSERT_FALSE(advice.is_null()) << run.report["advice"].dump(1);
  EXPECT_THAT(advice["sentence"].get<std::string>(), HasSubstr("rank 1 came last to"));
  EXPECT_EQ(run.result.err, "");
}

// The last lines of ranks come, too, though their agents are asked meanwhile.
TEST(ReportTest, TheOutputOfOtherHostsIsWhole) {
  const e2e::TempDirectory folder;
  const std::string file = folder / "report.json";
  Words flags = e2e::HostsHere(folder, "10.99.0.1:2");
  flags.insert(flags.end(), {"-n", "2", "--report=" + file});
  const e2e::CommandResult result = RunJob(
      {"", flags}, {"sh", "-c", "tests/mpi/ranks/slow late_sender; seq 20000; echo end >&2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 40000);
  EXPECT_THAT(result.err, HasSubstr("end\n"));
  EXPECT_EQ(json::parse(ReadFile(file), nullptr, false)["measured_ranks"], 2);
}

// Its ranks end, and its daemon does not answer: the rest of the report is written.
TEST(ReportTest, AHostWhoseDaemonHangsIsNamed) {
  const e2e::TempDirectory folder;
  const std::string file = folder / "report.json";
  const std::string sign = folder / "sign";
  Words flags = e2e::HostsHere(folder, "10.99.0.1:2");
  flags.insert(flags.end(), {"-n", "2", "--grace-ms", "500", "--report=" + file});
  Words arguments = JobOf({"", flags});
  arguments.insert(arguments.end(), {"sh", "-c",
                                     "tests/mpi/ranks/slow late_sender; echo over $FERRY_RANK; "
                                     "while [ ! -e " +
                                         sign + " ]; do sleep 0.1; done"});
  e2e::Command job(arguments);
  ASSERT_TRUE(job.WaitForOutput("over 0") && job.WaitForOutput("over 1"));
  for (const pid_t daemon : job.Find("--ready-fd")) {
    kill(daemon, SIGSTOP);
  }
  std::ofstream(sign) << "go on";
  const e2e::CommandResult result = job.Wait();
  const json report = json::parse(ReadFile(file), nullptr, false);
  EXPECT_EQ(report["measured_ranks"], 0);
  EXPECT_THAT(report["ranks"][0].dump(), HasSubstr("did not answer")) << result.err;
}

TEST(ReportTest, AFolderGetsAPageOfEachJob) {
  const e2e::TempDirectory folder;
  for (int job = 0; job < 2; ++job) {
    const e2e::CommandResult result =
        RunJob({"", {"-n", "1", "--job_reports=" + folder.path()}}, {"tests/mpi/ranks/slow"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
  }
  size_t pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    pages += entry.path().extension() == ".html" ? 1 : 0;
  }
  EXPECT_EQ(pages, 2U);
}

}  // namespace
}  // namespace ferry::mpi_tests

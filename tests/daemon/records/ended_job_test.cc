// The words of records of jobs that ended well, badly and oddly, and how large these may become.
#include "daemon/records/ended_job.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ferry::daemon {
namespace {

using nlohmann::json;
using shm::Statistic;

// A job with `nodes` nodes, one rank on each, of which ours is node 1.
JobRecord MakeRecord(uint32_t nodes) {
  JobRecord job;
  job.spec.id = "job";
  job.spec.owner = 1000;
  job.spec.node = 1;
  job.ranks.resize(nodes);
  job.nodes.resize(nodes);
  for (uint32_t node = 0; node < nodes; ++node) {
    job.spec.node_of_rank.push_back(node);
    job.nodes[node].address = "10.0.0." + std::to_string(node) + ":4000";
  }
  job.own_ranks = {1};
  job.history.began_ns = 1'700'000'000'250'000'000;
  job.history.daemon_cpu_us = 1'000'000;
  job.history.attached = 1;
  return job;
}

json Parse(const EndedJob& job, const std::string& user = "ann") {
  return json::parse("{" + RecordMembers(job, user) + "}");
}

EndedJob End(const JobRecord& job, std::vector<NodeTraffic> traffic = {}) {
  return Account(job,
                 {"node1", 3'500'000, job.history.began_ns + 12'500'000'000, std::move(traffic)});
}

TEST(EndedJobTest, TellsWhoWhenHowAndHowMuch) {
  JobRecord job = MakeRecord(2);
  job.ended.values[static_cast<size_t>(Statistic::kMessagesSent)] = 3;
  job.ended.values[static_cast<size_t>(Statistic::kBytesSent)] = 4096;
  job.ended.values[static_cast<size_t>(Statistic::kPathCellMessages)] = 3;
  job.ended.values[static_cast<size_t>(Statistic::kPathCellBytes)] = 4096;
  job.spec.name = "night run";
  job.spec.program = "heat2d";
  job.spec.slurm_id = "77";
  const EndedJob ended = End(job, {{7, 8, 70, 80}, {}});
  const json record = Parse(ended);
  EXPECT_EQ(record["name"], "night run");
  EXPECT_EQ(record["program"], "heat2d");
  EXPECT_EQ(record["slurm_job"], "77");
  EXPECT_EQ(record["job"], "job");
  EXPECT_EQ(record["uid"], 1000);
  EXPECT_EQ(record["user"], "ann");
  EXPECT_EQ(record["node"], "node1");
  EXPECT_EQ(record["nodes"], 2);
  EXPECT_EQ(record["ranks"], 2);
  EXPECT_EQ(record["local_ranks"], 1);
  EXPECT_EQ(record["attached_ranks"], 1);
  EXPECT_EQ(record["died_ranks"], 0);
  EXPECT_EQ(record["start"], "2023-11-14T22:13:20.250000Z");
  EXPECT_EQ(record["end"], "2023-11-14T22:13:32.750000Z");
  EXPECT_EQ(record["seconds"], 12.5);
  EXPECT_EQ(record["outcome"], "completed");
  EXPECT_FALSE(record.contains("reason"));
  EXPECT_FALSE(record.contains("exit_code"));
  EXPECT_EQ(record["exit_codes"], json({{"unknown", 1}}));
  EXPECT_EQ(record["rank_seconds"], 0);
  EXPECT_FALSE(record.contains("wait_share"));
  EXPECT_FALSE(record.contains("waits"));
  EXPECT_EQ(record["messages_sent"], 3);
  EXPECT_EQ(record["paths"], json({{"cell", {{"messages", 3}, {"bytes", 4096}}}}));
  EXPECT_EQ(record["peer_nodes"], json::parse(R"([{"address": "10.0.0.0:4000",
      "messages_sent": 7, "messages_received": 8, "bytes_sent": 70, "bytes_received": 80}])"));
  EXPECT_EQ(record["daemon_cpu_seconds"], 2.5);
  EXPECT_EQ(Sentence(ended),
            "job job: completed after 12.5 s; 1 of 2 ranks here, sent 3 messages, 4096 bytes");
  EXPECT_EQ(RecordFileName(ended), "20231114T221332.750000Z-job-node1.json");
}

// One rank of 10 s.
JobRecord MakeWaiting() {
  JobRecord job = MakeRecord(1);
  job.spec.node = 0;
  job.history.rank_time.Begin(1'000'000'000);
  job.history.rank_time.End(11'000'000'000);
  job.history.histograms.AddWait(shm::CallName::kMpiRecv, 1'000'000'000);
  job.history.histograms.AddWait(shm::CallName::kMpiRecv, 500'000'000);
  job.history.histograms.AddWait(shm::CallName::kMpiBarrier, 2'500'000'000);
  return job;
}

TEST(EndedJobTest, TellsWhatTheRanksWaitedFor) {
  const EndedJob ended = End(MakeWaiting());
  const json record = Parse(ended);
  EXPECT_EQ(record["rank_seconds"], 10);
  EXPECT_EQ(record["wait_seconds"], 4);
  EXPECT_EQ(record["wait_share"], 0.4);
  EXPECT_EQ(record["waits"], json::parse(R"([
      {"call": "MPI_Barrier", "waits": 1, "seconds": 2.5},
      {"call": "MPI_Recv", "waits": 2, "seconds": 1.5}])"));
  EXPECT_NE(Sentence(ended).find("1 of 1 rank here, waited for 40 % of their time, sent"),
            std::string::npos)
      << Sentence(ended);
}

// A rank may write what it likes, and threads may wait at the same time.
TEST(EndedJobTest, WaitsAreNoLongerThanTheRanks) {
  JobRecord job = MakeWaiting();
  job.history.histograms.AddWait(shm::CallName::kMpiWait, uint64_t{1} << 60);
  EXPECT_EQ(Parse(End(job))["wait_share"], 1);
}

TEST(EndedJobTest, TellsHowTheProcessesEnded) {
  JobRecord job = MakeRecord(1);
  job.own_ranks.assign(6, 0);
  job.history.exits = RankExits{.job = 3, .codes = {{0, 3}, {3, 1}}, .signals = {{9, 1}}};
  const EndedJob ended = End(job);
  const json record = Parse(ended);
  EXPECT_EQ(record["exit_code"], 3);
  EXPECT_EQ(record["exit_codes"], json({{"0", 3}, {"3", 1}, {"signal 9", 1}, {"unknown", 1}}));
  EXPECT_TRUE(Sentence(ended).ends_with("; exit code 3")) << Sentence(ended);
}

TEST(EndedJobTest, MoreExitsThanRanksAreNotBelieved) {
  JobRecord job = MakeRecord(1);
  job.history.exits = RankExits{.job = 3, .codes = {{0, 2}}};
  EXPECT_EQ(Parse(End(job))["exit_codes"], json({{"unknown", 1}}));
  EXPECT_FALSE(Parse(End(job)).contains("exit_code"));
}

TEST(EndedJobTest, ExitCodesOfAJobWithAllOfThemAreFew) {
  JobRecord job = MakeRecord(1);
  job.own_ranks.assign(1000, 0);
  RankExits exits;
  for (int code = 0; code < 256; ++code) {
    exits.codes[code] = code == 7 ? 10 : 1;
  }
  job.history.exits = exits;
  const json told = Parse(End(job))["exit_codes"];
  EXPECT_EQ(told.size(), 18U);
  EXPECT_EQ(told["7"], 10);
  EXPECT_EQ(told["other"], 240);
  EXPECT_EQ(told["unknown"], 1000 - 265);
}

TEST(EndedJobTest, TellsHowItFailed) {
  JobRecord job = MakeRecord(1);
  job.spec.node = 0;
  job.history.died = 1;
  job.history.first_death = {ErrorCode::kPeerDied, "rank 0 of job job (pid 7) died"};
  EXPECT_EQ(Parse(End(job))["outcome"], "failed");
  EXPECT_EQ(Parse(End(job))["reason"], "rank 0 of job job (pid 7) died");

  job.aborted = true;
  job.failure = {ErrorCode::kAborted, "rank 0 of job job aborted it with exit code 3"};
  job.history.exit_code = 3;
  EXPECT_EQ(Parse(End(job))["outcome"], "aborted");
  EXPECT_EQ(Parse(End(job))["exit_code"], 3);

  JobRecord unused = MakeRecord(1);
  unused.history.attached = 0;
  unused.failure = {ErrorCode::kAborted, "job job was destroyed by its launcher"};
  EXPECT_EQ(Parse(End(unused))["outcome"], "unused");
}

TEST(EndedJobTest, ARecordOfAHugeJobIsShort) {
  JobRecord job = MakeRecord(60'000);
  job.history.first_death = {ErrorCode::kPeerDied, std::string(100'000, 'x')};
  std::vector<NodeTraffic> traffic(60'000, {1, 1, 1, 1});
  traffic[77] = {UINT64_MAX / 2, 1, UINT64_MAX / 4, 1};
  const EndedJob ended = End(job, traffic);
  EXPECT_LT(RecordMembers(ended, "ann").size(), 8192U);
  const json record = Parse(ended);
  EXPECT_EQ(record["ranks"], 60'000);
  EXPECT_EQ(record["peer_nodes"].size(), 16U);
  EXPECT_EQ(record["peer_nodes"][0]["address"], "10.0.0.77:4000");
  EXPECT_EQ(record["further_peer_nodes"], json({{"nodes", 59'983},
                                                {"messages_sent", 59'983},
                                                {"messages_received", 59'983},
                                                {"bytes_sent", 59'983},
                                                {"bytes_received", 59'983}}));
}

// A user may call his job as he likes.
TEST(EndedJobTest, OddNamesStayJsonAndFileNames) {
  JobRecord job = MakeRecord(1);
  job.spec.id = "../../etc/\"x\\\xff";
  EndedJob ended = End(job);
  ended.node = "n/1";
  EXPECT_NE(Parse(ended, "a\"b")["job"], "");
  EXPECT_EQ(RecordFileName(ended),
            "20231114T221332.750000Z-%2e.%2f..%2fetc%2f%22x%5c%ff-n%2f1.json");
  job.spec.id = std::string(63, '/');
  ended = End(job);
  ended.node = std::string(63, '/');
  EXPECT_LE(RecordFileName(ended).size(), 255U);
}

}  // namespace
}  // namespace ferry::daemon

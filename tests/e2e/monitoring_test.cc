// A real ferryd, as an administrator's Prometheus, Grafana, load balancer and log reader meet it,
// with a job of ferryrun: metrics that promtool accepts, series that a real Prometheus stores,
// names that dashboard and alert rules use, the record of a job that has ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/unique_fd.h"
#include "tests/e2e/command.h"
#include "tests/e2e/hosts_here.h"
#include "tests/support/http_get.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using tests::Get;
using tests::ReadFile;
using tests::ThreadOfUser;

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kPromtool[] = "/usr/bin/promtool";
constexpr char kPrometheus[] = "/usr/bin/prometheus";
constexpr char kAlerts[] = "packaging/monitoring/ferry_alerts.yml";
constexpr char kDashboard[] = "packaging/monitoring/ferry_dashboard.json";
constexpr uid_t kAnn = 1234567;

#define SKIP_WITHOUT(program) \
  if (!fs::exists(program)) GTEST_SKIP() << program << " is not there: apt-get install prometheus"

int FreePort() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

std::set<std::string> FamiliesOf(const std::string& page) {
  std::set<std::string> families;
  const std::regex type("# TYPE ([a-z_]+) ");
  for (auto at = std::sregex_iterator(page.begin(), page.end(), type); at != std::sregex_iterator();
       ++at) {
    families.insert((*at)[1]);
  }
  return families;
}

// A ferryd with two ranks of a job that wait for each other.
class MonitoringTest : public testing::Test {
 protected:
  void StartDaemon(const Words& flags = {}) {
    fs::permissions(directory_.path(), fs::perms(0755));
    log_ = directory_ / "log";
    daemon_ = e2e::StartDaemon(Joined({"daemon/ferryd", "--metrics_address=127.0.0.1:0",
                                       "--log_format=json", "--log_file=" + log_},
                                      flags),
                               directory_ / "run");
    std::ifstream info(directory_ / "run/ferryd.json");
    address_ = json::parse(info)["metrics_address"];
  }
  void StartJob() {
    job_ = std::make_unique<Command>(Words{kFerryrun, "-n", "2", "tests/e2e/ranks/waits", "circle"},
                                     Words{"FERRY_RUN_DIRECTORY=" + directory_ / "run"});
    ASSERT_TRUE(UnderWay(job_.get(), 2));
  }
  void TearDown() override {
    if (job_ != nullptr) {
      job_->Signal(SIGTERM);
      job_->WaitCleanly();
    }
    if (daemon_ != nullptr) {
      daemon_->Signal(SIGTERM);
      EXPECT_EQ(daemon_->WaitCleanly().exit_code, 0);
    }
  }
  std::string Page() const { return Get(address_, "/metrics"); }
  // The value of a query, as text; empty if it has none.
  static std::string Query(const std::string& prometheus, const std::string& expression) {
    const std::string text = Get(prometheus, "/api/v1/query?query=" + expression);
    const json answer = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!answer.is_object() || answer["data"]["result"].empty()) {
      return "";
    }
    return answer["data"]["result"][0]["value"][1];
  }
  // The lines of the log that tell such an event.
  std::vector<json> Events(const std::string& event) const {
    std::vector<json> lines;
    std::ifstream file(log_);
    for (std::string text; std::getline(file, text);) {
      const json line = json::parse(text);
      if (line.contains("event") && line["event"] == event) {
        lines.push_back(line);
      }
    }
    return lines;
  }

  const TempDirectory directory_;
  std::string log_;
  std::string address_;
  std::unique_ptr<Command> daemon_;
  std::unique_ptr<Command> job_;
};

TEST_F(MonitoringTest, PromtoolHasNoComplaints) {
  SKIP_WITHOUT(kPromtool);
  StartDaemon();
  StartJob();
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("ferry_job_sessions{job="));
  EXPECT_THAT(page, HasSubstr("\nferry_progress_turn_seconds_count "));
  EXPECT_THAT(page, testing::Not(HasSubstr("\nferry_progress_turn_seconds_count 0\n")));
  const CommandResult result = RunCommand({kPromtool, "check", "metrics"}, {}, page);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out + result.err, "");
}

// Without Prometheus: no name is misspelt, or has been renamed.
TEST_F(MonitoringTest, WhatDashboardAndAlertsNameIsThere) {
  StartDaemon();
  const std::set<std::string> families = FamiliesOf(Page());
  ASSERT_GT(families.size(), 100U);
  size_t names = 0;
  const auto expect = [&](const std::string& expression) {
    // Neither in quotes, nor a label in front of an equals sign.
    const std::string bare = std::regex_replace(expression, std::regex("\"[^\"]*\""), "");
    const std::regex name("\\b(ferry|process)_[a-z_]+\\b");
    for (auto at = std::sregex_iterator(bare.begin(), bare.end(), name);
         at != std::sregex_iterator(); ++at, ++names) {
      const std::string family =
          std::regex_replace(at->str(), std::regex("_(bucket|sum|count)$"), "");
      EXPECT_TRUE(families.contains(family)) << at->str() << " in " << expression;
    }
  };
  const json dashboard = json::parse(ReadFile(kDashboard));
  for (const json& panel : dashboard["panels"]) {
    ASSERT_FALSE(panel["targets"].empty());
    for (const json& target : panel["targets"]) {
      expect(target["expr"]);
    }
  }
  std::istringstream rules(ReadFile(kAlerts));
  bool is_expression = false;  // and may go on for several lines
  for (std::string line; std::getline(rules, line);) {
    const bool begins = line.find(" expr: ") != line.npos;
    is_expression =
        begins || (is_expression && !std::regex_search(line, std::regex("^ *(- )?[a-z]+:")));
    if (is_expression) {
      expect(line);
    }
  }
  EXPECT_GT(names, 30U) << "or this tests nothing";
}

TEST(AlertsTest, FireWhenTheyShould) {
  SKIP_WITHOUT(kPromtool);
  const TempDirectory directory;
  fs::copy_file(kAlerts, directory / "ferry_alerts.yml");
  fs::copy_file("tests/e2e/ferry_alerts_test.yml", directory / "ferry_alerts_test.yml");
  CommandResult result = RunCommand({kPromtool, "check", "rules", directory / "ferry_alerts.yml"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  result = RunCommand({kPromtool, "test", "rules", directory / "ferry_alerts_test.yml"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_F(MonitoringTest, APrometheusStoresTheSeries) {
  SKIP_WITHOUT(kPrometheus);
  StartDaemon();
  StartJob();
  std::ofstream(directory_ / "prometheus.yml")
      << "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
      << "rule_files: [" << fs::absolute(kAlerts).string() << "]\n"
      << "scrape_configs:\n- job_name: ferry\n  static_configs: [{targets: [\"" << address_
      << "\"]}]\n";
  const std::string prometheus = "127.0.0.1:" + std::to_string(FreePort());
  Command server({kPrometheus, "--config.file=" + directory_ / "prometheus.yml",
                  "--storage.tsdb.path=" + directory_ / "tsdb",
                  "--web.listen-address=" + prometheus, "--log.level=warn"});
  EXPECT_TRUE(Eventually([&] { return Query(prometheus, "ferry_sessions") == "2"; }));
  EXPECT_EQ(Query(prometheus, "up"), "1");
  EXPECT_EQ(Query(prometheus, "ferry_job_sessions{uid=%22" + std::to_string(geteuid()) + "%22}"),
            "2");
  const json rules = json::parse(Get(prometheus, "/api/v1/rules"));
  EXPECT_EQ(rules["data"]["groups"].size(), 2U);
  server.Signal(SIGTERM);
  const CommandResult result = server.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(MonitoringTest, OthersSeeNoJobByCurl) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to become another user";
  }
  StartDaemon();
  StartJob();
  EXPECT_THAT(Page(), HasSubstr("ferry_job_sessions{job="));
  const ThreadOfUser ann(kAnn);
  EXPECT_THAT(Page(), HasSubstr("\nferry_sessions 2\n"));
  EXPECT_THAT(Page(), testing::Not(HasSubstr("{job=")));
}

TEST_F(MonitoringTest, HealthFollowsADrain) {
  StartDaemon();
  StartJob();
  const json ready = json::parse(Get(address_, "/health"));
  EXPECT_EQ(ready["status"], "ready");
  EXPECT_EQ(ready["ranks"], 2);
  const Words ferryctl = {"tools/ferryctl/ferryctl", "--run_directory=" + directory_ / "run"};
  RunCommand(Joined(ferryctl, {"drain", "--no-wait"}));
  EXPECT_THAT(tests::Ask(address_, "GET /health"),
              testing::AllOf(HasSubstr(" 503 "), HasSubstr("\"status\":\"draining\"")));
  EXPECT_EQ(json::parse(Get(address_, "/health/live"))["status"], "draining");
  ASSERT_EQ(Events("drain").size(), 1U);
  EXPECT_THAT(Events("drain")[0]["message"],
              HasSubstr("uid " + std::to_string(geteuid()) + " asked for it"));
}

TEST_F(MonitoringTest, AJobThatHasEndedLeavesARecord) {
  fs::create_directory(directory_ / "records");
  fs::permissions(directory_ / "records", fs::perms(0755));
  StartDaemon({"--job_records=" + directory_ / "records"});
  const Words variables = {"FERRY_RUN_DIRECTORY=" + directory_ / "run"};
  RunWell({kFerryrun, "-n", "3", "tests/e2e/ranks/point_to_point"}, variables);
  const std::string folder = directory_ / ("records/" + std::to_string(geteuid()));
  const auto files = [&] {
    Words found;
    if (fs::exists(folder)) {
      for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() == ".json") {
          found.push_back(entry.path());
        }
      }
    }
    return found;
  };
  ASSERT_TRUE(Eventually([&] { return files().size() == 1; }));
  const json record = json::parse(ReadFile(files()[0]));
  EXPECT_EQ(record["outcome"], "completed") << record;
  EXPECT_EQ(record["uid"], geteuid());
  EXPECT_EQ(record["ranks"], 3);
  EXPECT_EQ(record["attached_ranks"], 3);
  EXPECT_GT(record["messages_sent"], 0);
  EXPECT_GT(record["paths"]["cell"]["bytes"], 0);
  EXPECT_EQ(record["exit_code"], 0);
  EXPECT_EQ(record["exit_codes"], json({{"0", 3}}));
  EXPECT_GT(record["rank_seconds"], 0);
  const std::vector<json> ends = Events("job_end");
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0]["job"], record["job"]);
  EXPECT_EQ(ends[0]["record"]["bytes_sent"], record["bytes_sent"]);
}

// Ranks that fail, ranks that wait for long, and those of a node that an agent has started.
TEST_F(MonitoringTest, RecordsTellExitCodesAndWaits) {
  const std::string records = directory_ / "records";
  fs::create_directory(records);
  fs::permissions(records, fs::perms(0755));
  const auto record_of = [&](const Words& flags, int exit_code) {
    const std::string folder = records + "/" + std::to_string(geteuid());
    fs::remove_all(folder);
    const CommandResult result =
        RunCommand(Joined({kFerryrun, "--job_records=" + records, "--private"}, flags));
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    json found;
    if (fs::exists(folder)) {
      for (const auto& entry : fs::directory_iterator(folder)) {
        found = json::parse(ReadFile(entry.path()));
      }
    }
    return found;
  };
  const json failed = record_of({"-n", "1", "sh", "-c", "tests/e2e/ranks/ends; exit 3"}, 3);
  EXPECT_EQ(failed["exit_code"], 3) << failed;
  EXPECT_EQ(failed["exit_codes"], json({{"3", 1}}));

  const json hung =
      record_of({"-n", "2", "--timeout", "3", "tests/e2e/ranks/waits", "circle"}, 124);
  EXPECT_EQ(hung["exit_code"], 124) << hung;
  EXPECT_EQ(hung["exit_codes"], json({{"signal " + std::to_string(SIGTERM), 2}}));
  EXPECT_GT(hung["wait_share"], 0.5);
  EXPECT_EQ(hung["waits"][0]["call"], "ferry_recv");

  const json far = record_of(
      Joined(HostsHere(directory_, "10.99.0.1:2"), {"-n", "2", "tests/e2e/ranks/point_to_point"}),
      0);
  EXPECT_EQ(far["exit_code"], 0) << far;
  EXPECT_EQ(far["exit_codes"], json({{"0", 2}}));
}

// The two ends agree, whatever way the messages took.
TEST_F(MonitoringTest, RecordsOfTwoNodesTellWhatWentBetweenThem) {
  fs::create_directory(directory_ / "records");
  fs::permissions(directory_ / "records", fs::perms(0755));
  RunWell({kFerryrun, "-n", "4", "--nodes", "2", kByDaemons,
           "--job_records=" + directory_ / "records", "tests/e2e/ranks/point_to_point"});
  std::vector<json> records;
  const std::string folder = directory_ / ("records/" + std::to_string(geteuid()));
  ASSERT_TRUE(fs::exists(folder));
  for (const auto& entry : fs::directory_iterator(folder)) {
    records.push_back(json::parse(ReadFile(entry.path())));
  }
  ASSERT_EQ(records.size(), 2U);
  ASSERT_EQ(records[0]["peer_nodes"].size(), 1U) << records[0];
  ASSERT_EQ(records[1]["peer_nodes"].size(), 1U) << records[1];
  const json& one = records[0]["peer_nodes"][0];
  const json& other = records[1]["peer_nodes"][0];
  EXPECT_GT(one["messages_sent"], 10) << one;
  EXPECT_GT(one["bytes_sent"], 1 << 20) << one;
  EXPECT_EQ(one["messages_sent"], other["messages_received"]);
  EXPECT_EQ(one["messages_received"], other["messages_sent"]);
  EXPECT_EQ(one["bytes_sent"], other["bytes_received"]);
  EXPECT_EQ(one["bytes_received"], other["bytes_sent"]);
}

}  // namespace
}  // namespace ferry::e2e

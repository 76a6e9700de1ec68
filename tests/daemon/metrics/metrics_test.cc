// The metrics page as Prometheus reads it, over HTTP from a control server with ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/net_address.h"
#include "common/unique_fd.h"
#include "daemon/metrics/metrics_page.h"
#include "shm/counters.h"
#include "shm/histograms.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_daemon.h"
#include "tests/support/failing_accept.h"
#include "tests/support/http_get.h"

namespace ferry::daemon {
namespace {

using tests::Ask;
using tests::ThreadOfUser;

// The least that the kernel keeps for a reader, in segments as short as any.
constexpr int kSmall = 536;
constexpr uint64_t kPauseNs = 50'000'000;  // at least, between two attempts to accept
constexpr uid_t kAnn = 12345;
constexpr uid_t kBob = 54321;

UniqueFd Connect(const std::string& address, int buffer_bytes = 0) {
  return tests::ConnectTo(address, buffer_bytes);
}

void Write(const UniqueFd& fd, const std::string& text) {
  EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

std::string Scrape(const std::string& address) { return tests::Get(address, "/metrics"); }

// The text format: https://prometheus.io/docs/instrumenting/exposition_formats
struct Page {
  std::map<std::string, std::string> types;  // by family
  std::map<std::string, std::string> helps;  // by family
  std::map<std::string, double> values;      // by name{labels}
  std::set<std::string> families_of_values;
};

Page Parse(const std::string& text) {
  Page page;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash;
    std::string kind;
    std::string family;
    if (line.starts_with("# ")) {
      words >> hash >> kind >> family;
      std::string rest;
      std::getline(words >> std::ws, rest);
      EXPECT_TRUE((kind == "TYPE" ? page.types : page.helps).emplace(family, rest).second) << line;
    } else if (!line.empty()) {
      const size_t blank = line.rfind(' ');
      const std::string name = line.substr(0, blank);
      EXPECT_TRUE(page.values.emplace(name, std::stod(line.substr(blank + 1))).second) << line;
      page.families_of_values.insert(name.substr(0, name.find('{')));
    }
  }
  return page;
}

// The labels of a job of this user, as they stand between the braces.
std::string OwnJob(const std::string& id) {
  const passwd* const user = getpwuid(geteuid());
  return "job=\"" + id + "\",uid=\"" + std::to_string(geteuid()) + "\"" +
         (user == nullptr ? "" : ",user=\"" + std::string(user->pw_name) + "\"");
}

// That of a series: a histogram has three.
std::string FamilyOf(const std::string& series, const Page& page) {
  for (const std::string suffix : {"_bucket", "_sum", "_count"}) {
    const std::string family =
        series.substr(0, series.size() - std::min(series.size(), suffix.size()));
    if (const auto type = page.types.find(family);
        series.ends_with(suffix) && type != page.types.end() && type->second == "histogram") {
      return family;
    }
  }
  return series;
}

bool IsOurs(const std::string& family) {
  return family.starts_with("ferry_") || family.starts_with("process_");
}

class MetricsTest : public ::testing::Test {
 protected:
  MetricsTest() : daemon_(Options("127.0.0.1:0")) {
    address_ = daemon_.GetStatus().metrics_address();
  }

  config::Options Options(const std::string& address) const {
    config::Options options = TestOptions(directory_.path() + "/a");
    options.metrics_address = address;
    return options;
  }
  static void Count(TestRank* rank, shm::Statistic id, uint64_t n) {
    shm::Statistics(rank->session()->counters).Add(id, n);
  }
  Page Look() const { return Parse(Scrape(address_)); }

  TemporaryDirectory directory_;
  TestDaemon daemon_;
  std::string address_;
};

TEST_F(MetricsTest, PortZeroTakesOneAndStatusTellsIt) {
  EXPECT_TRUE(address_.starts_with("127.0.0.1:")) << address_;
  EXPECT_NE(address_, "127.0.0.1:0");
  EXPECT_NE(Scrape(address_), "");
}

TEST_F(MetricsTest, EveryFamilyFollowsTheConventions) {
  const TestRank rank = daemon_.StartRank();
  const Page page = Look();
  EXPECT_GT(page.types.size(), 40U);
  for (const auto& [family, type] : page.types) {
    if (!IsOurs(family)) {
      continue;  // the HTTP server's own
    }
    EXPECT_EQ(family.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), family.npos) << family;
    EXPECT_TRUE(type == "counter" || type == "gauge" || type == "histogram") << family;
    EXPECT_EQ(family.ends_with("_total"), type == "counter") << family;
    const std::string stem = type == "counter" ? family.substr(0, family.size() - 6) : family;
    for (const std::string unit : {"bytes", "seconds"}) {  // last, and base units only
      EXPECT_TRUE(stem.find("_" + unit) == stem.npos || stem.ends_with("_" + unit)) << family;
    }
    for (const char* not_a_unit : {"_ms", "_ns", "_us", "_kb", "_mb"}) {
      EXPECT_FALSE(stem.ends_with(not_a_unit)) << family;
    }
    const auto help = page.helps.find(family);
    ASSERT_NE(help, page.helps.end()) << family;
    EXPECT_TRUE(help->second.size() > 10 && help->second.ends_with('.')) << family;
  }
  for (const std::string& family : page.families_of_values) {
    EXPECT_TRUE(!IsOurs(family) || page.types.contains(FamilyOf(family, page))) << family;
  }
  EXPECT_EQ(page.values.at("ferry_sessions"), 1);
  EXPECT_EQ(page.values.at("ferry_job_sessions{" + OwnJob("job") + "}"), 1);
  EXPECT_EQ(page.values.at("ferry_nic_writes_total{nic=\"0\",domain=\"fake0\"}"), 7);
  EXPECT_EQ(page.values.at("ferry_nic_writes_total{nic=\"1\",domain=\"fake1\"}"), 8);
  EXPECT_EQ(page.values.at("ferry_deferred_busy_entries{nic=\"0\",domain=\"fake0\"}"), 3);
  EXPECT_EQ(page.values.at("ferry_deferred_busy_entries{nic=\"1\",domain=\"fake1\"}"), 4);
  EXPECT_EQ(page.values.at("ferry_registrations"), 3);
  EXPECT_EQ(page.values.at("ferry_registration_hits_total"), 5);
  EXPECT_GT(page.values.at("process_start_time_seconds"), 1.6e9);
  EXPECT_GT(page.values.at("process_resident_memory_bytes"), 0);
}

// To readers of OpenMetrics a counter x_total is the family x.
TEST_F(MetricsTest, EachFamilyHasOneType) {
  const TestRank rank = daemon_.StartRank();
  const Page page = Look();
  for (const auto& [family, type] : page.types) {
    if (type == "counter") {
      EXPECT_FALSE(page.types.contains(family.substr(0, family.size() - 6))) << family;
    }
  }
}

TEST_F(MetricsTest, SeriesOfJobsHaveTheNamesThatTheirLauncherGave) {
  control::CreateJobRequest request = DaemonClient::JobRequest("x", {0}, {daemon_.address()}, 0);
  request.set_name("a \"b\"");
  request.set_program("heat2d");
  request.set_slurm_id("77");
  ASSERT_TRUE(daemon_.CreateJob(request).ok());
  EXPECT_TRUE(Look().values.contains("ferry_job_sessions{" + OwnJob("x") +
                                     ",name=\"a \\\"b\\\"\",program=\"heat2d\",slurm_job=\"77\"}"));
}

// One label that is no UTF-8 would make Prometheus refuse the whole page.
TEST(MetricsPageTest, OddNamesOfJobsSpoilNoPage) {
  MetricsSample sample;
  sample.nics.emplace_back();
  sample.jobs.emplace_back().name = "\xc3\xa9\xff\xc3|\xed\xa0\x80|\xf0\x9f\x98\x80|\xe2\x82";
  UserNames users;
  EXPECT_THAT(MetricsText(sample, {.sees_all_jobs = true}, &users),
              testing::HasSubstr("name=\"\xc3\xa9??|???|\xf0\x9f\x98\x80|??\""));
}

TEST_F(MetricsTest, TurnsOfTheProgressThreadAreAHistogram) {
  const Page page = Look();  // of the fake data plane's turns
  const std::string name = "ferry_progress_turn_seconds";
  EXPECT_EQ(page.types.at(name), "histogram");
  EXPECT_EQ(page.values.at(name + "_bucket{le=\"1e-06\"}"), 1);
  EXPECT_EQ(page.values.at(name + "_bucket{le=\"2e-06\"}"), 1);
  EXPECT_EQ(page.values.at(name + "_bucket{le=\"4e-06\"}"), 3);
  EXPECT_EQ(page.values.at(name + "_bucket{le=\"+Inf\"}"), 4);
  EXPECT_EQ(page.values.at(name + "_count"), 4);
  EXPECT_EQ(page.values.at(name + "_sum"), 3600);
}

// Words that ranks write into their sessions.
TEST_F(MetricsTest, MessagesAndWaitsAreHistograms) {
  auto [one, other] = daemon_.StartTwoRanks();
  for (const uint64_t bytes : {0, 0, 1, 8, 9, 4096}) {
    shm::CountSize(shm::HistogramsOf(*one.session()), bytes);
  }
  shm::CountSize(shm::HistogramsOf(*other.session()), uint64_t{1} << 40);
  Count(&one, shm::Statistic::kBytesSent, 4114);
  shm::CountWait(shm::HistogramsOf(*one.session()), shm::CallName::kMpiRecv, 3'000);
  shm::CountWait(shm::HistogramsOf(*other.session()), shm::CallName::kMpiRecv, 1'000'000'000);
  shm::CountWait(shm::HistogramsOf(*other.session()), shm::CallName::kMpiWait, 500'000'000);
  Page page = Look();
  const auto expect = [&](const std::string& family, const std::string& labels, double value) {
    const auto all = page.values.find(family + (labels.empty() ? "" : "{" + labels + "}"));
    ASSERT_NE(all, page.values.end()) << family << labels;
    EXPECT_EQ(all->second, value) << family << labels;
    const auto of_job = page.values.find("ferry_job_" + family.substr(6) + "{" + OwnJob("job") +
                                         (labels.empty() ? "" : "," + labels) + "}");
    ASSERT_NE(of_job, page.values.end()) << family << labels;
    EXPECT_EQ(of_job->second, value) << family << labels;
  };
  const std::string sizes = "ferry_message_size_bytes";
  EXPECT_EQ(page.types.at(sizes), "histogram");
  expect(sizes + "_bucket", "le=\"0\"", 2);
  expect(sizes + "_bucket", "le=\"8\"", 4);
  expect(sizes + "_bucket", "le=\"16\"", 5);
  expect(sizes + "_bucket", "le=\"2048\"", 5);
  expect(sizes + "_bucket", "le=\"4096\"", 6);
  expect(sizes + "_bucket", "le=\"2147483648\"", 6);
  expect(sizes + "_bucket", "le=\"+Inf\"", 7);
  expect(sizes + "_count", "", 7);
  expect(sizes + "_sum", "", 4114);
  const std::string waits = "ferry_wait_seconds";
  EXPECT_EQ(page.types.at("ferry_job_wait_seconds"), "histogram");
  expect(waits + "_bucket", "call=\"MPI_Recv\",le=\"2e-06\"", 0);
  expect(waits + "_bucket", "call=\"MPI_Recv\",le=\"4e-06\"", 1);
  expect(waits + "_bucket", "call=\"MPI_Recv\",le=\"+Inf\"", 2);
  expect(waits + "_count", "call=\"MPI_Recv\"", 2);
  expect(waits + "_sum", "call=\"MPI_Recv\"", 1.000003);
  expect(waits + "_sum", "call=\"MPI_Wait\"", 0.5);
  const std::string time = "ferry_rank_seconds_total";
  EXPECT_GT(page.values.at(time), 0);

  // They stay when the ranks and the job end.
  const double before = page.values.at(time);
  one.HangUp();
  other.HangUp();
  while (daemon_.GetStatus().jobs_size() != 0) {
    std::this_thread::yield();
  }
  page = Look();
  EXPECT_EQ(page.values.at(sizes + "_count"), 7);
  EXPECT_EQ(page.values.at(waits + "_count{call=\"MPI_Recv\"}"), 2);
  const double after = page.values.at(time);
  EXPECT_GE(after, before);
  EXPECT_EQ(Look().values.at(time), after) << "no rank is there";
  EXPECT_FALSE(page.families_of_values.contains("ferry_job_wait_seconds_sum"));
}

TEST_F(MetricsTest, CountersNeverShrinkAcrossTheEndsOfRanksAndJobs) {
  auto [one, other] = daemon_.StartTwoRanks();
  Count(&one, shm::Statistic::kBytesSent, 1000);
  Count(&other, shm::Statistic::kBytesSent, 30);
  Count(&one, shm::Statistic::kPathCellMessages, 5);
  Page page = Look();
  EXPECT_EQ(page.values.at("ferry_sent_bytes_total"), 1030);
  EXPECT_EQ(page.values.at("ferry_job_sent_bytes_total{" + OwnJob("job") + "}"), 1030);
  EXPECT_EQ(page.values.at("ferry_path_messages_total{path=\"cell\"}"), 5);
  EXPECT_EQ(page.values.at("ferry_job_path_messages_total{" + OwnJob("job") + ",path=\"cell\"}"),
            5);

  ASSERT_TRUE(one.Detach().status().ok());
  page = Look();
  EXPECT_EQ(page.values.at("ferry_sessions"), 1);
  EXPECT_EQ(page.values.at("ferry_sent_bytes_total"), 1030);
  EXPECT_EQ(page.values.at("ferry_job_sent_bytes_total{" + OwnJob("job") + "}"), 1030);

  other.HangUp();
  while (daemon_.GetStatus().jobs_size() != 0) {
    std::this_thread::yield();
  }
  page = Look();
  EXPECT_EQ(page.values.at("ferry_sent_bytes_total"), 1030);
  EXPECT_EQ(page.values.at("ferry_path_messages_total{path=\"cell\"}"), 5);
  EXPECT_EQ(page.values.at("ferry_ranks_attached_total"), 2);
  EXPECT_EQ(page.values.at("ferry_ranks_died_total"), 1);
  // A job that is gone leaves no series behind, so that their number stays bounded.
  EXPECT_FALSE(page.families_of_values.contains("ferry_job_sent_bytes_total"));
}

TEST_F(MetricsTest, BadAddressesAreConfigurationErrors) {
  const auto expect = [&](const std::string& address, const std::string& access, ErrorCode code,
                          const std::string& words) {
    config::Options options = Options(address);
    options.run_directory = directory_.path() + "/b";
    options.metrics_access = access;
    FakeDataPlane plane;
    const auto server = ControlServer::Start(options, plane, nullptr);
    ASSERT_FALSE(server.ok()) << address;
    ExpectError(server.status(), code, words);
  };
  expect("9464", "loopback", ErrorCode::kConfiguration, "metrics_address: \"9464\" is not an");
  expect("127.0.0.1:http", "loopback", ErrorCode::kConfiguration, "write HOST:PORT");
  expect("0.0.0.0:0", "loopback", ErrorCode::kConfiguration, "metrics_access = \"anyone\"");
  expect("192.0.2.1:0", "anyone", ErrorCode::kInvalidArgument, "cannot listen at 192.0.2.1:0");
  expect(address_, "loopback", ErrorCode::kAlreadyExists, "choose another metrics_address");
  for (const char* readers : {"ann,,bob", "10.1.0.0/99", "a b", "::1::"}) {
    config::Options options = Options("127.0.0.1:0");
    options.run_directory = directory_.path() + "/b";
    options.metrics_readers = readers;
    FakeDataPlane plane;
    const auto server = ControlServer::Start(options, plane, nullptr);
    ASSERT_FALSE(server.ok()) << readers;
    ExpectError(server.status(), ErrorCode::kConfiguration, "metrics_readers: ");
  }
}

// ---- Readers ----

class MetricsReadersTest : public MetricsTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root, to become several users";
    }
    for (const auto& [job, uid] : {std::pair("of_ann", kAnn), std::pair("of_bob", kBob)}) {
      control::CreateJobRequest request =
          DaemonClient::JobRequest(job, {0}, {daemon_.address()}, 0);
      request.set_uid(uid);
      ASSERT_TRUE(daemon_.CreateJob(request).ok());
    }
  }
  // The jobs that a reader sees, who is that user.
  static std::set<std::string> SeenBy(uid_t uid, const std::string& address) {
    const ThreadOfUser user(uid);
    const Page page = Parse(Scrape(address));
    EXPECT_EQ(page.values.at("ferry_jobs"), 2) << "what is the node's all see";
    std::set<std::string> jobs;
    for (const auto& [name, value] : page.values) {
      if (const size_t at = name.find("job=\""); at != name.npos) {
        jobs.insert(name.substr(at + 5, name.find('"', at + 5) - at - 5));
        EXPECT_TRUE(name.starts_with("ferry_job_")) << name;
      } else {
        EXPECT_FALSE(name.starts_with("ferry_job_")) << name;
        EXPECT_EQ(name.find("uid="), name.npos) << name;
      }
    }
    return jobs;
  }
  using Jobs = std::set<std::string>;
};

TEST_F(MetricsReadersTest, AUserSeesHisOwnJobsOnly) {
  EXPECT_EQ(SeenBy(kAnn, address_), Jobs{"of_ann"});
  EXPECT_EQ(SeenBy(kBob, address_), Jobs{"of_bob"});
  EXPECT_EQ(SeenBy(kBob + 1, address_), Jobs{});
  EXPECT_EQ(SeenBy(0, address_), (Jobs{"of_ann", "of_bob"}));
}

TEST_F(MetricsReadersTest, ThoseWhomTheOptionNamesSeeAll) {
  config::Options options = Options("127.0.0.1:0");
  options.run_directory = directory_.path() + "/b";
  options.metrics_readers = "daemon, " + std::to_string(kAnn) + ",10.1.0.0/16";
  TestDaemon daemon(options);
  for (const auto& [job, uid] : {std::pair("of_ann", kAnn), std::pair("of_bob", kBob)}) {
    control::CreateJobRequest request = DaemonClient::JobRequest(job, {0}, {daemon.address()}, 0);
    request.set_uid(uid);
    ASSERT_TRUE(daemon.CreateJob(request).ok());
  }
  const std::string address = daemon.GetStatus().metrics_address();
  EXPECT_EQ(SeenBy(kAnn, address), (Jobs{"of_ann", "of_bob"}));
  EXPECT_EQ(SeenBy(kBob, address), Jobs{"of_bob"});
  ASSERT_NE(getpwnam("daemon"), nullptr);
  EXPECT_EQ(SeenBy(getpwnam("daemon")->pw_uid, address), (Jobs{"of_ann", "of_bob"}));
}

// ---- Health ----

TEST_F(MetricsTest, HealthTellsBalancersWhetherItTakesJobs) {
  const TestRank rank = daemon_.StartRank();
  std::string answer = Ask(address_, "GET /health");
  EXPECT_TRUE(answer.starts_with("HTTP/1.0 200 ")) << answer;
  EXPECT_THAT(answer, testing::HasSubstr("Content-Type: application/json\r\n"));
  nlohmann::json health = nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n")));
  EXPECT_EQ(health,
            nlohmann::json({{"status", "ready"}, {"node", "a"}, {"jobs", 1}, {"ranks", 1}}));
  EXPECT_EQ(answer.find('\n', answer.find("\r\n\r\n") + 4), answer.size() - 1) << "one line";

  control::DrainRequest drain;
  ASSERT_TRUE(daemon_.Tell(&AdminStub::Drain, drain).ok());
  answer = Ask(address_, "GET /health");
  EXPECT_TRUE(answer.starts_with("HTTP/1.0 503 ")) << answer;
  EXPECT_THAT(answer, testing::HasSubstr("\"status\":\"draining\""));
  answer = Ask(address_, "GET /health/live");
  EXPECT_TRUE(answer.starts_with("HTTP/1.0 200 ")) << "its jobs go on: " << answer;
}

TEST_F(MetricsTest, AProgressThreadThatDoesNotTurnIsSick) {
  daemon_.plane.set_stuck(true);
  for (const char* page : {"GET /health", "GET /health/live"}) {
    const std::string answer = Ask(address_, page);
    EXPECT_TRUE(answer.starts_with("HTTP/1.0 503 ")) << answer;
    EXPECT_THAT(answer, testing::HasSubstr("\"status\":\"sick\""));
    EXPECT_THAT(answer, testing::HasSubstr("the progress thread does not answer"));
  }
  daemon_.plane.set_stuck(false);
  EXPECT_TRUE(Ask(address_, "GET /health").starts_with("HTTP/1.0 200 "));
}

// ---- Bad requests ----

TEST_F(MetricsTest, OtherPagesAndRequestsAreRefused) {
  EXPECT_TRUE(Ask(address_, "GET /metrics").starts_with("HTTP/1.0 200 "))
      << "or this tests nothing";
  EXPECT_TRUE(Ask(address_, "GET /").starts_with("HTTP/1.0 404 "));
  EXPECT_TRUE(Ask(address_, "POST /metrics").starts_with("HTTP/1.0 405 "));
  EXPECT_EQ(Ask(address_, "GET /" + std::string(9'000, 'x')), "");
}

TEST_F(MetricsTest, RequestsThatNeverEndKeepNobodyOut) {
  std::vector<UniqueFd> half_sent;
  for (int i = 0; i < 200; ++i) {
    half_sent.push_back(Connect(address_));
    Write(half_sent.back(), "GET /metrics HTTP/1.0\r\nHost:");
    if (i % 20 == 0) {
      EXPECT_NE(Scrape(address_), "") << i;
    }
  }
  char byte = 0;
  EXPECT_EQ(read(half_sent.front().get(), &byte, 1), 0) << "it is hung up on";
}

// Of long pages, which do not fit into the kernel's memory for a client that takes little.
TEST_F(MetricsTest, AnswersThatNobodyReadsKeepNobodyOut) {
  for (int job = 0; job < 50; ++job) {
    ASSERT_TRUE(daemon_.CreateJob(std::string(50, 'j') + std::to_string(job), 1).ok());
  }
  std::vector<UniqueFd> unread;
  for (int i = 0; i < 100; ++i) {
    unread.push_back(Connect(address_, kSmall));
    Write(unread.back(), "GET /metrics HTTP/1.0\r\n\r\n");
    if (i % 20 == 19) {
      EXPECT_GT(Scrape(address_).size(), 200'000U) << i;
    }
  }
  // It is hung up on, while its answer waits for its reader or for the page, and the kernel keeps
  // nothing of the answer.
  char bytes[4096];
  ssize_t size = 0;
  size_t got = 0;
  while ((size = read(unread.front().get(), bytes, sizeof(bytes))) > 0) {
    got += static_cast<size_t>(size);
  }
  EXPECT_LT(got, 100'000U);
  EXPECT_TRUE(size == 0 || errno == ECONNRESET) << std::strerror(errno);
}

// Nor does it burn a processor meanwhile, while the connection waits.
TEST_F(MetricsTest, WithoutRoomForAConnectionItTriesAgainLater) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, ENOBUFS}) {
    SCOPED_TRACE(std::strerror(error));
    tests::FailAccepts(ParseHostPort(address_)->port, error, 3);
    EXPECT_NE(Scrape(address_), "");
    const std::vector<uint64_t> times_ns = tests::TimesOfFailedAccepts();
    ASSERT_EQ(times_ns.size(), 3U);
    EXPECT_GE(times_ns[1] - times_ns[0], kPauseNs);
    EXPECT_GE(times_ns[2] - times_ns[1], kPauseNs);
  }
}

TEST_F(MetricsTest, AnyoneAllowsOtherAddresses) {
  config::Options options = Options("0.0.0.0:0");
  options.run_directory = directory_.path() + "/b";
  options.metrics_access = "anyone";
  TestDaemon open(options);
  EXPECT_NE(Scrape(open.GetStatus().metrics_address()), "");
}

}  // namespace
}  // namespace ferry::daemon

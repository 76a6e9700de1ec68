// The metrics page as Prometheus reads it, over HTTP from a control server with ranks.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/unique_fd.h"
#include "shm/counters.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_daemon.h"

namespace ferry::daemon {
namespace {

// The least that the kernel keeps for a reader, in segments as short as any.
constexpr int kSmall = 536;

// `buffer_bytes`: of the kernel's memory for it; 0: as usual.
UniqueFd Connect(const std::string& address, int buffer_bytes = 0) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (buffer_bytes != 0) {
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes));
    setsockopt(fd.get(), IPPROTO_TCP, TCP_MAXSEG, &buffer_bytes, sizeof(buffer_bytes));
  }
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoul(address.substr(address.rfind(':') + 1))));
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) {
    fd.Reset();
  }
  return fd;
}

void Write(const UniqueFd& fd, const std::string& text) {
  EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

// All that the HTTP server at 127.0.0.1:port answers to a request of `target`.
std::string Ask(const std::string& address, const std::string& target) {
  const UniqueFd fd = Connect(address);
  if (!fd.valid()) {
    return "";
  }
  Write(fd, target + " HTTP/1.0\r\nHost: " + address + "\r\n\r\n");
  std::string answer;
  char bytes[4096];
  for (ssize_t size = 0; (size = read(fd.get(), bytes, sizeof(bytes))) > 0;) {
    answer.append(bytes, static_cast<size_t>(size));
  }
  return answer;
}

// The page, without HTTP.
std::string Scrape(const std::string& address) {
  const std::string answer = Ask(address, "GET /metrics");
  const size_t body = answer.find("\r\n\r\n");
  return body == answer.npos ? "" : answer.substr(body + 4);
}

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
    EXPECT_TRUE(type == "counter" || type == "gauge") << family << " " << type;
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
    EXPECT_TRUE(!IsOurs(family) || page.types.contains(family)) << family;
  }
  EXPECT_EQ(page.values.at("ferry_sessions"), 1);
  EXPECT_EQ(page.values.at("ferry_job_sessions{job=\"job\"}"), 1);
  EXPECT_EQ(page.values.at("ferry_nic_writes_total{nic=\"0\",domain=\"fake0\"}"), 7);
  EXPECT_EQ(page.values.at("ferry_nic_writes_total{nic=\"1\",domain=\"fake1\"}"), 8);
  EXPECT_EQ(page.values.at("ferry_deferred_busy_entries{nic=\"0\",domain=\"fake0\"}"), 3);
  EXPECT_EQ(page.values.at("ferry_deferred_busy_entries{nic=\"1\",domain=\"fake1\"}"), 4);
  EXPECT_EQ(page.values.at("ferry_registrations"), 3);
  EXPECT_EQ(page.values.at("ferry_registration_hits_total"), 5);
  EXPECT_GT(page.values.at("process_start_time_seconds"), 1.6e9);
  EXPECT_GT(page.values.at("process_resident_memory_bytes"), 0);
}

TEST_F(MetricsTest, CountersNeverShrinkAcrossTheEndsOfRanksAndJobs) {
  auto [one, other] = daemon_.StartTwoRanks();
  Count(&one, shm::Statistic::kBytesSent, 1000);
  Count(&other, shm::Statistic::kBytesSent, 30);
  Count(&one, shm::Statistic::kPathCellMessages, 5);
  Page page = Look();
  EXPECT_EQ(page.values.at("ferry_sent_bytes_total"), 1030);
  EXPECT_EQ(page.values.at("ferry_job_sent_bytes_total{job=\"job\"}"), 1030);
  EXPECT_EQ(page.values.at("ferry_path_messages_total{path=\"cell\"}"), 5);
  EXPECT_EQ(page.values.at("ferry_job_path_messages_total{job=\"job\",path=\"cell\"}"), 5);

  ASSERT_TRUE(one.Detach().status().ok());
  page = Look();
  EXPECT_EQ(page.values.at("ferry_sessions"), 1);
  EXPECT_EQ(page.values.at("ferry_sent_bytes_total"), 1030);
  EXPECT_EQ(page.values.at("ferry_job_sent_bytes_total{job=\"job\"}"), 1030);

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
  EXPECT_FALSE(page.values.contains("ferry_job_sent_bytes_total{job=\"job\"}"));
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
}

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
  char bytes[4096];
  ssize_t size = 0;
  while ((size = read(unread.front().get(), bytes, sizeof(bytes))) > 0) {
  }
  EXPECT_EQ(size, -1);
  EXPECT_EQ(errno, ECONNRESET) << "it is hung up on, and nothing of its answer is kept";
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

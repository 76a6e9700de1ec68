#include "tools/display/top.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace ferry::tools {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

void AddSession(uint32_t rank, uint32_t pid, uint64_t messages, uint64_t bytes, TopSample* sample) {
  control::SessionStatus* session = sample->sessions.add_sessions();
  session->set_job_id("job");
  session->set_rank(rank);
  session->set_pid(pid);
  session->set_state("joined");
  session->set_messages_sent(messages);
  session->set_bytes_sent(bytes);
}

void AddCounter(const std::string& scope, const std::string& name, uint64_t value,
                TopSample* sample) {
  control::CounterValue* counter = sample->counters.add_counters();
  counter->set_scope(scope);
  counter->set_name(name);
  counter->set_value(value);
}

TopSample SampleAt(uint64_t time_ns) {
  TopSample sample;
  sample.time_ns = time_ns;
  return sample;
}

TEST(RatesTest, AreDifferencesOverTime) {
  TopSample before = SampleAt(1 * kSecond);
  TopSample after = SampleAt(3 * kSecond);
  AddSession(0, 7, 100, 1000, &before);
  AddSession(0, 7, 300, 5000, &after);
  before.status.set_cpu_time_us(1'000'000);
  after.status.set_cpu_time_us(1'500'000);
  before.nics.add_nics()->set_bytes_sent(10);
  after.nics.add_nics()->set_bytes_sent(30);
  const TopRates rates = RatesBetween(before, after);
  EXPECT_EQ(rates.seconds, 2);
  EXPECT_EQ(rates.cpu_share, 0.25);
  EXPECT_EQ(rates.nic_sent_bytes, 10);
  ASSERT_EQ(rates.sessions.size(), 1U);
  EXPECT_EQ(rates.sessions[0].name, "job.0");
  EXPECT_EQ(rates.sessions[0].sent_messages, 100);
  EXPECT_EQ(rates.sessions[0].sent_bytes, 2000);
}

TEST(RatesTest, ANewSessionBeganAtZero) {
  TopSample before = SampleAt(0);
  TopSample after = SampleAt(kSecond);
  AddSession(0, 7, 900, 0, &before);
  AddSession(0, 8, 50, 0, &after);  // another process of the same name
  AddSession(1, 9, 20, 0, &after);
  const TopRates rates = RatesBetween(before, after);
  ASSERT_EQ(rates.sessions.size(), 2U);
  EXPECT_EQ(rates.sessions[0].sent_messages, 50);
  EXPECT_EQ(rates.sessions[1].sent_messages, 20);
}

TEST(RatesTest, ARestartedDaemonBeganAtZero) {
  TopSample before = SampleAt(0);
  TopSample after = SampleAt(kSecond);
  before.status.set_cpu_time_us(9'000'000);
  after.status.set_cpu_time_us(100'000);
  EXPECT_EQ(RatesBetween(before, after).cpu_share, 0.1);
}

TEST(RatesTest, NoTimeBetweenMakesNoRate) {
  TopSample before = SampleAt(kSecond);
  TopSample after = SampleAt(kSecond);
  AddSession(0, 7, 100, 1000, &after);
  const TopRates rates = RatesBetween(before, after);
  EXPECT_EQ(rates.seconds, 0);
  EXPECT_EQ(rates.sessions[0].sent_messages, 0);
}

TEST(RatesTest, PathsAreSummedOverRanks) {
  TopSample before = SampleAt(0);
  TopSample after = SampleAt(kSecond);
  AddCounter("job job rank 0", "path_cell_messages", 10, &before);
  AddCounter("job job rank 0", "path_cell_messages", 30, &after);
  AddCounter("job job rank 1", "path_cell_messages", 5, &after);
  AddCounter("job job rank 0", "path_cell_bytes", 8000, &after);
  AddCounter("job job rank 0", "path_rdma_bytes", 0, &after);  // never used
  AddCounter("job job rank 0", "messages_sent", 35, &after);   // no path
  const TopRates rates = RatesBetween(before, after);
  ASSERT_EQ(rates.paths.size(), 1U);
  EXPECT_EQ(rates.paths[0].path, "cell");
  EXPECT_EQ(rates.paths[0].messages, 25);
  EXPECT_EQ(rates.paths[0].bytes, 8000);
}

TEST(TopViewTest, ShowsRatesBackPressureAndErrors) {
  TopSample after = SampleAt(kSecond);
  AddSession(0, 7, 12'500, 1 << 20, &after);
  after.sessions.mutable_sessions(0)->set_queued(3);
  after.sessions.mutable_sessions(0)->set_credits_out(32);
  control::RankCall* call = after.sessions.mutable_sessions(0)->add_calls();
  call->set_name("MPI_Barrier");
  call->set_phrase("MPI_Barrier on rows, number 7");
  call->set_for_ms(12'000);
  AddCounter("job job rank 0", "errors", 4, &after);
  AddCounter("job job rank 0", "path_inline_messages", 12'500, &after);
  after.status.mutable_node()->set_name("n0");
  after.status.set_state("serving");
  after.status.set_cpu_time_us(33'000);
  control::NicStatus* nic = after.nics.add_nics();
  nic->set_staging_blocks(16);
  nic->set_staging_busy(5);
  nic->set_staging_waits(2);
  const View view = TopView(after.status, RatesBetween(SampleAt(0), after));
  EXPECT_NE(view.text.find("node n0: serving, up 0 ms\nferryd uses 3.3 % of a core"),
            std::string::npos)
      << view.text;
  EXPECT_NE(view.text.find("staging: 5 of 16 blocks busy, 2 transfers wait"), std::string::npos);
  EXPECT_NE(view.text.find("job.0  joined  12.5 k  1 MiB"), std::string::npos) << view.text;
  EXPECT_NE(view.text.find("inline      12.5 k"), std::string::npos) << view.text;
  EXPECT_NE(view.text.find("  WAITS IN\n"), std::string::npos) << view.text;
  EXPECT_NE(view.text.find("  MPI_Barrier on rows, number 7 (12 s)\n"), std::string::npos);
  EXPECT_EQ(view.json["sessions"][0]["calls"][0]["for_ms"], 12'000);
  EXPECT_EQ(view.json["sessions"][0]["queued"], 3);
  EXPECT_EQ(view.json["sessions"][0]["credits_out"], 32);
  EXPECT_EQ(view.json["sessions"][0]["errors_per_second"], 4);
  EXPECT_EQ(view.json["paths"][0]["messages_per_second"], 12'500);
}

TEST(TopViewTest, FitsIntoTheTerminalAndLeavesOutColumnsOfZeros) {
  TopRates rates;
  SessionRates& session = rates.sessions.emplace_back();
  session.name = "a1b2c3d4e5f6.1023";
  session.state = "attached";
  session.sent_messages = session.received_messages = 12'500;
  session.sent_bytes = session.received_bytes = 1e9;
  rates.nic_sent_messages = rates.nic_received_messages = 12'500;
  rates.nic_sent_bytes = rates.nic_received_bytes = 1e9;
  rates.nic_outstanding = 100'000;
  const auto widest = [&] {
    std::istringstream lines(TopView(control::StatusReply(), rates).text);
    size_t width = 0;
    for (std::string line; std::getline(lines, line);) {
      width = std::max(width, line.size());
    }
    return width;
  };
  EXPECT_LE(widest(), 80U);
  EXPECT_EQ(TopView(control::StatusReply(), rates).text.find("QUEUED"), std::string::npos);
  rates.sessions[0].queued = 3;
  rates.sessions[0].credits_out = 64;
  rates.sessions[0].unexpected = 100'000;
  rates.sessions[0].errors = 4;
  EXPECT_LE(widest(), 80U);
  for (const char* title : {"QUEUED", "CREDITS OUT", "UNEXPECTED", "ERRORS/s"}) {
    EXPECT_NE(TopView(control::StatusReply(), rates).text.find(title), std::string::npos) << title;
  }
}

TEST(TopViewTest, OfManyRanksTheBusiestAreListed) {
  TopRates rates;
  for (uint32_t rank = 0; rank < 1024; ++rank) {
    SessionRates& session = rates.sessions.emplace_back();
    session.name = "job." + std::to_string(rank);
    session.state = "joined";
    session.sent_bytes = rank == 700 ? 1 << 20 : 1024;
    if (rank != 700) {
      session.calls.Add()->set_name("MPI_Recv");
    }
  }
  rates.sessions[900].errors = 2;
  const std::string text = TopView(control::StatusReply(), rates).text;
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 50) << text;
  EXPECT_NE(text.find("1024 ranks: 1024 joined; out 2.0 MiB/s, in 0 B/s; 1023 wait in MPI_Recv\n"),
            std::string::npos)
      << text;
  EXPECT_LT(text.find("job.900 "), text.find("job.700 ")) << "errors come first\n" << text;
  EXPECT_LT(text.find("job.700 "), text.find("job.0 ")) << text;
  EXPECT_NE(text.find("and 1000 more (--all lists each rank)\n"), std::string::npos);
  const std::string all = TopView(control::StatusReply(), rates, /*all=*/true).text;
  EXPECT_GT(std::count(all.begin(), all.end(), '\n'), 1024);
}

TEST(TopViewTest, SaysThatNobodyIsThere) {
  const TopSample sample = SampleAt(0);
  EXPECT_NE(TopView(sample.status, RatesBetween(sample, sample)).text.find("no rank is attached"),
            std::string::npos);
}

}  // namespace
}  // namespace ferry::tools

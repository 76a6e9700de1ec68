// The link between two nodes is cut for a while, in a network namespace of the test's own: briefly,
// and no rank notices, not even in the middle of a long message; for longer, and the ranks are
// told, then go on over the link that is back. Skipped where the machine lets us make no namespace.
//
// The ranks print "rank R: cut at NS" and "rank R: back at NS", and end by SIGUSR1 with "rank R:
// all right".
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "tests/faults/cut_fixture.h"
#include "tests/support/processes.h"

namespace ferry::faults {
namespace {

using e2e::CommandResult;
using e2e::Eventually;
using e2e::kByDaemons;
using e2e::RunCommand;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// A cut that ranks sit out. TCP tries again after twice the time that it has waited, so that its
// first data over the returned link may come as late again.
constexpr int kBriefMs = 6000;

// ---- Between messages

constexpr char kEndure[] = "tests/faults/ranks/endure";
constexpr char kOneSided[] = "tests/faults/ranks/one_sided";
constexpr char kStreams[] = "tests/faults/ranks/streams";

constexpr char kByLinks[] = "--direct_links=always";

class LinkCutTest : public CutTest {
 protected:
  void SetUp() override {
    CutTest::SetUp();
    if (!IsSkipped()) {
      Begin();
    }
  }
  virtual void Begin() {
    StartJob(2, {kByDaemons}, {kEndure});
    AwaitRanks();
  }
  void AwaitRanks() {
    ASSERT_TRUE(UnderWay(job_.get(), 2));
    FindRanks(kEndure, 2);
  }

  void CutFor(std::chrono::milliseconds duration) {
    SetLink("down");
    std::this_thread::sleep_for(duration);  // the fault itself
    SetLink("up");
    back_ns_ = MonotonicNs();
  }
  void CutBriefly() {
    CutFor(Scaled(kBriefMs));
    EXPECT_THAT(Finish(), Not(HasSubstr(": cut at")));
  }
  void CutTwice();

  uint64_t back_ns_ = 0;
};

void LinkCutTest::CutTwice() {
  for (const int cut_ms : {25'000, 20'000}) {
    const std::string before = job_->Output();
    CutFor(Scaled(cut_ms));
    for (const std::string rank : {"rank 0", "rank 1"}) {
      EXPECT_NE(When(rank + ": cut at ", before), 0U);
      const uint64_t resumed_ns = When(rank + ": back at ", before);
      std::printf("%s goes on %.1f s after the link is back\n", rank.c_str(),
                  (static_cast<double>(resumed_ns) - static_cast<double>(back_ns_)) / 1e9);
    }
  }
  Finish();
}

TEST_F(LinkCutTest, BrieflyAndNobodyNotices) { CutBriefly(); }

// Twice, and they survive both.
TEST_F(LinkCutTest, ForLongerAndRanksAreToldThenGoOn) { CutTwice(); }

// The ranks' own connection is cut, too.
class DirectLinkCutTest : public LinkCutTest {
 protected:
  void Begin() override {
    StartJob(2, {kByLinks}, {kEndure});
    AwaitRanks();
  }
};

TEST_F(DirectLinkCutTest, BrieflyAndNobodyNotices) { CutBriefly(); }
TEST_F(DirectLinkCutTest, ForLongerAndRanksAreToldThenGoOn) { CutTwice(); }

// The ranks have a direct link, which a firewall begins to swallow, though not the daemons'
// connections. The ranks' sockets have ports of a range of their own.
class SwallowedLinkTest : public LinkCutTest {
 protected:
  void Begin() override {
    const auto with_ports = [](const std::string& range) {
      return "echo " + range + " > /proc/sys/net/ipv4/ip_local_port_range";
    };
    StartJob(2, {"--direct_links=always"},
             {"sh", "-c", with_ports("40000 49999") + " && exec \"$@\"", "sh", kEndure}, 4000,
             "ip link set lo up && ip rule add pref 100 lookup local && ip rule del pref 0 && " +
                 with_ports("20000 29999"));
    AwaitRanks();
  }
  // Messages that ranks here have sent by links.
  uint64_t SentByLinks() {
    uint64_t sent = 0;
    for (const std::string& directory : Daemons(*job_)) {
      const CommandResult links = RunCommand(
          {"tools/ferryctl/ferryctl", "--run_directory=" + directory, "links", "--json"});
      const json reply = json::parse(links.out);
      for (const json& rank : reply["totals"]) {
        sent += rank["messages_sent"].get<uint64_t>();
      }
    }
    return sent;
  }
};

TEST_F(SwallowedLinkTest, RanksAreToldAndGoOnByTheDaemons) {
  ASSERT_TRUE(Eventually([&] { return SentByLinks() > 100; }));
  Ip({"rule", "add", "pref", "50", "ipproto", "tcp", "sport", "40000-49999", "dport", "40000-49999",
      "blackhole"});
  for (const std::string rank : {"rank 0", "rank 1"}) {
    EXPECT_NE(When(rank + ": cut at "), 0U);
    EXPECT_NE(When(rank + ": back at "), 0U);
  }
  Finish();
}

// Streams wait for matched requests: a pair does not outlive the link, and its waits end.
class StreamCutTest : public LinkCutTest {
 protected:
  void Begin() override {
    StartJob(2, {}, {kStreams, "2"});
    ASSERT_TRUE(UnderWay(job_.get(), 2));
    FindRanks(kStreams, 2);
  }
};

TEST_F(StreamCutTest, WaitsEndAndSayWhy) {
  SetLink("down");
  When("rank 0: error ");
  When("rank 1: error ");
  ExpectErrors(job_->Wait().out, 2, {kNodeUnreachable, kLinkDown});
}

// Ranks that work in each other's memory.
class OneSidedCutTest : public LinkCutTest {
 protected:
  void Begin() override { Begin(kByDaemons); }
  void Begin(const char* links) {
    StartJob(2, {links}, {kOneSided, "endure"});
    ASSERT_TRUE(UnderWay(job_.get(), 2));
    FindRanks(kOneSided, 2);
  }
  void CutOnce();
};

void OneSidedCutTest::CutOnce() {
  CutFor(Scaled(20'000));
  for (const std::string rank : {"rank 0", "rank 1"}) {
    EXPECT_NE(When(rank + ": cut at "), 0U);
    EXPECT_NE(When(rank + ": back at "), 0U);
  }
  Finish();
}

class DirectOneSidedCutTest : public OneSidedCutTest {
 protected:
  void Begin() override { OneSidedCutTest::Begin(kByLinks); }
};

TEST_F(OneSidedCutTest, CallsSaySoAndPassAgain) { CutOnce(); }
TEST_F(DirectOneSidedCutTest, CallsSaySoAndPassAgain) { CutOnce(); }

// Nodes have a second NIC, whose address goes.
class RailCutTest : public LinkCutTest {
 protected:
  void Begin() override {
    StartJob(2, {kByDaemons, "--fabric_rails=10.77.0.1", "--rail_stripe_bytes=65536"},
             {kEndure, "timeouts"}, kTimeoutMs,
             "ip link set lo up && ip addr add 10.77.0.1/32 dev lo");
    AwaitRanks();
  }
  static constexpr int kTimeoutMs = 2400;
  static constexpr int kUsersTimeoutMs = 20'000;
};

// Transfers on it fail by their deadline, once: then the first NIC carries everything.
TEST_F(RailCutTest, RanksAreToldOnceAtMostAndGoOnOverTheOther) {
  Ip({"addr", "del", "10.77.0.1/32", "dev", "lo"});
  // Two time-outs and a half: the fault itself.
  std::this_thread::sleep_for(
      std::chrono::milliseconds((HasUsersTimeouts() ? kUsersTimeoutMs : kTimeoutMs) * 5 / 2));
  const std::string out = Finish();
  for (const std::string rank : {"rank 0: cut at", "rank 1: cut at"}) {
    EXPECT_EQ(out.find(rank), out.rfind(rank)) << out;
  }
}

// ---- In the middle of a collective call on a file

constexpr char kFilesCut[] = "tests/mpi/ranks/files_cut";
constexpr int kProcAborted = 58;  // MPI_ERR_PROC_ABORTED
constexpr int kOther = 16;        // MPI_ERR_OTHER

class FileCutTest : public CutTest {
 protected:
  void StartCalls(int ranks, const char* links, const std::string& way,
                  const std::string& commands = "ip link set lo up") {
    StartJob(ranks, {links}, {kFilesCut, folder_.path(), way}, 4000, commands);
    ASSERT_TRUE(UnderWay(job_.get(), ranks));
    FindRanks(kFilesCut, ranks);
  }
  void ExpectAnErrorOfEach() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      EXPECT_TRUE(job_->WaitForOutput("rank " + std::to_string(rank) + ": error "))
          << job_->Output();
    }
    for (const pid_t rank : ranks_) {
      kill(rank, SIGUSR1);
    }
    ExpectErrors(job_->Wait().out, ranks_.size(), {kOther, kProcAborted});
  }

 private:
  const e2e::TempDirectory folder_;
};

// The parameter: the links, and what the program is told.
class FileBothCutTest : public FileCutTest,
                        public testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(FileBothCutTest, EachRankGetsAnError) {
  ASSERT_NO_FATAL_FAILURE(StartCalls(4, GetParam().first, GetParam().second));
  SetLink("down");
  std::this_thread::sleep_for(Scaled(20'000));  // the fault itself
  SetLink("up");
  ExpectAnErrorOfEach();
}

INSTANTIATE_TEST_SUITE_P(Ways, FileBothCutTest,
                         testing::Values(std::pair(kByDaemons, "blocking"),
                                         std::pair(kByDaemons, "background"),
                                         std::pair(kByLinks, "blocking")),
                         [](const auto& way) {
                           return way.param.second + std::string(way.param.first == kByDaemons
                                                                     ? "ByDaemons"
                                                                     : "ByLinks");
                         });

// Nothing passes between two of three nodes any more, while the third one sees nothing of that.
class FilePairCutTest : public FileCutTest, public testing::WithParamInterface<const char*> {
 protected:
  FilePairCutTest() { nodes_ = 3; }

  void Rule(const char* preference, const e2e::Words& ports, const e2e::Words& action) {
    Ip(e2e::Joined(e2e::Joined({"rule", "add", "pref", preference, "ipproto", "tcp"}, ports),
                   action));
  }
  // Other connections that there are go on; between the two there will be no new ones, either.
  void CutBetween(pid_t one, pid_t other) {
    const Sockets of_one = SocketsOf(one, false);
    const Sockets of_other = SocketsOf(other, false);
    for (const auto& [from, to] : SocketsOf(one, true).connected) {
      const bool is_between =
          (of_one.connected.contains({from, to}) && of_other.connected.contains({to, from})) ||
          (of_other.connected.contains({from, to}) && of_one.connected.contains({to, from}));
      if (!is_between) {
        Rule("40", {"sport", std::to_string(from), "dport", std::to_string(to)},
             {"lookup", "local"});
      }
    }
    for (const Sockets* const sockets : {&of_one, &of_other}) {
      for (const unsigned port : sockets->listening) {
        Rule("50", {"sport", std::to_string(port)}, {"blackhole"});
        Rule("50", {"dport", std::to_string(port)}, {"blackhole"});
      }
    }
  }
};

TEST_P(FilePairCutTest, RanksOfTheThirdNodeGetAnErrorToo) {
  ASSERT_NO_FATAL_FAILURE(StartCalls(6, kByDaemons, GetParam(), kRulesMaySwallow));
  const std::vector<pid_t> daemons = DaemonPids(*job_, 3);
  ASSERT_THAT(daemons, SizeIs(3));
  CutBetween(daemons[1], daemons[2]);
  ExpectAnErrorOfEach();
}

INSTANTIATE_TEST_SUITE_P(Ways, FilePairCutTest, testing::Values("blocking", "background"),
                         [](const auto& way) { return std::string(way.param); });

// ---- In the middle of a long message

constexpr char kProgram[] = "tests/faults/ranks/long_message";

constexpr uint64_t kLongBytes = 256ULL << 20;
constexpr int kMiddle = 500;  // of the 1025 blocks of its reads
constexpr int kWindow = 4;    // of them under way at a time
constexpr int kReceiver = 3;  // the sender is rank 0
constexpr int kBystanders[] = {1, 2, 4, 5};

// The long message goes from private to private memory, so that all stages take part. In the middle
// all the reads that may be under way stop; they go on when the link is cut.
class LongMessageCutTest : public CutTest {
 protected:
  json Ask(const std::string& directory, const e2e::Words& words) {
    const e2e::Words ferryctl = {"tools/ferryctl/ferryctl", "--run_directory=" + directory,
                                 "--json"};
    return json::parse(RunCommand(e2e::Joined(ferryctl, words)).out, nullptr, false);
  }
  json Nic(const std::string& directory) { return Ask(directory, {"nics"})["nics"][0]; }
  static bool Stall(const json& faults) {
    return std::all_of(faults["faults"].begin(), faults["faults"].end(),
                       [](const json& fault) { return fault["state"] == "stalls"; });
  }

  void StartLong() {
    std::string faults;
    for (int read = kMiddle; read < kMiddle + kWindow; ++read) {
      faults += (faults.empty() ? "" : ",") + ("rndv_get.read:" + std::to_string(read)) + ":stall";
    }
    // The first data over the returned link waits for TCP to try again, for as long as the cut
    // lasted.
    StartJob(6, {kByDaemons, "--faults=" + faults}, {kProgram, std::to_string(kLongBytes)}, 10'000);
    for (const int rank : kBystanders) {
      ASSERT_TRUE(job_->WaitForOutput("rank " + std::to_string(rank) + ": under way\n"));
    }
    ASSERT_NO_FATAL_FAILURE(FindRanks(kProgram, 6));
    daemons_ = Daemons(*job_);
    ASSERT_THAT(daemons_, SizeIs(2));
    ASSERT_TRUE(Eventually([&] { return Stall(Ask(daemons_[1], {"faults"})); }));
    json nic;
    EXPECT_TRUE(Eventually([&] {
      nic = Nic(daemons_[1]);
      return nic["staging_busy"] == kWindow;
    })) << nic;
    EXPECT_GT(nic["bytes_received"], kLongBytes / 4) << nic;
    EXPECT_LT(nic["bytes_received"], kLongBytes * 3 / 4) << nic;
    memfds_ = Memfds();
  }
  void CutInTheMiddle() {
    SetLink("down");
    Ask(daemons_[1], {"faults", "--release"});
    ExpectBystandersGoOn();
  }
  // Each bystander reports an exchange that ends after this begins.
  void ExpectBystandersGoOn() {
    for (const int rank : kBystanders) {
      const std::string said = "rank " + std::to_string(rank) + ": exchanged ";
      const size_t before = Count(said);
      kill(ranks_[static_cast<size_t>(rank)], SIGUSR2);
      EXPECT_TRUE(Eventually([&] { return Count(said) > before; })) << job_->Output();
    }
  }
  size_t Count(const std::string& text) {
    const std::string out = job_->Output();
    size_t count = 0;
    for (size_t at = out.find(text); at != std::string::npos; at = out.find(text, at + 1)) {
      ++count;
    }
    return count;
  }
  // Waits until both ends have passed so many long messages.
  void ExpectPassed(int messages) {
    for (const int rank : {0, kReceiver}) {
      EXPECT_TRUE(job_->WaitForOutput("rank " + std::to_string(rank) + ": passed " +
                                      std::to_string(messages) + "\n"))
          << job_->Output();
    }
  }
  void PassAnother(int messages) {
    kill(ranks_[0], SIGUSR2);
    ExpectPassed(messages);
  }
  std::vector<size_t> Memfds() {
    std::vector<size_t> counts;
    for (const pid_t pid : job_->Find("--ready-fd")) {
      counts.push_back(tests::MemfdsOf(pid).size());
    }
    return counts;
  }
  // Called between two messages.
  void ExpectNothingLeft() {
    for (const std::string& directory : daemons_) {
      json nic;
      EXPECT_TRUE(Eventually([&] {
        nic = Nic(directory);
        return nic["staging_busy"] == 0 && nic["staging_waits"] == 0 && nic["outstanding"] == 0;
      })) << nic;
      const json registrations = Ask(directory, {"status"})["registrations"];
      EXPECT_EQ(registrations["waiting"], 0) << registrations;
      EXPECT_EQ(registrations["refusals"], 0) << registrations;
    }
    EXPECT_EQ(Memfds(), memfds_);
  }

  e2e::Words daemons_;
  std::vector<size_t> memfds_;  // by daemon, in the middle of the first message
};

TEST_F(LongMessageCutTest, BrieflyAndItResumes) {
  ASSERT_NO_FATAL_FAILURE(StartLong());
  const uint64_t cut_ns = MonotonicNs();
  CutInTheMiddle();
  const std::chrono::nanoseconds so_far(MonotonicNs() - cut_ns);
  std::this_thread::sleep_for(Scaled(kBriefMs) - so_far);  // the fault itself
  EXPECT_EQ(Count(": passed "), 0U);
  SetLink("up");
  ExpectPassed(1);
  const json nic = Nic(daemons_[1]);
  EXPECT_EQ(nic["errors"], 0) << nic;
  EXPECT_GE(nic["bytes_received"], kLongBytes) << nic;
  ExpectNothingLeft();
  PassAnother(2);
  ExpectNothingLeft();
  EXPECT_THAT(Finish(), Not(HasSubstr(": cut at")));
}

TEST_F(LongMessageCutTest, ForLongerAndBothAreToldThenTheNextOnePasses) {
  ASSERT_NO_FATAL_FAILURE(StartLong());
  CutInTheMiddle();
  for (const char* rank : {"rank 0", "rank 3"}) {
    EXPECT_NE(When(rank + std::string(": cut at ")), 0U);
  }
  EXPECT_EQ(Count(": passed "), 0U);
  ExpectBystandersGoOn();
  SetLink("up");
  for (const char* rank : {"rank 0", "rank 3"}) {
    EXPECT_NE(When(rank + std::string(": back at ")), 0U);
  }
  ExpectPassed(1);
  ExpectNothingLeft();
  PassAnother(2);
  ExpectNothingLeft();
  const std::string out = Finish();
  for (const int rank : kBystanders) {
    EXPECT_THAT(out, Not(HasSubstr("rank " + std::to_string(rank) + ": cut")));
  }
}

}  // namespace
}  // namespace ferry::faults

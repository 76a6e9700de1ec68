// Reports of jobs, from what ranks write about themselves to the three forms: right sums, and no
// trust in what comes.
#include "tools/profile/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/profile/profile.h"
#include "tools/profile/rank_profile.h"

namespace ferry::tools {
namespace {

using client::CallNote;
using shm::CallName;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kRanks = 2;
constexpr bool kThreads = false;  // one thread calls

// A call of a rank, as front ends describe theirs.
struct TestCall : CallNote {
  TestCall(CallName name, int32_t peer, uint64_t bytes)
      : CallNote(&DescribeIt), name_of(name), peer(peer), bytes(bytes) {}
  TestCall(Describe describe, CallName name, uint64_t bytes)
      : CallNote(describe), name_of(name), peer(shm::kCallNoRank), bytes(bytes) {}

  const CallName name_of;
  const int32_t peer;
  const uint64_t bytes;

  static void DescribeIt(const CallNote& note, shm::CallDescription* description) {
    const auto& call = static_cast<const TestCall&>(note);
    description->name = call.name_of;
    description->peer = call.peer;
    description->bytes = call.bytes;
    description->flags = shm::kCallHasBytes | shm::kCallHasGroup;
    description->group = 5;
    description->write_name = [](const void*, char(&name)[shm::kCallGroupNameBytes]) {
      std::strcpy(name, "rows");
    };
  }
};

// The memory of a measured rank.
class Segment {
 public:
  explicit Segment(uint32_t rank) : bytes_(sizeof(shm::ProfileHeader) + shm::ProfileBytes(kRanks)) {
    header().magic = shm::kProfileMagic;
    header().version = shm::kProfileVersion;
    header().rank = rank;
    header().job_size = kRanks;
    header().peer_count = kRanks;
    header().profile_offset = sizeof(shm::ProfileHeader);
    header().profile_bytes = shm::ProfileBytes(kRanks);
    header().trace_offset = bytes_;
    header().begin_ns = 1000 * kMs;
    header().end_ns = 2000 * kMs;
  }

  shm::ProfileHeader& header() { return *reinterpret_cast<shm::ProfileHeader*>(memory_.get()); }
  shm::ProfileLayout& layout() {
    return *reinterpret_cast<shm::ProfileLayout*>(memory_.get() + sizeof(shm::ProfileHeader));
  }
  std::string Text() const { return {reinterpret_cast<const char*>(memory_.get()), bytes_}; }
  StatusOr<RankProfile> Read(uint32_t rank = 0) const {
    RankCollector collector;
    collector.Add(0, Text(), bytes_ + sizeof(shm::ProfileAppendix));
    return collector.Take(rank, kRanks);
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  const uint64_t bytes_;
  const std::unique_ptr<std::byte, Free> memory_ = [this] {
    void* const memory = std::aligned_alloc(128, bytes_);
    std::memset(memory, 0, bytes_);
    return std::unique_ptr<std::byte, Free>(static_cast<std::byte*>(memory));
  }();
};

void Carry(client::Profile* profile, TestCall* call, uint64_t number = 0, bool collective = false) {
  call->entered_ns = 1;  // long ago: CLOCK_MONOTONIC is what it takes
  call->has_number = collective;
  call->number = number;
  profile->End(call, false);
}

// ---- What ranks write ---------------------------------------------------------------------------

TEST(ReportTest, SumsCallsByNameCommunicatorAndPeer) {
  Segment segment(0);
  client::Profile profile(&segment.layout(), kRanks, &kThreads);
  for (int i = 0; i < 3; ++i) {
    TestCall send(CallName::kMpiSend, 1, 100);
    Carry(&profile, &send);
  }
  TestCall other(CallName::kMpiSend, 0, 7);
  Carry(&profile, &other);
  const auto read = segment.Read();
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_THAT(read->calls, SizeIs(2));
  const CallSum& sum = read->calls[read->calls[0].peer == 1 ? 0 : 1];
  EXPECT_EQ(sum.name, CallName::kMpiSend);
  EXPECT_EQ(sum.count, 3U);
  EXPECT_EQ(sum.bytes, 300U);
  EXPECT_EQ(sum.group, 5U);
  EXPECT_GT(sum.time_ns, 0U);
  EXPECT_GE(sum.time_ns, sum.longest_ns);
  EXPECT_EQ(read->groups.at(5), "rows");
  EXPECT_EQ(read->totals.calls, 4U);
}

TEST(ReportTest, InnerCallsAreNotCountedTwice) {
  Segment segment(0);
  client::Profile profile(&segment.layout(), kRanks, &kThreads);
  TestCall inner(CallName::kMpiBarrier, shm::kCallNoRank, 0);
  inner.entered_ns = 1;
  profile.End(&inner, true);
  EXPECT_THAT(segment.Read()->calls, IsEmpty());
}

TEST(ReportTest, MessagesOfUnknownRanksChangeNoPeers) {
  Segment segment(0);
  client::Profile profile(&segment.layout(), kRanks, &kThreads);
  profile.NoteSent(1, 100, 0);
  profile.NoteReceived(1, 5, 20 * kMs);
  profile.NoteSent(-1, 100, 0);
  profile.NoteReceived(2, 100, 0);
  const auto read = segment.Read();
  ASSERT_THAT(read->peers, SizeIs(1));
  EXPECT_EQ(read->peers[0].peer, 1U);
  EXPECT_EQ(read->peers[0].sums.sent_bytes, 100U);
  EXPECT_EQ(read->peers[0].sums.late_send_ns, 20 * kMs);
  EXPECT_EQ(read->sizes.sent[7], 2U) << "100 has 7 bits";
}

// MPI_Wait looks once before it waits: a program of many short waits does not poll.
TEST(ReportTest, OnlyLooksWithNothingBetweenThemArePolls) {
  Segment segment(0);
  client::Profile profile(&segment.layout(), kRanks, &kThreads);
  for (int i = 0; i < 3; ++i) {
    profile.NotePoll();
    TestCall wait(CallName::kMpiWait, 1, 8);
    Carry(&profile, &wait);
    profile.NotePoll();
    profile.NoteReceived(1, 8, 0);
    profile.NotePoll();
    profile.NoteSent(1, 8, 0);
  }
  EXPECT_EQ(segment.Read()->totals.polls, 9U);
  EXPECT_EQ(segment.Read()->totals.polled_ns, 0U);
  while (segment.Read()->totals.polled_ns == 0) {  // at once, unless the machine stands still
    profile.NotePoll();
    profile.NotePoll();  // the reading takes too long for a look after it to count
  }
}

// Beyond the room those of rounder numbers stay, which other ranks have kept, too.
TEST(ReportTest, KeepsArrivalsByNumber) {
  Segment segment(0);
  client::Profile profile(&segment.layout(), kRanks, &kThreads);
  constexpr uint64_t kCalls = 3 * shm::kProfileArrivals;
  for (uint64_t i = 0; i < kCalls; ++i) {
    TestCall call(CallName::kMpiAllreduce, shm::kCallNoRank, 8);
    Carry(&profile, &call, i, true);
  }
  const auto read = segment.Read();
  EXPECT_EQ(read->totals.arrival_stride, 4U);
  EXPECT_THAT(read->arrivals, SizeIs(kCalls / 4));
  for (const Arrival& arrival : read->arrivals) {
    EXPECT_EQ(arrival.number % 4, 0U);
  }
}

TEST(ReportTest, AFullTableCountsTheRestTogether) {
  Segment segment(0);
  client::Profile profile(&segment.layout(), kRanks, &kThreads);
  for (int peer = 0; peer < 10000; ++peer) {
    TestCall call(CallName::kMpiSend, peer, 1);
    Carry(&profile, &call);
  }
  const auto read = segment.Read();
  EXPECT_EQ(read->totals.calls, 10000U);
  EXPECT_GT(read->totals.unlisted_calls, 0U);
}

struct FileNote : TestCall {
  FileNote(CallName name, const char* file, uint64_t bytes)
      : TestCall(&Describe, name, bytes), file(file) {}

  const char* const file;

  static void Describe(const CallNote& note, shm::CallDescription* description) {
    const auto& call = static_cast<const FileNote&>(note);
    description->name = call.name_of;
    description->bytes = call.bytes;
    description->flags = shm::kCallHasBytes | shm::kCallHasFile;
    description->file = call.file;
  }
};

TEST(ReportTest, SumsCallsOnFilesByTheirFiles) {
  Segment segment(0);
  client::Profile profile(&segment.layout(), kRanks, &kThreads);
  const std::string long_name = "/a" + std::string(shm::kProfileFileNameBytes, 'b') + "/c";
  for (const FileNote& call : {FileNote(CallName::kMpiFileOpen, "/one", 0),
                               FileNote(CallName::kMpiFileWriteAt, "/one", 10),
                               FileNote(CallName::kMpiFileWriteAll, "/one", 20),
                               FileNote(CallName::kMpiFileReadShared, "/one", 5),
                               FileNote(CallName::kMpiFileSync, "/one", 0),
                               FileNote(CallName::kMpiFileRead, long_name.c_str(), 7)}) {
    Carry(&profile, const_cast<FileNote*>(&call));
  }
  const auto read = segment.Read();
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read->calls, SizeIs(6)) << "by function, whatever the file";
  ASSERT_THAT(read->files, SizeIs(2));
  const size_t one = read->files[0].name == "/one" ? 0 : 1;
  const shm::ProfileFile& sums = read->files[one].sums;
  EXPECT_EQ(sums.opens, 1U);
  EXPECT_EQ(sums.writes, 2U);
  EXPECT_EQ(sums.written_bytes, 30U);
  EXPECT_EQ(sums.reads, 1U);
  EXPECT_EQ(sums.read_bytes, 5U);
  EXPECT_EQ(sums.calls, 5U);
  EXPECT_GE(sums.time_ns, sums.longest_ns);
  EXPECT_GT(sums.longest_ns, 0U);
  EXPECT_EQ(read->files[1 - one].name,
            long_name.substr(long_name.size() - shm::kProfileFileNameBytes));
}

TEST(ReportTest, CallsOnTooManyFilesAreCountedTogether) {
  Segment segment(0);
  client::Profile profile(&segment.layout(), kRanks, &kThreads);
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "/file" + std::to_string(i);
    FileNote call(CallName::kMpiFileOpen, name.c_str(), 0);
    Carry(&profile, &call);
  }
  const auto read = segment.Read();
  EXPECT_LE(read->files.size(), shm::kProfileFiles);
  EXPECT_GE(read->files.size(), shm::kProfileFiles / 2);
  EXPECT_EQ(read->files.size() + read->totals.unlisted_file_calls, 1000U);
}

// ---- What comes from ranks ----------------------------------------------------------------------

TEST(ReportTest, RefusesOtherMemory) {
  Segment segment(0);
  segment.header().magic = 1;
  EXPECT_EQ(segment.Read().status().code(), ErrorCode::kCorrupt);
  segment.header().magic = shm::kProfileMagic;
  segment.header().version = 99;
  EXPECT_THAT(segment.Read().status().message(), HasSubstr("99"));
  segment.header().version = shm::kProfileVersion;
  EXPECT_EQ(segment.Read(1).status().code(), ErrorCode::kCorrupt) << "another rank's";
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1} << 40, UINT64_MAX}) {
    segment.header().profile_offset = offset;
    EXPECT_EQ(segment.Read().status().code(), ErrorCode::kCorrupt) << offset;
  }
  segment.header().profile_offset = sizeof(shm::ProfileHeader);
  segment.header().peer_count = UINT32_MAX;
  EXPECT_EQ(segment.Read().status().code(), ErrorCode::kCorrupt);
}

TEST(ReportTest, AnEmptyOrCutCopyIsNoProfile) {
  RankCollector nothing;
  EXPECT_EQ(nothing.Take(0, kRanks).status().code(), ErrorCode::kCorrupt);
  Segment segment(0);
  client::Profile profile(&segment.layout(), kRanks, &kThreads);
  profile.NoteSent(1, 100, 0);
  RankCollector cut;
  cut.Add(0, segment.Text().substr(0, 2000), 1 << 20);
  const auto read = cut.Take(0, kRanks);
  ASSERT_TRUE(read.ok()) << "holes are zeros";
  EXPECT_EQ(read->sizes.sent[7], 1U);
  EXPECT_THAT(read->peers, IsEmpty());
}

TEST(ReportTest, DropsPiecesThatLieElsewhere) {
  RankCollector collector;
  collector.Add(UINT64_MAX - 1, "xxxx", 1 << 20);
  collector.Add(RankCollector::kMostBytes, "xxxx", 1 << 20);
  collector.Add(0, std::string(2 * RankCollector::kMostBytes, 'x'), 1 << 20);
  EXPECT_FALSE(collector.Take(0, kRanks).ok());
}

TEST(ReportTest, LeavesOutWhatNoRankWrites) {
  Segment segment(0);
  shm::ProfileLayout& layout = segment.layout();
  layout.calls[0].count = layout.calls[1].count = 1;
  layout.calls[0].name = layout.calls[1].name = 60000;
  layout.calls[0].peer = 77;
  layout.calls[1].peer = 1;
  layout.groups[0].is_used = 1;
  layout.groups[0].group = 1;
  std::memset(layout.groups[0].name, '\x1b', sizeof(layout.groups[0].name));
  layout.totals.arrival_count = UINT64_MAX;
  layout.totals.ferry_ns = 5;
  layout.totals.waited_ns = UINT64_MAX;
  layout.arrivals[0].name = 1;
  layout.arrivals[0].enter_ns = 9;
  layout.files[0].name_hash = layout.files[0].calls = 1;
  layout.files[0].waited_ns = UINT64_MAX;
  std::memset(layout.files[0].name, '\n', sizeof(layout.files[0].name));
  layout.files[1].name_hash = 1;
  const auto read = segment.Read();
  ASSERT_TRUE(read.ok());
  ASSERT_THAT(read->calls, SizeIs(1));
  EXPECT_EQ(read->calls[0].name, CallName::kNone);
  EXPECT_EQ(read->groups.at(1), std::string(shm::kCallGroupNameBytes, '?'));
  EXPECT_THAT(read->arrivals, IsEmpty());
  EXPECT_LE(read->totals.waited_ns, read->totals.ferry_ns);
  ASSERT_THAT(read->files, SizeIs(1));
  EXPECT_EQ(read->files[0].name, std::string(shm::kProfileFileNameBytes, '?'));
  EXPECT_EQ(read->files[0].sums.waited_ns, 0U);
}

// ---- Reports ------------------------------------------------------------------------------------

JobProfile TwoRanks() {
  JobProfile job;
  job.id = "abc";
  job.program = "halo <1>";
  job.wall_ns = 1000 * kMs;
  job.eager_max_bytes = 8192;
  job.is_bound = true;
  job.nodes = {{.name = "n0", .cpu_ns = 10 * kMs}};
  job.node_of_rank = {0, 0};
  job.ranks.resize(2);
  for (RankProfile& rank : job.ranks) {
    rank.is_measured = true;
    rank.begin_ns = 1000 * kMs;
    rank.end_ns = 2000 * kMs;
    rank.totals.arrival_stride = 1;
  }
  return job;
}

void AddArrivals(JobProfile* job, uint64_t late_ns) {
  for (uint64_t i = 0; i < 10; ++i) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const uint64_t when = 1000 * kMs + i * 100 * kMs + (rank == 1 ? late_ns : 0);
      job->ranks[rank].arrivals.push_back({i, when, when + 1, 8, 5, CallName::kMpiAllreduce});
      job->ranks[rank].groups[5] = "rows";
    }
  }
}

TEST(ReportTest, NamesTheRankThatComesLast) {
  JobProfile job = TwoRanks();
  AddArrivals(&job, 30 * kMs);
  const Report report = MakeReport(job);
  ASSERT_THAT(report.meetings, SizeIs(1));
  EXPECT_EQ(report.meetings[0].last_rank, 1U);
  EXPECT_EQ(report.meetings[0].last_times, 10U);
  EXPECT_EQ(report.meetings[0].lost_ns, 300 * kMs);
  ASSERT_FALSE(report.advice.empty());
  EXPECT_EQ(report.advice[0].cause, "slow_rank");
  EXPECT_THAT(report.advice[0].sentence, HasSubstr("rank 1 came last to 10 of 10 MPI_Allreduce"));
}

// The clocks of two nodes differ by more than the ranks do.
TEST(ReportTest, ComparesArrivalsByOneClock) {
  JobProfile job = TwoRanks();
  AddArrivals(&job, 30 * kMs);
  const ClockSample sample{.asked_ns = kMs, .node_ns = 500'001 * kMs, .answered_ns = kMs};
  job.nodes.push_back({.name = "n1", .clock = NodeClock::Of({&sample, 1})});
  job.node_of_rank = {0, 1};
  job.ranks[1].node = 1;
  for (Arrival& arrival : job.ranks[1].arrivals) {
    arrival.enter_ns += 500'000 * kMs;
  }
  EXPECT_EQ(MakeReport(job).meetings.at(0).lost_ns, 300 * kMs);
}

// The other node's clock runs faster: what it shows of a long job is wrong by more than the ranks
// differ, if one answer alone tells of it.
TEST(ReportTest, FollowsAClockThatRunsFaster) {
  JobProfile job = TwoRanks();
  AddArrivals(&job, 30 * kMs);
  const auto of_node = [](uint64_t ns) { return ns + ns / 2000; };
  const uint64_t end_ns = job.ranks[1].arrivals.back().enter_ns + 100'000 * kMs;
  const ClockSample samples[] = {
      {.asked_ns = 0, .node_ns = 0, .answered_ns = 0},
      {.asked_ns = end_ns, .node_ns = of_node(end_ns), .answered_ns = end_ns}};
  job.nodes.push_back({.name = "n1", .clock = NodeClock::Of(samples)});
  job.node_of_rank = {0, 1};
  job.ranks[1].node = 1;
  for (auto& rank : job.ranks) {
    for (Arrival& arrival : rank.arrivals) {
      arrival.enter_ns += 100'000 * kMs;
    }
  }
  for (Arrival& arrival : job.ranks[1].arrivals) {
    arrival.enter_ns = of_node(arrival.enter_ns);
  }
  const uint64_t lost_ns = MakeReport(job).meetings.at(0).lost_ns;
  EXPECT_GT(lost_ns, 299 * kMs);
  EXPECT_LT(lost_ns, 301 * kMs);
}

TEST(ReportTest, AHealthyJobHasNoAdvice) {
  JobProfile job = TwoRanks();
  AddArrivals(&job, kMs / 100);
  EXPECT_THAT(MakeReport(job).advice, IsEmpty());
}

TEST(ReportTest, ExtrapolatesFromTheArrivalsThatWereKept) {
  JobProfile job = TwoRanks();
  AddArrivals(&job, 30 * kMs);
  job.ranks[1].totals.arrival_stride = 2;
  const Report report = MakeReport(job);
  EXPECT_EQ(report.meetings.at(0).compared, 10U);
  EXPECT_EQ(report.meetings.at(0).lost_ns, 300 * kMs);
}

TEST(ReportTest, NamesLateSendersByMessages) {
  JobProfile job = TwoRanks();
  PeerSum sum{.peer = 1};
  sum.sums.late_sends = 5;
  sum.sums.late_send_ns = 400 * kMs;
  job.ranks[0].peers = {sum};
  const Report report = MakeReport(job);
  ASSERT_THAT(report.late, SizeIs(1));
  ASSERT_FALSE(report.advice.empty());
  EXPECT_EQ(report.advice[0].cause, "late_sender");
  EXPECT_THAT(report.advice[0].sentence, HasSubstr("for rank 1 to send, rank 0 most (400 ms)"));
}

// On a crowded machine waits take most of a rank's life.
TEST(ReportTest, SmallMessagesAreWeighedByTheTimeWithoutWaits) {
  JobProfile job = TwoRanks();
  for (RankProfile& rank : job.ranks) {
    rank.sizes.sent[4] = 20000;
    rank.calls = {{.name = CallName::kMpiSend,
                   .peer = 1,
                   .count = 20000,
                   .time_ns = 925 * kMs,
                   .waited_ns = 900 * kMs}};
  }
  const Report report = MakeReport(job);
  ASSERT_THAT(report.advice, SizeIs(1));
  EXPECT_EQ(report.advice[0].cause, "many_small_messages");
  for (RankProfile& rank : job.ranks) {
    rank.calls[0].time_ns -= rank.calls[0].waited_ns;
    rank.calls[0].waited_ns = 0;
  }
  EXPECT_THAT(MakeReport(job).advice, IsEmpty()) << "2.5 % of what they did";
}

// A rank that is late may have lacked a core.
TEST(ReportTest, SharedCoresAreNamedBeforeSlowRanks) {
  JobProfile job = TwoRanks();
  AddArrivals(&job, 30 * kMs);
  job.ranks[0].totals.waited_ns = 350 * kMs;
  job.ranks[1].is_crowded = true;
  const Report report = MakeReport(job);
  ASSERT_THAT(report.advice, SizeIs(2));
  EXPECT_EQ(report.advice[0].cause, "crowded");
  EXPECT_EQ(report.advice[0].lost_ns, 350 * kMs);
  EXPECT_EQ(report.advice[1].cause, "slow_rank");
}

TEST(ReportTest, AJobWithoutMeasuredRanksIsToldAsSuch) {
  JobProfile job = TwoRanks();
  job.ranks = {{}, {.refusal = "the bound"}};
  job.nodes[0].trouble = "its daemon is gone";
  const Report report = MakeReport(job);
  EXPECT_EQ(report.measured, 0U);
  const std::string text = ReportText(job, report);
  EXPECT_THAT(text, HasSubstr("never called Ferry"));
  EXPECT_THAT(text, HasSubstr("the bound"));
  EXPECT_THAT(text, HasSubstr("its daemon is gone"));
  EXPECT_FALSE(nlohmann::json::parse(ReportJson(job, report)).is_null());
}

TEST(ReportTest, AllFormsTellTheSame) {
  JobProfile job = TwoRanks();
  AddArrivals(&job, 30 * kMs);
  PeerSum sum{.peer = 1};
  sum.sums.sent = 3;
  sum.sums.sent_bytes = 3000;
  job.ranks[0].peers = {sum};
  job.ranks[0].sizes.sent[10] = 3;
  job.ranks[0].calls = {{.name = CallName::kMpiSend, .peer = 1, .count = 3, .time_ns = kMs}};
  FileSum file{.name = "/data/<out>"};
  file.sums.opens = 1;
  file.sums.writes = file.sums.calls = 4;
  file.sums.written_bytes = 4096;
  file.sums.time_ns = file.sums.longest_ns = kMs;
  job.ranks[0].files = job.ranks[1].files = {file};
  job.ranks[1].files[0].sums.longest_ns = 2 * kMs;
  const Report report = MakeReport(job);
  const auto json = nlohmann::json::parse(ReportJson(job, report));
  EXPECT_EQ(json["advice"][0]["cause"], "slow_rank");
  EXPECT_EQ(json["files"][0]["name"], "/data/<out>");
  EXPECT_EQ(json["files"][0]["writes"], 8);
  EXPECT_EQ(json["files"][0]["bytes_written"], 8192);
  EXPECT_EQ(json["files"][0]["longest_rank"], 1);
  EXPECT_EQ(json["files"][0]["ranks"], 2);
  EXPECT_EQ(json["traffic"][0]["bytes"], 3000);
  EXPECT_EQ(json["sent_sizes"][0]["at_least"], 512);
  EXPECT_EQ(json["calls"][0]["call"], "MPI_Send");
  const std::string page = ReportHtml(job, report);
  EXPECT_THAT(page, HasSubstr("halo &lt;1&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("halo <1>")));
  EXPECT_THAT(page, HasSubstr("rank 0 to rank 1: 2.9 KiB"));
  EXPECT_THAT(page, HasSubstr("/data/&lt;out&gt;</td><td>2</td>"));
  EXPECT_THAT(ReportText(job, report), HasSubstr("/data/<out>"));
  for (const std::string& form : {ReportText(job, report), page}) {
    EXPECT_THAT(form, HasSubstr("rank 1 came last to 10 of 10 MPI_Allreduce on rows"));
    EXPECT_THAT(form, HasSubstr("MPI_Send"));
  }
}

TEST(ReportTest, TextStaysShortForManyRanks) {
  JobProfile job = TwoRanks();
  job.ranks.resize(256, job.ranks[0]);
  job.node_of_rank.resize(256);
  const std::string text = ReportText(job, MakeReport(job));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 60);
}

TEST(ReportTest, TimesHaveThreeDigits) {
  EXPECT_EQ(TimeWords(0), "0 ns");
  EXPECT_EQ(TimeWords(999), "999 ns");
  EXPECT_EQ(TimeWords(1500), "1.5 us");
  EXPECT_EQ(TimeWords(45'100'000), "45.1 ms");
  EXPECT_EQ(TimeWords(12'345'000'000), "12.3 s");
  EXPECT_EQ(TimeWords(4'000'000'000'000), "4000 s");
}

}  // namespace
}  // namespace ferry::tools

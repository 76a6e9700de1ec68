// The timeline of a job whose daemons answer as these may: those of other releases, those that have
// no room for their own events, those that are gone.
#include "tools/profile/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "proto/control.pb.h"
#include "shm/daemon_trace.h"
#include "shm/layout/profile_layout.h"
#include "shm/segment.h"
#include "shm/trace_ring.h"

namespace ferry::tools {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr uint32_t kRankOfDaemon = UINT32_MAX;
constexpr uint32_t kTracePart = 2;  // JobProfileRequest.parts
constexpr uint32_t kDaemonPart = 4;
constexpr uint32_t kRanks = 2;

// The segment of a rank that has called MPI_Barrier once.
std::string RankSegment(uint32_t rank) {
  std::vector<shm::TraceSlot> ring(17);
  shm::TraceRingWriter writer(std::as_writable_bytes(std::span(ring)), 1);
  shm::TraceEvent event;
  event.kind = shm::TraceKind::kCall;
  event.name = shm::CallName::kMpiBarrier;
  event.begin_ns = 1'000;
  event.end_ns = 2'000;
  writer.Add(event, false);
  shm::ProfileHeader header{};
  header.magic = shm::kProfileMagic;
  header.version = shm::kProfileVersion;
  header.rank = rank;
  header.job_size = kRanks;
  header.begin_ns = 1;
  header.trace_offset = sizeof(header);
  header.trace_bytes = ring.size() * sizeof(shm::TraceSlot);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  return bytes.append(reinterpret_cast<const char*>(ring.data()), header.trace_bytes);
}

// The segment of a daemon that has delivered so many messages to rank 0.
std::string DaemonSegment(int deliveries) {
  const StatusOr<UniqueFd> fd = shm::CreateSegment("test", 4096);
  StatusOr<shm::Mapping> mapping = shm::MapSegment(fd->get(), 0);
  const char* const base = reinterpret_cast<const char*>(mapping->base());
  const uint64_t bytes = mapping->size_bytes();
  shm::DaemonTraceWriter writer(std::move(*mapping), 1);
  for (int i = 0; i < deliveries; ++i) {
    shm::DaemonTraceSlot slot{};
    slot.work = static_cast<uint8_t>(shm::DaemonWork::kDelivery);
    slot.begin_ns = slot.end_ns = 1'500 + static_cast<uint64_t>(i);
    slot.peer = 1;
    writer.Add(slot);
  }
  return {base, bytes};
}

// A daemon with one rank.
struct Node {
  uint32_t rank = 0;
  std::string daemon;   // its own segment; empty: it sends none
  std::string refusal;  // of that
  Status gone;          // its answer, if it has none
  uint32_t asked = 0;   // the parts

  AskProfile Ask() {
    return [this](const control::JobProfileRequest& request,
                  const std::function<bool(const control::JobProfilePart&)>& take) -> Status {
      if (!gone.ok()) {
        return gone;
      }
      control::JobProfilePart part;
      part.set_clock_ns(MonotonicNs());
      take(part);
      asked |= request.parts();
      if ((request.parts() & kTracePart) != 0) {
        Send(rank, RankSegment(rank), "", take);
      }
      if ((request.parts() & kDaemonPart) != 0 && !(daemon.empty() && refusal.empty())) {
        Send(kRankOfDaemon, daemon, refusal, take);
      }
      return {};
    };
  }
  static void Send(uint32_t number, const std::string& segment, const std::string& refusal,
                   const std::function<bool(const control::JobProfilePart&)>& take) {
    control::JobProfilePart part;
    part.set_rank(number);
    part.set_segment_bytes(segment.size());
    part.set_refusal(refusal);
    part.set_clock_ns(MonotonicNs());
    part.set_ended(true);
    take(part);
    for (size_t begin = 0; begin < segment.size(); begin += 1000) {
      part.set_offset(begin);
      part.set_data(segment.substr(begin, 1000));
      take(part);
    }
  }
};

class TraceFileTest : public testing::Test {
 protected:
  TraceFileTest() {
    for (uint32_t i = 0; i < kRanks; ++i) {
      nodes_[i].rank = i;
      nodes_[i].daemon = DaemonSegment(3);
    }
  }
  // Returns the facts of the picture.
  json Write() {
    std::vector<TraceSource> sources;
    for (Node& node : nodes_) {
      sources.push_back({node.Ask(), "n" + std::to_string(node.rank), {}});
    }
    std::string text;
    const StatusOr<std::string> said =
        WriteTrace({.id = "x", .name = "job", .program = "program", .size = kRanks},
                   std::move(sources), [&text](std::string_view piece) {
                     text += piece;
                     return Status();
                   });
    EXPECT_TRUE(said.ok()) << said.status().message();
    said_ = said.ok() ? *said : "";
    picture_ = json::parse(text, nullptr, false);
    return picture_.value("otherData", json::object());
  }

  Node nodes_[kRanks];
  std::string said_;
  json picture_;
};

TEST_F(TraceFileTest, HasRanksAndDaemons) {
  const json facts = Write();
  EXPECT_EQ(nodes_[0].asked, kTracePart | kDaemonPart);
  EXPECT_EQ(facts["ranks_missing"], 0);
  EXPECT_EQ(facts["daemons"], 2);
  EXPECT_EQ(facts["daemons_missing"], 0);
  EXPECT_EQ(facts["daemon_events_lost"], 0);
  EXPECT_THAT(said_, AllOf(HasSubstr("2 ranks"), Not(HasSubstr("ferryd"))));
  int deliveries = 0;
  for (const json& event : picture_["traceEvents"]) {
    deliveries += event["name"] == "delivery" ? 1 : 0;
  }
  EXPECT_EQ(deliveries, 6);
}

TEST_F(TraceFileTest, CountsLostEventsOfDaemons) {
  nodes_[1].daemon = DaemonSegment(1000);
  EXPECT_EQ(Write()["daemon_events_lost"], 1000 - 32);
  EXPECT_THAT(said_, HasSubstr("of ferryd, 968 older events gave way to newer ones"));
}

// It knows nothing of the part that is asked for.
TEST_F(TraceFileTest, AnOlderDaemonIsMissing) {
  nodes_[1].daemon.clear();
  const json facts = Write();
  EXPECT_EQ(facts["daemons"], 1);
  EXPECT_EQ(facts["daemons_missing"], 1);
  EXPECT_EQ(facts["ranks_missing"], 0);
  EXPECT_THAT(said_, HasSubstr("what 1 ferryd did is missing"));
}

TEST_F(TraceFileTest, ADaemonWithAnotherLayoutIsMissing) {
  auto* const header = reinterpret_cast<shm::DaemonTraceHeader*>(nodes_[1].daemon.data());
  ++header->version;
  const json facts = Write();
  EXPECT_EQ(facts["daemons"], 1);
  EXPECT_EQ(facts["daemons_missing"], 1);
}

TEST_F(TraceFileTest, ADaemonWithoutRoomSaysWhy) {
  nodes_[0].daemon.clear();
  nodes_[0].refusal = "no room for this user";
  EXPECT_EQ(Write()["daemons_missing"], 1);
  EXPECT_THAT(said_, HasSubstr("what 1 ferryd did is missing (no room for this user)"));
}

// Or its host is.
TEST_F(TraceFileTest, ADaemonThatIsGoneIsMissingWithItsRank) {
  nodes_[1].gone = {ErrorCode::kNodeUnreachable, "it is lost"};
  const json facts = Write();
  EXPECT_EQ(facts["daemons"], 1);
  EXPECT_EQ(facts["daemons_missing"], 1);
  EXPECT_EQ(facts["ranks_missing"], 1);
}

}  // namespace
}  // namespace ferry::tools

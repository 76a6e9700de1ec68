#include "engine/session_view.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/version.h"
#include "tests/shm/shared_memory.h"

namespace ferry::engine {
namespace {

class SessionViewTest : public testing::Test {
 protected:
  SessionViewTest() { InitializeSegments(plan_, 42, session_.base(), inbox_.base()); }

  StatusOr<SessionView> View() {
    return ViewSession(session_.base(), plan_.session_bytes(), inbox_.base(), plan_.inbox_bytes());
  }
  shm::SegmentHeader& session() {
    return reinterpret_cast<shm::SessionLayout*>(session_.base())->header;
  }
  shm::SegmentHeader& inbox() { return reinterpret_cast<shm::InboxLayout*>(inbox_.base())->header; }
  void ExpectRefused(ErrorCode code, const std::string& text) {
    const StatusOr<SessionView> view = View();
    ASSERT_FALSE(view.ok());
    EXPECT_EQ(view.status().code(), code);
    EXPECT_NE(view.status().ToString().find(text), std::string::npos) << view.status().ToString();
  }

  const SegmentPlan plan_{2, 5, 3, 16, 32};
  shm::SharedMemory session_{plan_.session_bytes()};
  shm::SharedMemory inbox_{plan_.inbox_bytes()};
};

TEST_F(SessionViewTest, FindsWhatItsPlanSays) {
  const StatusOr<SessionView> view = View();
  ASSERT_TRUE(view.ok()) << view.status().ToString();
  EXPECT_EQ(view->rank, 2U);
  EXPECT_EQ(view->job_size, 5U);
  EXPECT_EQ(view->request_limit, 16U);
  EXPECT_EQ(view->inbox.local_size, 3U);
  EXPECT_EQ(view->match()->capacity, 32U);
  EXPECT_EQ(view->layout->header.creator_pid, 42U);
  EXPECT_EQ(view->layout->request_fresh, 1U);
}

TEST_F(SessionViewTest, KeepsEverythingInsideTheSegments) {
  const StatusOr<SessionView> view = View();
  ASSERT_TRUE(view.ok());
  const std::byte* const session_end = session_.base() + plan_.session_bytes();
  const std::byte* const inbox_end = inbox_.base() + plan_.inbox_bytes();
  EXPECT_LE(reinterpret_cast<std::byte*>(view->request(16)),
            reinterpret_cast<std::byte*>(view->match()));
  EXPECT_LE(reinterpret_cast<std::byte*>(view->match() + 1) + 32 * sizeof(shm::MatchEntry),
            session_end);
  EXPECT_LE(reinterpret_cast<std::byte*>(view->inbox.lane(4)),
            reinterpret_cast<std::byte*>(view->inbox.transfer(1)));
  EXPECT_LE(reinterpret_cast<std::byte*>(view->inbox.transfer(15) + 1), inbox_end);
  EXPECT_EQ(view->inbox.transfer(0), nullptr);
  EXPECT_EQ(view->inbox.transfer(16), nullptr);
}

TEST_F(SessionViewTest, SaysWhenItIsTooEarly) {
  session().layout_version = 0;
  ExpectRefused(ErrorCode::kWouldBlock, "not initialised yet");
}

TEST_F(SessionViewTest, NamesBothVersions) {
  session().layout_version = kLayoutVersion + 7;
  ExpectRefused(ErrorCode::kVersionMismatch, std::to_string(kLayoutVersion + 7));
  ExpectRefused(ErrorCode::kVersionMismatch, "has " + std::to_string(kLayoutVersion));
}

TEST_F(SessionViewTest, RefusesAStrangersSegment) {
  session().magic = 1;
  ExpectRefused(ErrorCode::kCorrupt, "not a Ferry segment");
  session().magic = shm::kSegmentMagic;
  session().kind = static_cast<uint32_t>(shm::SegmentKind::kInbox);
  ExpectRefused(ErrorCode::kCorrupt, "expected kind");
}

TEST_F(SessionViewTest, RefusesSizesThatDoNotFit) {
  session().size_bytes += 4096;
  ExpectRefused(ErrorCode::kCorrupt, "but has");
  session().size_bytes -= 4096;
  inbox().local_size = 4;
  ExpectRefused(ErrorCode::kCorrupt, "does not fit");
  inbox().local_size = 3;
  inbox().request_limit = 1'000'000;
  ExpectRefused(ErrorCode::kCorrupt, "does not fit");
  EXPECT_FALSE(ViewInbox(inbox_.base(), 100).ok());
  EXPECT_FALSE(ViewSession(session_.base(), 100, inbox_.base(), plan_.inbox_bytes()).ok());
}

TEST_F(SessionViewTest, RefusesImpossibleNumbers) {
  const shm::SegmentHeader good = session();
  const auto refuse = [&](auto change) {
    session() = good;
    change(session());
    ExpectRefused(ErrorCode::kCorrupt, "impossible");
  };
  refuse([](shm::SegmentHeader& header) { header.job_size = 0; });
  refuse([](shm::SegmentHeader& header) { header.rank = header.job_size; });
  refuse([](shm::SegmentHeader& header) { header.local_size = 0; });
  refuse([](shm::SegmentHeader& header) { header.local_size = shm::kMaxLocalRanks + 1; });
  refuse([](shm::SegmentHeader& header) { header.request_limit = 1; });
  refuse([](shm::SegmentHeader& header) { header.unexpected_limit = 1; });
}

// Else the words of its peers would lie in other parts, or behind the segment.
TEST_F(SessionViewTest, RefusesALargerJobThanItHasRoomFor) {
  for (const uint32_t size : {uint32_t{300}, uint32_t{65'536}, UINT32_MAX}) {
    session().job_size = size;
    ExpectRefused(ErrorCode::kCorrupt, "do not belong together");
  }
}

TEST_F(SessionViewTest, KeepsTheWordsOfEachPeerApartAndInside) {
  for (const uint32_t job_size : {1U, 5U, 64U, 65U, 4096U, 65'536U}) {
    const SegmentPlan plan{job_size - 1, job_size, 1, 16, 32};
    const shm::SharedMemory session(plan.session_bytes());
    const shm::SharedMemory inbox(plan.inbox_bytes());
    InitializeSegments(plan, 42, session.base(), inbox.base());
    const StatusOr<SessionView> view =
        ViewSession(session.base(), plan.session_bytes(), inbox.base(), plan.inbox_bytes());
    ASSERT_TRUE(view.ok()) << view.status().ToString();
    EXPECT_EQ(view->job_size, job_size);
    const shm::SessionByRank& of = view->by_rank;
    const uint32_t last = job_size - 1;
    const std::vector<std::pair<const void*, const void*>> parts = {
        {view->layout, view->layout + 1},
        {view->request(0), view->request(16)},
        {of.peers, &of.peers[last] + 1},
        {of.rtrs, &of.rtrs[last] + 1},
        {of.links, &of.links[last] + 1},
        {of.busy, &of.busy[last / 64] + 1},
        {of.one_sided, &of.one_sided[last] + 1},
        {of.gone, &of.gone[last / 64] + 1},
        {view->match(), reinterpret_cast<const shm::MatchEntry*>(view->match() + 1) + 32}};
    for (size_t i = 1; i < parts.size(); ++i) {
      EXPECT_LE(parts[i - 1].second, parts[i].first) << "part " << i << " of " << job_size;
    }
    EXPECT_LE(parts.back().second, session.base() + plan.session_bytes());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(of.peers) % alignof(shm::RtrBook), 0U);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(of.rtrs) % alignof(shm::RtrBook), 0U);
  }
}

// Only pages that a rank has written count: of a job of 65,536 ranks as of one of 5.
TEST_F(SessionViewTest, TakesNoMemoryForPeersThatHaveNothingToDo) {
  const SegmentPlan plan{0, 65'536, 1, 16, 32};
  const shm::SharedMemory session(plan.session_bytes());
  const shm::SharedMemory inbox(plan.inbox_bytes());
  InitializeSegments(plan, 42, session.base(), inbox.base());
  const StatusOr<SessionView> view =
      ViewSession(session.base(), plan.session_bytes(), inbox.base(), plan.inbox_bytes());
  ASSERT_TRUE(view.ok());
  view->by_rank.StoreDead(40'000, ErrorCode::kPeerDied);
  uint32_t found = 0;
  shm::ForEachRankIn(view->by_rank.gone, view->job_size, [&](uint32_t rank) {
    EXPECT_EQ(rank, 40'000U);
    ++found;
    return true;
  });
  EXPECT_EQ(found, 1U);
  std::vector<unsigned char> pages(plan.session_bytes() / 4096);
  ASSERT_EQ(mincore(session.base(), plan.session_bytes(), pages.data()), 0);
  const auto resident =
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
  EXPECT_LT(resident, 32) << "of " << pages.size() << " pages";
}

TEST(SessionByRankTest, BitsThatNoCorrectRankSetsLeadNowhere) {
  uint64_t bits[2] = {~uint64_t{0}, ~uint64_t{0}};
  std::vector<uint32_t> found;
  shm::ForEachRankIn(bits, 67, [&](uint32_t rank) {
    found.push_back(rank);
    return true;
  });
  ASSERT_EQ(found.size(), 67U);
  EXPECT_EQ(found.back(), 66U);
}

TEST_F(SessionViewTest, RefusesSegmentsOfDifferentRanks) {
  inbox().rank = 1;
  ExpectRefused(ErrorCode::kCorrupt, "do not belong together");
  inbox().rank = 2;
  session().unexpected_limit = 64;
  ExpectRefused(ErrorCode::kCorrupt, "do not belong together");
  session().unexpected_limit = 32;
  View()->match()->capacity = 64;
  ExpectRefused(ErrorCode::kCorrupt, "do not belong together");
}

}  // namespace
}  // namespace ferry::engine

// Quotas of users: the ledger, and where the control plane asks it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "daemon/session/session.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_daemon.h"

namespace ferry::daemon {
namespace {

constexpr uid_t kAnn = 1001;
constexpr uid_t kBob = 1002;

// ---- The ledger ----

class EveryQuotaTest : public ::testing::TestWithParam<QuotaLabel> {};

TEST_P(EveryQuotaTest, BoundsEachUserByHimself) {
  const QuotaLabel& label = GetParam();
  QuotaAmounts two;
  two.*label.member = 2;
  QuotaLedger ledger(two);
  QuotaAmounts one;
  one.*label.member = 1;
  auto first = ledger.Take(kAnn, one);
  auto second = ledger.Take(kAnn, one);
  ASSERT_TRUE(first.ok() && second.ok());
  const auto third = ledger.Take(kAnn, one);
  ExpectError(third.status(), ErrorCode::kLimitExceeded,
              "uid 1001 has reached " + std::string(label.option) + ": it uses 2 of 2 " +
                  label.unit + " and asked for 1 more; " + label.remedy +
                  ", or have the administrator raise " + label.option);
  EXPECT_TRUE(ledger.Take(kBob, two).ok()) << "another user is not affected";
  first->Release();
  EXPECT_TRUE(ledger.Take(kAnn, one).ok());
}

INSTANTIATE_TEST_SUITE_P(Quotas, EveryQuotaTest,
                         ::testing::ValuesIn(QuotaLabels().begin(), QuotaLabels().end()),
                         [](const auto& info) { return std::string(info.param.option); });

TEST(QuotaLedgerTest, ZeroIsNoLimit) {
  QuotaLedger ledger({});
  EXPECT_TRUE(ledger.Take(kAnn, {.sessions = 1'000'000, .pinned_bytes = 1ULL << 60}).ok());
}

TEST(QuotaLedgerTest, TakesAllOrNothing) {
  QuotaLedger ledger({.regions = 8, .pinned_bytes = 100});
  const auto hold = ledger.Take(kAnn, {.regions = 1, .pinned_bytes = 60});
  EXPECT_FALSE(ledger.Take(kAnn, {.regions = 1, .pinned_bytes = 41}).ok());
  EXPECT_FALSE(ledger.Take(kAnn, {.regions = 1, .pinned_bytes = UINT64_MAX}).ok());
  EXPECT_EQ(ledger.Used().at(kAnn), (QuotaAmounts{.regions = 1, .pinned_bytes = 60}));
}

TEST(QuotaLedgerTest, AHoldIsGivenBackOnceHoweverItMoves) {
  QuotaLedger ledger({.jobs = 2});
  {
    auto taken = ledger.Take(kAnn, {.jobs = 1});
    QuotaHold hold = std::move(*taken);
    QuotaHold other;
    other = std::move(hold);
    hold.Release();  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move): empty
    EXPECT_EQ(ledger.Used().at(kAnn).jobs, 1U);
    other = std::move(*ledger.Take(kBob, {.jobs = 1}));
    EXPECT_EQ(ledger.Used().size(), 1U);
  }
  EXPECT_TRUE(ledger.Used().empty());
}

TEST(QuotaLedgerTest, HoldsMayOutliveIt) {
  QuotaHold hold;
  {
    QuotaLedger ledger({.jobs = 1});
    hold = std::move(*ledger.Take(kAnn, {.jobs = 1}));
  }
  hold.Release();
}

uint64_t TakeAllPlaces(QuotaLedger& ledger, uid_t uid, std::vector<QuotaHold>* holds) {
  for (uint64_t taken = 0;; ++taken) {
    StatusOr<QuotaHold> hold = ledger.Take(uid, {.sessions = 1});
    if (!hold.ok()) {
      return taken;
    }
    holds->push_back(std::move(*hold));
  }
}

TEST(SharedPlacesTest, LeaveRoomForOneMoreUser) {
  QuotaLedger ledger({}, 1024);
  std::vector<QuotaHold> holds;
  std::vector<uint64_t> taken;
  for (uid_t uid = kAnn; uid < kAnn + 6; ++uid) {
    taken.push_back(TakeAllPlaces(ledger, uid, &holds));
  }
  EXPECT_EQ(taken, (std::vector<uint64_t>{768, 192, 48, 12, 3, 1}));
}

TEST(SharedPlacesTest, ASmallNodeHasPlacesForSeveralUsers) {
  for (const uint64_t places : {3, 4, 5, 8, 16, 17}) {
    QuotaLedger ledger({}, places);
    std::vector<QuotaHold> holds;
    uint64_t users = 0;
    for (uid_t uid = kAnn; holds.size() < places; ++uid, ++users) {
      ASSERT_GT(TakeAllPlaces(ledger, uid, &holds), 0U) << uid << " of " << places;
    }
    EXPECT_GE(users, places >= 8 ? 3U : 2U) << places;
  }
}

TEST(SharedPlacesTest, GrowAgainWhenOthersLeave) {
  QuotaLedger ledger({}, 16);
  std::vector<QuotaHold> anns;
  std::vector<QuotaHold> bobs;
  EXPECT_EQ(TakeAllPlaces(ledger, kBob, &bobs), 12U);
  EXPECT_EQ(TakeAllPlaces(ledger, kAnn, &anns), 3U);
  ExpectError(ledger.Take(kAnn, {.sessions = 1}).status(), ErrorCode::kLimitExceeded,
              "uid 1001 has reached quota_sessions: it uses 3 of 3 sessions (three quarters of "
              "what other users leave of 16) and asked for 1 more; start fewer ranks, or have the "
              "administrator set quota_sessions");
  EXPECT_EQ(ledger.LimitsOf(kAnn).sessions, 3U);
  bobs.resize(4);
  EXPECT_EQ(TakeAllPlaces(ledger, kAnn, &anns), 9U - 3U);
  EXPECT_EQ(ledger.LimitsOf(kBob).sessions, 5U);
}

// ---- The control plane ----

config::Options Limited(const std::string& directory) {
  config::Options options = TestOptions(directory);
  options.quota_sessions = 2;
  options.quota_regions = 2;
  options.quota_pinned_bytes = 64 << 10;
  options.quota_jobs = 2;
  options.quota_requests = kTestRequests;
  return options;
}

class QuotaTest : public ::testing::Test {
 protected:
  QuotaTest() : daemon_(Limited(directory_.path() + "/a")) {}

  Status CreateJob(const std::string& id, uint32_t size, uid_t uid = geteuid()) {
    auto request =
        TestDaemon::JobRequest(id, std::vector<uint32_t>(size, 0), {daemon_.address()}, 0);
    request.set_uid(uid);
    return daemon_.CreateJob(request);
  }
  // The usage of this process's user.
  control::UserStatus Used() {
    const control::StatusReply status = daemon_.GetStatus();
    for (const control::UserStatus& user : status.users()) {
      if (user.uid() == geteuid()) {
        return user;
      }
    }
    return {};
  }
  void ExpectRefusal(const Answer& answer, const std::string& words) {
    EXPECT_EQ(answer.code(), ErrorCode::kLimitExceeded);
    EXPECT_NE(answer.text().find(words), std::string::npos) << answer.text();
  }

  TemporaryDirectory directory_;
  TestDaemon daemon_;
};

TEST_F(QuotaTest, JobsAreBoundedForEachUser) {
  ASSERT_TRUE(CreateJob("a", 1).ok());
  ASSERT_TRUE(CreateJob("b", 1).ok());
  ExpectError(CreateJob("c", 1), ErrorCode::kLimitExceeded, "quota_jobs: it uses 2 of 2 jobs");
  EXPECT_TRUE(CreateJob("c", 1, kAnn).ok());
  ASSERT_TRUE(daemon_.DestroyJob("a").ok());
  EXPECT_TRUE(CreateJob("d", 1).ok());
}

// A rank's requests may make the daemon's own memory grow.
TEST_F(QuotaTest, RequestsAreBoundedAndGivenBack) {
  TestRank first = daemon_.StartRank(2);
  TestRank second("job", 1, 2, 2);
  EXPECT_EQ(Used().requests_room(), kTestRequests);
  EXPECT_EQ(Used().requests(), 0U) << "an idle rank has none";
  first.session()->request_fresh = 2;
  first.request(1).state = static_cast<uint32_t>(shm::RequestState::kPosted);
  EXPECT_EQ(Used().requests(), 1U);
  EXPECT_EQ(Used().requests_limit(), kTestRequests);
  ASSERT_TRUE(second.Connect(daemon_.attach_path()).ok());
  ASSERT_EQ(second.Attach().code(), ErrorCode::kOk);
  ExpectRefusal(second.SendSegments(),
                "rank 1 of job job: uid " + std::to_string(geteuid()) +
                    " has reached quota_requests: it uses 64 of 64 requests and asked for 64 more; "
                    "lower request_limit (FERRY_REQUEST_LIMIT)");
  EXPECT_EQ(daemon_.plane.Count("AddSession job 1"), 0U);
  ASSERT_TRUE(first.Detach().status().ok());
  EXPECT_EQ(Used().requests_room(), 0U);
}

TEST_F(QuotaTest, SessionsAreBounded) {
  ASSERT_TRUE(CreateJob("job", 3).ok());
  TestRank ranks[] = {{"job", 0, 3, 3}, {"job", 1, 3, 3}, {"job", 2, 3, 3}};
  ASSERT_TRUE(ranks[0].Enter(daemon_.attach_path()));
  ASSERT_TRUE(ranks[1].Connect(daemon_.attach_path()).ok());
  ASSERT_EQ(ranks[1].Attach().code(), ErrorCode::kOk);
  ASSERT_TRUE(ranks[2].Connect(daemon_.attach_path()).ok());
  ExpectRefusal(ranks[2].Attach(), "quota_sessions: it uses 2 of 2 sessions");
  ASSERT_TRUE(ranks[0].Detach().status().ok());
  EXPECT_EQ(ranks[2].Attach().code(), ErrorCode::kOk) << "given back though rank 0 is connected";
}

TEST_F(QuotaTest, RegionsAreBoundedBeforeTheyAreMapped) {
  TestRank rank = daemon_.StartRank();
  ASSERT_EQ(rank.SendRegion(1, 4096).code(), ErrorCode::kOk);
  ASSERT_EQ(rank.SendRegion(2, 4096).code(), ErrorCode::kOk);
  EXPECT_EQ(Used().regions(), 2U);
  const size_t descriptors = OpenDescriptors();
  ExpectRefusal(rank.SendRegion(3, 4096), "quota_regions: it uses 2 of 2 regions");
  // The thread that refused also writes the status, and is done with the rank's packet by then.
  EXPECT_EQ(Used().regions(), 2U);
  EXPECT_EQ(SettledDescriptors(descriptors), descriptors);
  EXPECT_EQ(Used().pinned_bytes(), 8192U);
  EXPECT_EQ(Used().pinned_bytes_limit(), 64U << 10);
}

TEST_F(QuotaTest, PinnedBytesAreBoundedAndGivenBack) {
  TestRank rank = daemon_.StartRank();
  ExpectRefusal(rank.SendRegion(1, (64 << 10) + 1), "quota_pinned_bytes: it uses 0 of 65536 bytes");
  const UniqueFd memfd = std::move(*shm::CreateSegment("test-region", 4096));
  ExpectRefusal(rank.SendRegion(1, UINT64_MAX, memfd.get()), "quota_pinned_bytes");
  ASSERT_EQ(rank.SendRegion(1, 64 << 10).code(), ErrorCode::kOk);
  ExpectRefusal(rank.SendRegion(2, 1), "asked for 4096 more");
  // A region that is refused after its reservation holds nothing.
  ASSERT_EQ(rank.EndRegion(1).code(), ErrorCode::kOk);
  EXPECT_EQ(rank.SendRegion(0, 64 << 10).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Used().pinned_bytes(), 0U);
}

TEST_F(QuotaTest, AnOrderlyLeaveGivesRegionsBackWhileTheProcessGoesOn) {
  TestRank rank = daemon_.StartRank();
  ASSERT_EQ(rank.SendRegion(1, 4096).code(), ErrorCode::kOk);
  ASSERT_EQ(Used().regions(), 1U);
  ASSERT_TRUE(rank.Detach().status().ok());
  EXPECT_TRUE(daemon_.GetStatus().users().empty());
}

// With these limits one leak in a thousand would make the test fail.
TEST_F(QuotaTest, AThousandRanksThatDieLeaveNothing) {
  size_t descriptors = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string job = "job" + std::to_string(i % 2);
    Status created = CreateJob(job, 1);
    ASSERT_TRUE(created.ok()) << i << ": " << created.message();
    TestRank rank(job, 0, 1, 1);
    ASSERT_TRUE(rank.Enter(daemon_.attach_path())) << i;
    ASSERT_EQ(rank.SendRegion(1, 64 << 10).code(), ErrorCode::kOk) << i;
    rank.HangUp();
    // The thread that notices the hang-up also writes the daemon's status.
    while (!daemon_.GetStatus().users().empty()) {
    }
    if (i == 0) {
      descriptors = OpenDescriptors();
    }
  }
  EXPECT_LE(SettledDescriptors(descriptors), descriptors);
}

}  // namespace
}  // namespace ferry::daemon

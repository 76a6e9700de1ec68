// Direct links from the attach socket of one daemon to that of another: what two ranks are told,
// though messages between the daemons, or their answers, get lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "daemon/admin/link_report.h"
#include "daemon/attach/attach_server.h"
#include "daemon/jobs/job_link_books.h"
#include "daemon/jobs/job_nodes.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/plane/control_loop.h"
#include "daemon/tls/secrets.h"
#include "tests/daemon/fake_data_plane.h"
#include "tests/daemon/test_rank.h"

namespace ferry::daemon {
namespace {

using attach::LinkEvent;
using attach::LinkOp;

enum class Fate { kArrives, kIsLost, kArrivesUnanswered, kArrivesSpoilt };

LinkPolicy Policy() {
  LinkPolicy policy;
  policy.allowed = {};
  policy.min_messages = 256;
  policy.min_bytes = 4 << 20;
  policy.idle_ms = 10'000;
  policy.operation_timeout_ms = 20'000;
  policy.peer_timeout_ms = 15'000;
  policy.provider = "fabric";
  policy.nics = {{"127.0.0.1", ""}};
  return policy;
}

constexpr const char* kAddresses[] = {"127.0.0.1:1", "127.0.0.1:2"};  // of the two

// One daemon of the two, but for its gRPC.
class LinkedDaemon final : public NodeLinks {
 public:
  LinkedDaemon(uint32_t node, const std::string& directory, const LinkPolicy& policy)
      : node_(node),
        socket_path_(directory + "/" + std::to_string(node) + ".sock"),
        registry_(loop_.context(), data_plane, {1024, 3, 20'000, {}, policy}),
        launchers_(registry_),
        server_(loop_.context(), registry_, launchers_, 20'000, {64, 64}) {
    registry_.set_links(this);
    EXPECT_TRUE(server_.Listen(socket_path_, true).ok());
  }
  ~LinkedDaemon() override {
    loop_.Run([this] { server_.Stop(); });
    loop_.Stop();
  }
  // `other` outlives what is sent to it.
  void Start(LinkedDaemon* other, bool other_may_link) {
    other_ = other;
    loop_.Start();
    loop_.Run([&] {
      JobSpec spec;
      spec.id = "job";
      spec.secret = kTestSecret;
      spec.owner = geteuid();
      spec.node = node_;
      spec.node_addresses = {kAddresses[0], kAddresses[1]};
      spec.node_of_rank = node_of_rank;
      EXPECT_TRUE(registry_.CreateJob(spec).ok());
      NodeContact contact;
      contact.address = spec.node_addresses[1 - node_];
      contact.incarnation = other->Incarnation();
      contact.link = 7;
      contact.life = 1;
      contact.direct_links = other_may_link;
      registry_.nodes().OnNodeUp(contact);
    });
  }
  template <typename Function>
  auto Run(Function function) {
    return loop_.Run([&] { return function(registry_); });
  }
  TestRank Enter() {
    const auto local = std::count(node_of_rank.begin(), node_of_rank.end(), node_);
    TestRank rank("job", node_, static_cast<uint32_t>(node_of_rank.size()),
                  static_cast<uint32_t>(local));
    EXPECT_TRUE(rank.Enter(socket_path_));
    return rank;
  }
  // Sets the fates of the next messages with news of links.
  void set_fates(std::deque<Fate> fates) {
    loop_.Run([&] { fates_ = std::move(fates); });
  }
  size_t fates_left() {
    return loop_.Run([&] { return fates_.size(); });
  }

  // NodeLinks; on the control thread.
  Status Acquire(const std::string&, uid_t) override { return {}; }
  void Release(const std::string&, uid_t) override {}
  uint64_t Incarnation() const override { return 100 + node_; }
  void SendJoined(const std::string&, const control::JoinedRequest&, Done done) override {
    loop_.Post([done = std::move(done)] { done({}); });
  }
  void SendLeft(const std::string&, const control::LeftRequest&, Done done) override {
    loop_.Post([done = std::move(done)] { done({}); });
  }
  void SendPairs(const std::string&, const control::PairNewsRequest&, NewsDone) override {}
  void SendLinkNews(const std::string&, const control::LinkNewsRequest& request,
                    NewsDone done) override {
    Fate fate = Fate::kArrives;
    if (!fates_.empty()) {
      fate = fates_.front();
      fates_.pop_front();
    }
    const Status lost(ErrorCode::kTimeout, "no answer");
    if (fate == Fate::kIsLost) {
      return loop_.Post([done = std::move(done), lost] { done(lost, {}); });
    }
    other_->loop_.Post([this, request = request, done = std::move(done), fate, lost]() mutable {
      if (fate == Fate::kArrivesSpoilt) {
        request.mutable_news(0)->set_peer(99);
      }
      control::NewsReply reply;
      const Status status =
          other_->registry_.link_books().TakeNews(request, kAddresses[node_], &reply);
      loop_.Post([=] { done(fate == Fate::kArrivesUnanswered ? lost : status, reply); });
    });
  }

  FakeDataPlane data_plane;
  std::vector<uint32_t> node_of_rank = {0, 1};  // rank 0 enters at node 0, rank 1 at node 1

 private:
  const uint32_t node_;
  const std::string socket_path_;
  ControlLoop loop_;
  JobRegistry registry_;
  Launchers launchers_;
  AttachServer server_;
  LinkedDaemon* other_ = nullptr;
  std::deque<Fate> fates_;
};

class DirectLinksTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/ferry-links-XXXXXX";
    directory_ = mkdtemp(path);
  }
  void TearDown() override {
    ranks_[0].reset();
    ranks_[1].reset();
    daemons_[0].reset();
    daemons_[1].reset();
    std::filesystem::remove_all(directory_);
  }
  void Start(const LinkPolicy& first = Policy(), const LinkPolicy& second = Policy(),
             const std::vector<uint32_t>& node_of_rank = {0, 1}) {
    daemons_[0] = std::make_unique<LinkedDaemon>(0, directory_, first);
    daemons_[1] = std::make_unique<LinkedDaemon>(1, directory_, second);
    daemons_[0]->node_of_rank = node_of_rank;
    daemons_[1]->node_of_rank = node_of_rank;
    daemons_[0]->Start(daemons_[1].get(), second.allowed.ok());
    daemons_[1]->Start(daemons_[0].get(), first.allowed.ok());
    for (uint32_t rank : {0, 1}) {
      ranks_[rank].emplace(daemons_[rank]->Enter());
    }
  }
  // The next packet of kind T; daemons tick until it is there.
  template <typename T>
  T Next(uint32_t rank) {
    pollfd waiting{ranks_[rank]->socket(), POLLIN, 0};
    for (int i = 0; poll(&waiting, 1, 1) == 0; ++i) {
      if (i == 5000) {
        ADD_FAILURE() << "rank " << rank << " hears nothing";
        return {};
      }
      for (const auto& daemon : daemons_) {
        daemon->Run([](JobRegistry& registry) { registry.nodes().OnTick(); });
      }
    }
    const Answer answer = ranks_[rank]->Read();
    const T* packet = answer.packet.As<T>();
    EXPECT_NE(packet, nullptr) << answer.text();
    return packet == nullptr ? T{} : *packet;
  }
  attach::LinkOrder NextOrder(uint32_t rank, LinkOp op) {
    const auto order = Next<attach::LinkOrder>(rank);
    EXPECT_EQ(order.header.kind, static_cast<uint32_t>(attach::Kind::kLink));
    EXPECT_EQ(order.op, static_cast<uint32_t>(op));
    EXPECT_EQ(order.peer, 1 - rank);
    return order;
  }
  Status Say(uint32_t rank, LinkEvent event, uint64_t link, const std::string& address = "") {
    attach::LinkReply reply{};
    reply.header = ranks_[rank]->Header(attach::Kind::kLinkReply);
    reply.event = static_cast<uint32_t>(event);
    reply.peer = 1 - rank;
    reply.link = link;
    reply.address_bytes = static_cast<uint32_t>(address.size());
    address.copy(reinterpret_cast<char*>(reply.address), sizeof(reply.address));
    return SendPacket(ranks_[rank]->socket(), reply);
  }
  void Reply(uint32_t rank, LinkEvent event, uint64_t link, const std::string& address = "") {
    EXPECT_TRUE(Say(rank, event, link, address).ok());
  }
  // Rank 0 has read nothing for so long that its session ends.
  void ExpectEndOfRank0() {
    EXPECT_TRUE(daemons_[0]->data_plane.WaitFor("RemoveSession job 0"));
    for (Answer answer = ranks_[0]->Read(); !answer.hang_up; answer = ranks_[0]->Read()) {
      ASSERT_TRUE(answer.packet.As<attach::LinkOrder>() != nullptr ||
                  answer.packet.As<attach::LinkRules>() != nullptr);
    }
  }
  void Want(uint32_t rank) {
    daemons_[rank]->Run(
        [&](JobRegistry& registry) { registry.link_books().Want("job", rank, 1 - rank); });
  }
  void ExpectRules(uint32_t rank) {
    const auto rules = Next<attach::LinkRules>(rank);
    EXPECT_EQ(rules.header.kind, static_cast<uint32_t>(attach::Kind::kLinkRules));
    EXPECT_EQ(rules.min_messages, 256U);
    EXPECT_EQ(rules.idle_ms, 10'000U);
    EXPECT_EQ(rules.peer_timeout_ms, 15'000U);
    EXPECT_STREQ(rules.provider, "fabric");
    EXPECT_STREQ(rules.domain, "");
    EXPECT_STREQ(rules.source_address, "127.0.0.1");
  }
  // Both ranks do as they are told, until both use the link.
  void MakeLink() {
    const auto open = NextOrder(0, LinkOp::kOpen);
    EXPECT_EQ(open.address_bytes, 0U);
    Reply(0, LinkEvent::kOpened, open.link, "end of 0");
    const auto other = NextOrder(1, LinkOp::kOpen);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(other.address), other.address_bytes),
              "end of 0");
    EXPECT_EQ(other.link, open.link);
    Reply(1, LinkEvent::kOpened, other.link, "end of 1");
    const auto use = NextOrder(0, LinkOp::kUse);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(use.address), use.address_bytes),
              "end of 1");
    EXPECT_EQ(use.send_key[0], other.receive_key[0]);
    EXPECT_EQ(use.send_key[1], other.receive_key[1]);
    EXPECT_EQ(use.receive_key[0], other.send_key[0]);
    EXPECT_NE(use.receive_key[0], use.send_key[0]);
    Reply(0, LinkEvent::kUsed, use.link);
    const auto last = NextOrder(1, LinkOp::kUse);
    Reply(1, LinkEvent::kUsed, last.link);
  }
  control::LinksReply Report(uint32_t node) {
    control::LinksReply reply;
    daemons_[node]->Run(
        [&](JobRegistry& registry) { ReportLinks(registry, {}, MonotonicNs(), &reply); });
    return reply;
  }

  std::string directory_;
  std::unique_ptr<LinkedDaemon> daemons_[2];
  std::optional<TestRank> ranks_[2];
};

TEST_F(DirectLinksTest, TwoRanksGetALinkAndReturnIt) {
  Start();
  ExpectRules(0);
  ExpectRules(1);
  for (uint64_t link = 1; link <= 2; ++link) {
    Want(link % 2);
    MakeLink();
    Reply(0, LinkEvent::kReturned, link);
    Reply(1, LinkEvent::kReturned, link);
    for (uint32_t rank : {0, 1}) {
      EXPECT_EQ(NextOrder(rank, LinkOp::kEnd).code, 0);
      Reply(rank, LinkEvent::kEnded, link);
    }
  }
}

TEST_F(DirectLinksTest, MessagesBetweenTheDaemonsMayGetLostOrComeTwice) {
  for (const Fate fate : {Fate::kIsLost, Fate::kArrivesUnanswered}) {
    Start();
    ExpectRules(0);
    ExpectRules(1);
    for (const auto& daemon : daemons_) {
      daemon->set_fates({fate, Fate::kArrives, fate, fate, Fate::kArrives, fate});
    }
    Want(1);
    MakeLink();
    Reply(1, LinkEvent::kReturned, 1);
    Reply(0, LinkEvent::kReturned, 1);
    for (uint32_t rank : {0, 1}) {
      (void)NextOrder(rank, LinkOp::kEnd);
      Reply(rank, LinkEvent::kEnded, 1);
    }
    for (const auto& daemon : daemons_) {
      EXPECT_LE(daemon->fates_left(), 4U);
    }
    TearDown();
    SetUp();
  }
}

TEST_F(DirectLinksTest, AStoppedRankGetsItsOrdersWhenItReads) {
  LinkPolicy off = Policy();
  off.allowed = {ErrorCode::kConfiguration, "off"};
  Start(off);
  constexpr int kMany = 2000;  // more than its socket holds
  for (int i = 0; i < kMany; ++i) {
    Want(0);
  }
  for (int i = 0; i < kMany; ++i) {
    ASSERT_EQ(NextOrder(0, LinkOp::kRefuse).code, static_cast<int32_t>(ErrorCode::kConfiguration));
  }
  ExpectRules(1);
  Want(0);
  (void)NextOrder(0, LinkOp::kRefuse);
}

// A stopped rank says nothing. One that says more and more, and reads nothing, may not pile up
// orders in its daemon, whatever they are.
TEST_F(DirectLinksTest, ARankThatRefusesLinksAndNeverReadsItsOrdersEnds) {
  Start();
  constexpr uint64_t kTooMany = 6000;
  uint64_t link = 0;
  while (daemons_[0]->data_plane.Count("RemoveSession job 0") == 0 && link < kTooMany) {
    Want(0);
    (void)Say(0, LinkEvent::kRefused, ++link).ok();  // once it has ended this fails
    for (bool has_ended = false; !has_ended;) {
      const control::LinksReply report = Report(0);
      has_ended = report.links_size() != 1 || report.links(0).state() == "none";
    }
  }
  EXPECT_LT(link, kTooMany);
  ExpectEndOfRank0();
}

TEST_F(DirectLinksTest, ARankThatAnswersAgainAndAgainAndNeverReadsItsOrdersEnds) {
  Start();
  ExpectRules(0);
  ExpectRules(1);
  Want(0);
  MakeLink();
  daemons_[0]->Run([](JobRegistry& registry) {
    EXPECT_EQ(*registry.link_books().TakeBack("job", kAnyRank, kAnyRank, false), 1U);
  });
  constexpr int kTooMany = 100'000;
  int answers = 0;
  while (daemons_[0]->data_plane.Count("RemoveSession job 0") == 0 && answers < kTooMany) {
    answers += Say(0, LinkEvent::kUsed, 1).ok() ? 1 : 0;
  }
  EXPECT_LT(answers, kTooMany);
  ExpectEndOfRank0();
}

TEST_F(DirectLinksTest, WhoeverMayNotHasNoRulesAndIsRefused) {
  LinkPolicy off = Policy();
  off.allowed = {ErrorCode::kConfiguration, "the option direct_links is off"};
  Start(Policy(), off);
  ExpectRules(0);
  Want(0);
  EXPECT_EQ(NextOrder(0, LinkOp::kRefuse).code, static_cast<int32_t>(ErrorCode::kUnsupported));
  Want(1);
  EXPECT_EQ(NextOrder(1, LinkOp::kRefuse).code, static_cast<int32_t>(ErrorCode::kConfiguration));
  const control::LinksReply here = Report(0);
  ASSERT_EQ(here.links_size(), 1);
  EXPECT_EQ(here.links(0).state(), "none");
  EXPECT_EQ(here.links(0).why(), "the daemon of node 1 allows no direct links");
  EXPECT_EQ(Report(1).refusal(), "the option direct_links is off");
}

// Their ranks have no rules, and so never ask; one that asks all the same is refused.
TEST_F(DirectLinksTest, WhereRanksCrowdTheCoresThereAreNone) {
  LinkPolicy policy = Policy();
  policy.max_local_ranks = 1;
  Start(policy, policy, {0, 1, 1, 0});
  for (const uint32_t rank : {0, 1}) {
    Want(rank);
    EXPECT_EQ(NextOrder(rank, LinkOp::kRefuse).code, static_cast<int32_t>(ErrorCode::kUnsupported));
    const control::LinksReply report = Report(rank);
    ASSERT_EQ(report.links_size(), 1);
    EXPECT_EQ(report.links(0).state(), "none");
    EXPECT_THAT(report.links(0).why(), testing::HasSubstr("2 ranks on this node"));
  }
}

TEST_F(DirectLinksTest, LinksOfSeveralNicsTakeTheNearest) {
  LinkPolicy policy = Policy();
  policy.nics = {{"10.0.0.1", "fake0"}, {"10.1.0.1", "fake1"}};
  daemons_[0] = std::make_unique<LinkedDaemon>(0, directory_, policy);
  daemons_[1] = std::make_unique<LinkedDaemon>(1, directory_, policy);
  daemons_[1]->data_plane.nearest_nic = "fake1";
  for (const uint32_t node : {0, 1}) {
    daemons_[node]->Start(daemons_[1 - node].get(), true);
    ranks_[node].emplace(daemons_[node]->Enter());
    const auto rules = Next<attach::LinkRules>(node);
    EXPECT_EQ(rules.domain, "fake" + std::to_string(node));
    EXPECT_EQ(rules.source_address, "10." + std::to_string(node) + ".0.1");
  }
}

TEST_F(DirectLinksTest, BadRepliesEndTheSession) {
  Start();
  ExpectRules(0);
  attach::LinkReply reply{};
  reply.header = ranks_[0]->Header(attach::Kind::kLinkReply);
  reply.event = 1;
  reply.peer = 0;
  const Answer answer = ranks_[0]->Ask(reply);
  EXPECT_EQ(answer.kind(), attach::Kind::kGoodbye);
  EXPECT_EQ(answer.code(), ErrorCode::kCorrupt);
  EXPECT_NE(answer.text().find("no rank of another node"), std::string::npos) << answer.text();
  EXPECT_TRUE(ranks_[0]->Read().hang_up);
}

TEST_F(DirectLinksTest, NewsThatMakeNoSenseCostNoOthers) {
  Start();
  ExpectRules(0);
  ExpectRules(1);
  control::NewsReply reply;
  daemons_[0]->Run([&](JobRegistry& registry) {
    control::LinkNewsRequest request;
    request.set_incarnation(101);
    request.set_job_id("job");
    request.set_job_proof(JobProof(kTestSecret, "job", 101));
    request.set_node(1);
    for (const uint32_t rank : {7, 1, 0}) {
      control::LinkNews* const news = request.add_news();
      news->set_kind(control::LinkNews::ASKED);
      news->set_rank(rank);
    }
    EXPECT_TRUE(registry.link_books().TakeNews(request, kAddresses[1], &reply).ok());
  });
  ASSERT_EQ(reply.refused_size(), 2);
  EXPECT_EQ(reply.refused(0).index(), 0U);
  EXPECT_EQ(reply.refused(1).index(), 2U);
  EXPECT_EQ(reply.refused(1).error(), static_cast<int32_t>(ErrorCode::kInvalidArgument));
  EXPECT_NE(reply.refused(1).text().find("none of node 1"), std::string::npos);
  MakeLink();
}

// News of links that have never been, each of which earns an answer; none of these is taken.
TEST_F(DirectLinksTest, ANodeThatTellsAndTakesNothingIsNotHeardForEver) {
  constexpr int kInACall = 1024;
  constexpr int kCalls = 80;
  Start();
  ExpectRules(0);
  daemons_[0]->set_fates({Fate::kIsLost});  // and no tick tries again
  int refused = 0;
  daemons_[0]->Run([&](JobRegistry& registry) {
    control::LinkNewsRequest request;
    request.set_incarnation(101);
    request.set_job_id("job");
    request.set_job_proof(JobProof(kTestSecret, "job", 101));
    request.set_node(1);
    for (int i = 0; i < kInACall; ++i) {
      control::LinkNews* const news = request.add_news();
      news->set_kind(control::LinkNews::BROKEN);
      news->set_rank(1);
      news->set_link(1000 + static_cast<uint64_t>(i));
    }
    for (int call = 0; call < kCalls; ++call) {
      control::NewsReply reply;
      ASSERT_TRUE(registry.link_books().TakeNews(request, kAddresses[1], &reply).ok());
      refused += reply.refused_size();
      if (reply.refused_size() != 0) {
        EXPECT_NE(reply.refused(0).text().find("node 1 tells, and does not take the"),
                  std::string::npos);
      }
    }
  });
  EXPECT_GE(refused, kCalls * kInACall - 65'536);
  EXPECT_LT(refused, kCalls * kInACall - 1000) << "what a correct node may earn is taken";
}

TEST_F(DirectLinksTest, WhoeverSaysThemHearsWhichOnes) {
  Start();
  ExpectRules(1);
  daemons_[1]->set_fates({Fate::kArrivesSpoilt});
  Want(1);
  EXPECT_EQ(NextOrder(1, LinkOp::kRefuse).code, static_cast<int32_t>(ErrorCode::kInvalidArgument));
  ExpectRules(0);
  Want(1);
  MakeLink();
}

TEST_F(DirectLinksTest, TheOtherRankHearsOfADeath) {
  Start();
  ExpectRules(0);
  ExpectRules(1);
  Want(0);
  MakeLink();
  ranks_[0]->HangUp();
  ASSERT_TRUE(daemons_[0]->data_plane.WaitFor("RankEnded job 0"));
  daemons_[1]->Run([](JobRegistry& registry) {
    control::LeftRequest left;
    left.set_incarnation(100);
    left.set_job_id("job");
    left.set_job_proof(JobProof(kTestSecret, "job", 100));
    left.add_ranks()->set_error(static_cast<int32_t>(ErrorCode::kPeerDied));
    EXPECT_TRUE(registry.nodes().OnLeft(left, kAddresses[0]).ok());
  });
  EXPECT_EQ(NextOrder(1, LinkOp::kEnd).code, static_cast<int32_t>(ErrorCode::kPeerDied));
}

TEST_F(DirectLinksTest, TwoRanksWhoseLinkBreaksArePartedAndJoined) {
  Start();
  ExpectRules(0);
  ExpectRules(1);
  Want(0);
  MakeLink();
  Reply(0, LinkEvent::kLost, 1);
  EXPECT_EQ(NextOrder(1, LinkOp::kEnd).code, static_cast<int32_t>(ErrorCode::kLinkDown));
  Reply(1, LinkEvent::kEnded, 1);
  EXPECT_EQ(NextOrder(0, LinkOp::kEnd).code, static_cast<int32_t>(ErrorCode::kLinkDown));
  EXPECT_EQ(daemons_[0]->data_plane.Count("PartRanks"), 0U);
  Reply(0, LinkEvent::kEnded, 1);
  for (uint32_t rank : {0, 1}) {
    EXPECT_EQ(NextOrder(rank, LinkOp::kRefuse).code, static_cast<int32_t>(ErrorCode::kLinkDown));
    EXPECT_EQ(daemons_[rank]->data_plane.Count("PartRanks job"), 1U);
    EXPECT_EQ(daemons_[rank]->data_plane.Count("AreRejoined job"), 1U);
  }
}

TEST_F(DirectLinksTest, TheAdministratorSeesLinksAndTakesThemBack) {
  Start();
  ExpectRules(0);
  ExpectRules(1);
  ranks_[0]->by_rank().links[1].messages = 17;
  EXPECT_EQ(Report(0).links(0).why(), "after 17 of 256 messages");
  Want(0);
  MakeLink();
  ranks_[0]->by_rank().peers[1].path = static_cast<uint32_t>(shm::PeerPath::kLink);
  const control::LinksReply report = Report(0);
  ASSERT_EQ(report.links_size(), 1);
  EXPECT_EQ(report.links(0).state(), "up");
  EXPECT_EQ(report.links(0).out(), "link");
  EXPECT_EQ(report.links(0).in(), "daemon");
  EXPECT_EQ(report.links(0).why(), "");
  ASSERT_EQ(report.totals_size(), 1);
  EXPECT_EQ(report.totals(0).links(), 1U);
  daemons_[1]->Run([](JobRegistry& registry) {
    EXPECT_EQ(registry.link_books().TakeBack("other", 0, 1, false).status().code(),
              ErrorCode::kNotFound);
    EXPECT_EQ(*registry.link_books().TakeBack("job", kAnyRank, kAnyRank, false), 1U);
  });
  for (uint32_t rank : {0, 1}) {
    (void)NextOrder(rank, LinkOp::kReturn);
    Reply(rank, LinkEvent::kReturned, 1);
  }
  for (uint32_t rank : {0, 1}) {
    (void)NextOrder(rank, LinkOp::kEnd);
    Reply(rank, LinkEvent::kEnded, 1);
  }
  Want(1);
  EXPECT_EQ(NextOrder(1, LinkOp::kRefuse).code, static_cast<int32_t>(ErrorCode::kPermissionDenied));
}

TEST_F(DirectLinksTest, TheAdministratorBarsLinksBeforeAnybodyAsks) {
  Start();
  ExpectRules(0);
  ExpectRules(1);
  ranks_[0]->by_rank().links[1].messages = 17;
  daemons_[0]->Run([](JobRegistry& registry) {
    EXPECT_EQ(registry.link_books().TakeBack("job", 1, kAnyRank, false).status().code(),
              ErrorCode::kInvalidRank);
    EXPECT_EQ(registry.link_books().TakeBack("job", 0, 0, false).status().code(),
              ErrorCode::kInvalidRank);
    EXPECT_EQ(*registry.link_books().TakeBack("job", 0, kAnyRank, false), 0U);
  });
  EXPECT_EQ(Report(0).links(0).why(), "the administrator has taken it back");
  Want(0);
  EXPECT_EQ(NextOrder(0, LinkOp::kRefuse).code, static_cast<int32_t>(ErrorCode::kPermissionDenied));
  Want(1);
  EXPECT_EQ(NextOrder(1, LinkOp::kRefuse).code, static_cast<int32_t>(ErrorCode::kPermissionDenied));
}

}  // namespace
}  // namespace ferry::daemon

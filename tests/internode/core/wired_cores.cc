#include "tests/internode/core/wired_cores.h"

#include <utility>

#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

void TakeLink(PlaneRank& rank, uint32_t peer) {
  shm::SessionLayout& session = *rank.view().layout;
  shm::LaneProducer(&session.to_link).Open(rank.rank());
  shm::PeerWords& words = rank.view().by_rank.peers[peer];
  words.path = words.inward_path = static_cast<uint32_t>(shm::PeerPath::kLink);
  rank.view().by_rank.links[peer].state = static_cast<uint32_t>(shm::LinkState::kOpen);
  rank.view().by_rank.SetBusy(peer);
  session.linked_peers = 1;
}

}  // namespace

void WiredCoresTest::Start(bool by_link, const std::vector<uint32_t>& engines) {
  local_size_ = {1, 1};
  node_of_rank_ = {0, 1};
  local_index_ = {0, 0};
  ranks_.clear();
  ranks_.resize(2);
  for (const uint32_t node : {0U, 1U}) {
    sessions_[node] = MakeSession(node);
    ranks_[node] = std::make_unique<PlaneRank>(sessions_[node], PlanFor(node),
                                               MapAll(sessions_[node]->session_fd.get()),
                                               MapAll(sessions_[node]->inbox_fd.get()));
    auto end = std::make_unique<WireEnd>();
    ends_[node] = end.get();
    progress::CoreOptions options;
    options.staging_blocks = 0;
    options.push_max_bytes = 512 << 10;
    options.max_held_bytes = kMostParked;
    progress::CoreParts parts;
    parts.transport = std::move(end);
    parts.home = this;
    progress::CoreHooks hooks;
    hooks.on_violation = [this](const std::string&, uint32_t, const std::string& text) {
      violations_.push_back(text);
    };
    if (by_link) {
      hooks.on_rank_ended = [this](const std::string&, uint32_t rank, ErrorCode error) {
        ended_.emplace_back(rank, error);
      };
    }
    if (judges_) {
      hooks.on_link_down = [this](uint64_t link, ErrorCode, const std::string&) {
        lost_.push_back(link);
      };
    }
    auto core = progress::ProgressCore::Create(options, std::move(parts), std::move(hooks), [] {});
    ASSERT_TRUE(core.ok()) << core.status().ToString();
    cores_[node] = std::move(*core);
    ASSERT_TRUE(cores_[node]->control().AddJob(PlanFor(node)).ok());
    ASSERT_TRUE(cores_[node]->control().CheckSession(*sessions_[node]).ok());
    cores_[node]->control().AddSession(
        sessions_[node],
        by_link ? progress::LinkSeat(*sessions_[node]) : progress::DaemonSeat(*sessions_[node]));
  }
  ends_[0]->Join(*ends_[1]);
  ends_[1]->Join(*ends_[0]);
  Mend(0);
  for (const uint32_t one : engines) {
    rank(one).BuildEngine({ranks_[one].get()});
    if (by_link) {
      TakeLink(rank(one), 1 - one);
    }
  }
}

void WiredCoresTest::TearDown() {
  for (const uint32_t rank : {0U, 1U}) {
    bool says_no_more = false;
    for (int n = 0;
         n < 100 && !cores_[rank]->control().TryRemoveSession(kJob, rank, 0, &says_no_more); ++n) {
      Turn();
    }
    EXPECT_EQ(cores_[rank]->control().FindServed(kJob, rank), nullptr) << "it is never let go of";
    EXPECT_EQ(ends_[rank]->registered(), 0U);
  }
}

void WiredCoresTest::Turn() {
  now_ns_ += 1000;
  cores_[0]->Turn(now_ns_);
  cores_[1]->Turn(now_ns_);
}

void WiredCoresTest::Settle(bool progresses) {
  for (int n = 0; n < 20; ++n) {
    Turn();
    for (const auto& rank : ranks_) {
      if (progresses && rank->has_engine()) {
        rank->Progress();
      }
    }
  }
}

void WiredCoresTest::CutWire() {
  ends_[0]->Break();
  for (const uint32_t node : {0U, 1U}) {
    cores_[node]->ends().NodeFailed(kFirstLink + 1 - node, ErrorCode::kLinkDown);
  }
}

void WiredCoresTest::Mend(uint64_t life) {
  for (const uint32_t node : {0U, 1U}) {
    const NodeRoute route{{}, 10 + node, 11 - node, kFirstLink + 1 - node, life};
    const Status status = cores_[node]->control().AddNode(kJob, 1 - node, route);
    ASSERT_TRUE(status.ok()) << status.ToString();
    cores_[node]->ends().NodeReturned(kJob, 1 - node);
  }
}

uint32_t WiredCoresTest::Receive(uint32_t one, std::vector<std::byte>& buffer, int32_t tag) {
  return rank(one).Receive(static_cast<int32_t>(1 - one), tag, Private(buffer.data()),
                           buffer.size());
}

void WiredCoresTest::ExpectReceived(uint32_t one, uint32_t request, ErrorCode error) {
  ASSERT_TRUE(rank(one).Test(request));
  EXPECT_EQ(rank(one).Wait(request), error);
}

std::byte* WiredCoresTest::Reach(const progress::ServedRank&, uint64_t address, uint64_t) {
  return reaches_ ? reinterpret_cast<std::byte*>(address) : nullptr;
}

void WiredCoresTest::LetMatch(progress::ServedRank& served) {
  if (matches_ && rank(served.rank()).has_engine()) {
    rank(served.rank()).Progress();
  }
}

}  // namespace ferry::daemon

// Ranks and nodes that a test makes up, and what a graph of waits says of them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "daemon/admin/why_graph.h"

namespace ferry::daemon {

using control::RankWait;

// A rank in a state other than "waits".
inline RankWait Does(uint32_t rank, const std::string& state, const std::string& detail) {
  RankWait look;
  look.set_job_id("job");
  look.set_rank(rank);
  look.set_state(state);
  look.set_detail(detail);
  return look;
}

// A rank that sleeps in a receive from each of `peers`.
inline RankWait Waits(uint32_t rank, const std::vector<uint32_t>& peers) {
  RankWait look = Does(rank, "waits", "waits inside Ferry, asleep");
  look.set_asleep(true);
  look.set_mark(1000 + rank);
  look.set_unfinished(static_cast<uint32_t>(peers.size()));
  for (const uint32_t peer : peers) {
    control::WaitEdge* const edge = look.add_edges();
    edge->set_peer(peer);
    edge->set_receives(true);
  }
  return look;
}

// Daemons that know what the test tells them.
class FakeNodes final : public RankLooker {
 public:
  // The ranks of the node come along with `look`.
  void Knows(const RankWait& look, const std::vector<RankWait>& others = {}) {
    known_[look.rank()] = {look};
    known_[look.rank()].insert(known_[look.rank()].end(), others.begin(), others.end());
    for (const RankWait& each : known_[look.rank()]) {
      second[each.rank()] = each;
    }
  }
  Answer Look(const std::string&, uint32_t rank, bool may_ask) override {
    Answer answer;
    answer.ranks = {Does(rank, "elsewhere", "is on node 1")};
    if (!may_ask) {
      return answer;
    }
    answer.asked = true;
    ++asked;
    if (const auto found = known_.find(rank); found != known_.end()) {
      answer.ranks = found->second;
    } else {
      answer.trouble = {silent ? ErrorCode::kTimeout : ErrorCode::kNodeUnreachable,
                        "there is no link"};
    }
    return answer;
  }
  std::vector<RankWait> LookAgain(const std::string&,
                                  std::span<const WaitPairName> pairs) override {
    if (on_second) {
      on_second();
    }
    std::vector<RankWait> looks;
    for (const WaitPairName& pair : pairs) {
      looks.push_back(second[pair.rank]);
      waiters[pair.rank] = pair.waiter;
    }
    return looks;
  }
  void Pause(std::chrono::milliseconds time) override { paused += time; }

  int asked = 0;
  bool silent = false;  // those that know nothing
  std::map<uint32_t, RankWait> second;
  std::map<uint32_t, uint32_t> waiters;  // by rank, of the last second look
  std::function<void()> on_second;
  std::chrono::milliseconds paused{0};

 private:
  std::map<uint32_t, std::vector<RankWait>> known_;
};

class WhyGraphTest : public ::testing::Test {
 protected:
  // Explains those ranks, which are here.
  std::vector<RankWait> Explain(const std::vector<RankWait>& looks) {
    control::WhyReply reply;
    for (const RankWait& look : looks) {
      *reply.add_ranks() = look;
      nodes_.second.try_emplace(look.rank(), look);
    }
    WaitGraph(&nodes_).Explain(reply.mutable_ranks());
    return {reply.ranks().begin(), reply.ranks().end()};
  }
  FakeNodes nodes_;
};

}  // namespace ferry::daemon

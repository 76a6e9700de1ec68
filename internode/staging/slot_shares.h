// Shares out the slots of something that many flows use, such as the operations of the network, so
// that a flow that never gives its slots back keeps no other flow from going on.
//
// Each flow (the work of one job with one node) has a line of its own, first come first served, and
// a part of the slots: it may hold that many, and kLeast at least, also while others hold more than
// their parts. Slots that no other flow wants, a flow may hold beyond its part. So more than `most`
// slots may be in use, by as many as the others' parts: the resource behind them has to have room
// for that.
//
// Thread: the progress thread. Allocates only for users that wait.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

namespace ferry::progress {

// One user of SlotShares, which refers to it until SlotShares::Forget.
struct SlotFlow {
  uint32_t under_way = 0;
  std::list<uint64_t> line;  // those that wait, under names of their own choice
  size_t place = 0;          // in SlotShares::flows_, from 1 on; 0: it has and wants nothing
};

class SlotShares {
 public:
  static constexpr uint32_t kLeast = 4;

  explicit SlotShares(uint32_t most) : most_(most) {}
  SlotShares(const SlotShares&) = delete;
  SlotShares& operator=(const SlotShares&) = delete;

  bool MayTake(const SlotFlow& flow) const {
    if (under_way_ < most_) {
      return true;
    }
    const size_t flows = flows_.size() + (flow.place == 0 ? 1 : 0);
    return flow.under_way < std::max<size_t>(most_ / flows, kLeast);
  }
  void Take(SlotFlow& flow) {
    ++under_way_;
    ++flow.under_way;
    List(flow);
  }
  void Give(SlotFlow& flow) {
    --under_way_;
    --flow.under_way;
    UnlistIfIdle(flow);
  }
  void Wait(SlotFlow& flow, uint64_t id) {
    flow.line.push_back(id);
    List(flow);
  }
  // Calls resume(id) for each waiting user that may go on. If resume returns true, that one waits
  // again, and so do the others of its flow.
  template <typename Resume>
  void Advance(Resume&& resume) {
    for (size_t i = 0; i < flows_.size();) {
      SlotFlow& flow = *flows_[i];
      bool waits = false;
      for (size_t n = flow.line.size(); n > 0 && !waits && MayTake(flow); --n) {
        const uint64_t id = flow.line.front();
        flow.line.pop_front();
        waits = resume(id);
      }
      UnlistIfIdle(flow);
      i += i < flows_.size() && flows_[i] == &flow ? 1 : 0;
    }
  }
  // Drops all slots and waiting users of a flow that is about to go.
  void Forget(SlotFlow& flow) {
    under_way_ -= flow.under_way;
    flow.under_way = 0;
    flow.line.clear();
    UnlistIfIdle(flow);
  }

  uint32_t under_way() const { return under_way_; }

 private:
  void List(SlotFlow& flow) {
    if (flow.place == 0) {
      flows_.push_back(&flow);
      flow.place = flows_.size();
    }
  }
  void UnlistIfIdle(SlotFlow& flow) {
    if (flow.place != 0 && flow.under_way == 0 && flow.line.empty()) {
      flows_[flow.place - 1] = flows_.back();
      flows_[flow.place - 1]->place = flow.place;
      flows_.pop_back();
      flow.place = 0;
    }
  }

  const uint32_t most_;
  uint32_t under_way_ = 0;
  std::vector<SlotFlow*> flows_;  // that have or want something
};

}  // namespace ferry::progress

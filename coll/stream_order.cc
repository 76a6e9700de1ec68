#include "coll/stream_order.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <queue>
#include <utility>

namespace ferry::collective {
namespace {

// Divides the waits of a schedule into those of the stream and those of chains.
class Chains {
 public:
  Chains(const Schedule& schedule, const ChainRules& rules)
      : schedule_(schedule),
        rules_(rules),
        follows_(schedule.steps.size()),
        followers_(schedule.steps.size()),
        unawaited_(schedule.steps.size()) {
    for (StepId id = 0; id < schedule.steps.size(); ++id) {
      FindWaits(id);
      if (IsChained(id, StepKind::kSend)) {
        Chain(id);
      } else if (IsChained(id, StepKind::kReceive) && schedule.steps[id].to.size_bytes == 0) {
        std::swap(unawaited_[id], waits_);  // it overwrites nothing
      }
      graph_.Add(waits_);
    }
  }

  const engine::StepGraph& graph() const { return graph_; }
  std::vector<StepId> TakeFollows(StepId id) { return std::move(follows_[id]); }

 private:
  bool IsChained(StepId id, StepKind kind) const {
    return rules_.may_chain && schedule_.steps[id].kind == kind && rules_.may_chain(id);
  }

  // All that the step waits for in the schedule, but not what others of these still wait for. A
  // chained message may be over before the stream has waited for what was over before it otherwise.
  void FindWaits(StepId id) {
    waits_.assign(schedule_.graph.WaitsOf(id).begin(), schedule_.graph.WaitsOf(id).end());
    if (IsChained(id, StepKind::kSend) || IsChained(id, StepKind::kReceive)) {
      for (size_t i = 0; i < waits_.size();) {  // without the joins between
        const StepId wait = waits_[i];
        if (schedule_.steps[wait].kind != StepKind::kJoin) {
          ++i;
          continue;
        }
        waits_[i] = waits_.back();
        waits_.pop_back();
        waits_.insert(waits_.end(), graph_.WaitsOf(wait).begin(), graph_.WaitsOf(wait).end());
      }
    }
    for (size_t i = 0, count = waits_.size(); i < count; ++i) {
      const std::vector<StepId>& more = unawaited_[waits_[i]];
      waits_.insert(waits_.end(), more.begin(), more.end());
    }
    std::sort(waits_.begin(), waits_.end());
    waits_.erase(std::unique(waits_.begin(), waits_.end()), waits_.end());
  }

  // Lets a send follow receives in place of waiting for them; nor does it wait for other sends, for
  // which only a fence makes it: that one has ended says nothing that its partner's next message
  // would not say.
  void Chain(StepId id) {
    const auto is_chained = [this](StepKind kind) {
      return [this, kind](StepId wait) { return IsChained(wait, kind); };
    };
    std::vector<StepId>& follows = follows_[id];
    std::ranges::copy_if(waits_, std::back_inserter(follows), is_chained(StepKind::kReceive));
    const bool is_too_much = follows.size() > rules_.most_followed ||
                             std::ranges::any_of(follows, [this](StepId receive) {
                               return followers_[receive] >= rules_.most_followers;
                             });
    if (follows.empty() || is_too_much) {
      follows.clear();
      return;
    }
    for (const StepId receive : follows) {
      ++followers_[receive];
    }
    unawaited_[id] = follows;
    std::ranges::copy_if(waits_, std::back_inserter(unawaited_[id]), is_chained(StepKind::kSend));
    std::erase_if(waits_, is_chained(StepKind::kReceive));
    std::erase_if(waits_, is_chained(StepKind::kSend));
  }

  const Schedule& schedule_;
  const ChainRules& rules_;
  engine::StepGraph graph_;
  std::vector<std::vector<StepId>> follows_;
  std::vector<size_t> followers_;
  // The waits that a chained step leaves out: these steps may still run when it ends.
  std::vector<std::vector<StepId>> unawaited_;
  std::vector<StepId> waits_;  // of the step being added
};

class Orderer {
 public:
  Orderer(const Schedule& schedule, const ChainRules& rules)
      : schedule_(schedule),
        chains_(schedule, rules),
        run_(chains_.graph()),
        states_(schedule.steps.size(), State::kPending) {
    run_.Start();
  }

  std::vector<OrderedStep> Order() {
    for (StepId next = 0; next < Count();) {
      BeginReady();
      while (next < Count() && states_[next] != State::kPending) {
        ++next;
      }
      if (next < Count()) {
        AwaitWhatItNeeds(next);
      }
    }
    for (StepId id = 0; id < Count(); ++id) {
      Await(id);
    }
    return std::move(ordered_);
  }

 private:
  enum class State : uint8_t { kPending, kUnderWay, kOver };
  // The order in which steps begin, if there is a choice.
  enum Rank : size_t { kReceives, kSends, kOthers, kRanks };
  using Ready = std::priority_queue<StepId, std::vector<StepId>, std::greater<>>;

  StepId Count() const { return static_cast<StepId>(states_.size()); }

  void NoteReady() {
    for (StepId id = run_.Next(); id != engine::kNoStep; id = run_.Next()) {
      const StepKind kind = schedule_.steps[id].kind;
      ready_[kind == StepKind::kReceive ? kReceives
             : kind == StepKind::kSend  ? kSends
                                        : kOthers]
          .push(id);
    }
  }

  void BeginReady() {
    for (size_t rank = 0; rank < kRanks;) {
      NoteReady();
      if (ready_[rank].empty()) {
        ++rank;
        continue;
      }
      const StepId id = ready_[rank].top();
      ready_[rank].pop();
      Begin(id);
      rank = 0;  // that may have made others ready
    }
  }

  void Begin(StepId id) {
    const StepKind kind = schedule_.steps[id].kind;
    if (kind == StepKind::kSend || kind == StepKind::kReceive) {
      ordered_.push_back({StreamAction::kStart, id, chains_.TakeFollows(id)});
      states_[id] = State::kUnderWay;
      return;
    }
    if (kind != StepKind::kJoin) {
      ordered_.push_back({StreamAction::kCompute, id});
    }
    End(id);
  }

  void End(StepId id) {
    states_[id] = State::kOver;
    run_.End(id);
  }

  void Await(StepId id) {
    if (states_[id] == State::kUnderWay) {
      ordered_.push_back({StreamAction::kWait, id});
      End(id);
    }
  }

  // All steps that it waits for have begun: they stand before it, and it is the first to come.
  void AwaitWhatItNeeds(StepId id) {
    for (const StepId wait : chains_.graph().WaitsOf(id)) {
      Await(wait);
    }
  }

  const Schedule& schedule_;
  Chains chains_;
  engine::ScheduleRun run_;
  std::vector<State> states_;
  std::array<Ready, kRanks> ready_;
  std::vector<OrderedStep> ordered_;
};

}  // namespace

std::vector<OrderedStep> OrderForStream(const Schedule& schedule, const ChainRules& rules) {
  return Orderer(schedule, rules).Order();
}

}  // namespace ferry::collective

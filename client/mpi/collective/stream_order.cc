#include "client/mpi/collective/stream_order.h"

#include <array>
#include <functional>
#include <queue>

namespace ferry::mpi {
namespace {

class Orderer {
 public:
  explicit Orderer(const Schedule& schedule)
      : schedule_(schedule),
        states_(schedule.steps.size(), State::kPending),
        missing_(schedule.steps.size()),
        followers_(schedule.steps.size()) {
    for (StepId id = 0; id < Count(); ++id) {
      missing_[id] = schedule.first_dependency[id + 1] - schedule.first_dependency[id];
      for (uint32_t i = schedule.first_dependency[id]; i < schedule.first_dependency[id + 1]; ++i) {
        followers_[schedule.dependencies[i]].push_back(id);
      }
      if (missing_[id] == 0) {
        MakeReady(id);
      }
    }
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

  void MakeReady(StepId id) {
    const StepKind kind = schedule_.steps[id].kind;
    ready_[kind == StepKind::kReceive ? kReceives
           : kind == StepKind::kSend  ? kSends
                                      : kOthers]
        .push(id);
  }

  void BeginReady() {
    for (size_t rank = 0; rank < kRanks;) {
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
      ordered_.push_back({StreamAction::kStart, id});
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
    for (const StepId follower : followers_[id]) {
      if (--missing_[follower] == 0) {
        MakeReady(follower);
      }
    }
  }

  void Await(StepId id) {
    if (states_[id] == State::kUnderWay) {
      ordered_.push_back({StreamAction::kWait, id});
      End(id);
    }
  }

  // All steps that it waits for have begun: they stand before it, and it is the first to come.
  void AwaitWhatItNeeds(StepId id) {
    for (uint32_t i = schedule_.first_dependency[id]; i < schedule_.first_dependency[id + 1]; ++i) {
      Await(schedule_.dependencies[i]);
    }
  }

  const Schedule& schedule_;
  std::vector<State> states_;
  std::vector<uint32_t> missing_;  // how many others a step still waits for
  std::vector<std::vector<StepId>> followers_;
  std::array<Ready, kRanks> ready_;
  std::vector<OrderedStep> ordered_;
};

}  // namespace

std::vector<OrderedStep> OrderForStream(const Schedule& schedule) {
  return Orderer(schedule).Order();
}

}  // namespace ferry::mpi

#include "client/collective/stream_order.h"

#include <array>
#include <functional>
#include <queue>

namespace ferry::collective {
namespace {

class Orderer {
 public:
  explicit Orderer(const Schedule& schedule)
      : schedule_(schedule), run_(schedule.graph), states_(schedule.steps.size(), State::kPending) {
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
    for (const StepId wait : schedule_.graph.WaitsOf(id)) {
      Await(wait);
    }
  }

  const Schedule& schedule_;
  engine::ScheduleRun run_;
  std::vector<State> states_;
  std::array<Ready, kRanks> ready_;
  std::vector<OrderedStep> ordered_;
};

}  // namespace

std::vector<OrderedStep> OrderForStream(const Schedule& schedule) {
  return Orderer(schedule).Order();
}

}  // namespace ferry::collective

// Schedules: steps that wait for each other, and the counting that carries one out.
//
// A schedule says which earlier steps each step waits for; its user gives the steps their meaning:
// MPI's collectives send, receive, copy and reduce (coll), the simulator lets time pass
// (tools/ferrysim). A step may also stand for the work of others: then they end it.
//
// Pure: no I/O, no clock, no threads. Calling thread: one at a time. Nothing blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry::engine {

using StepId = uint32_t;
inline constexpr StepId kNoStep = UINT32_MAX;

// The steps of a schedule, and the earlier steps that each waits for.
class StepGraph {
 public:
  // Adds a step, and returns its number: they count from 0. Aborts unless all of `waits` are
  // earlier steps, so that no step can wait for itself.
  StepId Add(std::span<const StepId> waits);

  uint32_t size() const { return static_cast<uint32_t>(first_.size() - 1); }
  std::span<const StepId> WaitsOf(StepId step) const {
    return {waits_.data() + first_[step], waits_.data() + first_[step + 1]};
  }

 private:
  std::vector<uint32_t> first_ = {0};  // where a step's waits begin; at the end, all of them
  std::vector<StepId> waits_;
};

// Carries a schedule out, one start after the other: counts how many of those that a step waits for
// have not ended. Only the constructor allocates, and copying.
class ScheduleRun {
 public:
  // Does not refer to `graph` later. Done until it is started.
  explicit ScheduleRun(const StepGraph& graph);

  // All steps are to run once more. The last start must be done.
  void Start() {
    std::copy(waits_.begin(), waits_.end(), missing_.begin());
    taken_ = 0;
    ready_end_ = roots_;
    left_ = static_cast<uint32_t>(waits_.size());
  }
  // Takes the step that has been ready for longest, which the caller begins. kNoStep: none is.
  StepId Next() { return taken_ == ready_end_ ? kNoStep : ready_[taken_++]; }
  // A step that was taken has ended, well or badly: others may be ready now.
  void End(StepId step) {
    for (uint32_t i = first_follower_[step]; i < first_follower_[step + 1]; ++i) {
      if (--missing_[followers_[i]] == 0) {
        ready_[ready_end_++] = followers_[i];
      }
    }
    --left_;
  }
  // True once all steps have ended.
  bool is_done() const { return left_ == 0; }

 private:
  std::vector<uint32_t> waits_;           // how many steps each waits for
  std::vector<uint32_t> missing_;         // how many of these have not ended
  std::vector<uint32_t> first_follower_;  // as in StepGraph, of those that wait for a step
  std::vector<StepId> followers_;
  // The steps in the order in which they became ready, first those that wait for nothing, in every
  // start the same. Each becomes ready once.
  std::vector<StepId> ready_;
  uint32_t roots_ = 0;
  uint32_t taken_ = 0;
  uint32_t ready_end_ = 0;
  uint32_t left_ = 0;
};

}  // namespace ferry::engine

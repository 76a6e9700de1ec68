#include "engine/schedule/schedule.h"

#include <cstdlib>
#include <numeric>

namespace ferry::engine {

StepId StepGraph::Add(std::span<const StepId> waits) {
  const StepId step = size();
  if (std::any_of(waits.begin(), waits.end(), [step](StepId wait) { return wait >= step; })) {
    std::abort();  // it would wait for ever
  }
  waits_.insert(waits_.end(), waits.begin(), waits.end());
  first_.push_back(static_cast<uint32_t>(waits_.size()));
  return step;
}

ScheduleRun::ScheduleRun(const StepGraph& graph)
    : waits_(graph.size()),
      missing_(graph.size()),
      first_follower_(graph.size() + 1),
      ready_(graph.size()) {
  for (StepId step = 0; step < graph.size(); ++step) {
    const std::span<const StepId> waits = graph.WaitsOf(step);
    waits_[step] = static_cast<uint32_t>(waits.size());
    if (waits.empty()) {
      ready_[roots_++] = step;
    }
    for (const StepId wait : waits) {
      ++first_follower_[wait + 1];
    }
  }
  std::partial_sum(first_follower_.begin(), first_follower_.end(), first_follower_.begin());
  followers_.resize(first_follower_.back());
  std::vector<uint32_t> next = first_follower_;
  for (StepId step = 0; step < graph.size(); ++step) {
    for (const StepId wait : graph.WaitsOf(step)) {
      followers_[next[wait]++] = step;
    }
  }
}

}  // namespace ferry::engine

#include "tools/ferrysim/event_queue.h"

#include <algorithm>
#include <cstdlib>

namespace ferry::sim {
namespace {

constexpr size_t kBelow = 4;

}  // namespace

// Puts `event` where `hole` is, or above.
void EventQueue::SiftUp(size_t hole, const Event& event) {
  while (hole != 0) {
    const size_t above = (hole - 1) / kBelow;
    if (!IsSooner(event, heap_[above])) {
      break;
    }
    heap_[hole] = heap_[above];
    hole = above;
  }
  heap_[hole] = event;
}

// Puts `event` where the front was, or below.
void EventQueue::SiftDown(const Event& event) {
  size_t hole = 0;
  for (;;) {
    const size_t first = hole * kBelow + 1;
    if (first >= heap_.size()) {
      break;
    }
    size_t soonest = first;
    for (size_t i = first + 1; i < std::min(first + kBelow, heap_.size()); ++i) {
      soonest = IsSooner(heap_[i], heap_[soonest]) ? i : soonest;
    }
    if (!IsSooner(heap_[soonest], event)) {
      break;
    }
    heap_[hole] = heap_[soonest];
    hole = soonest;
  }
  heap_[hole] = event;
}

void EventQueue::At(Time at, const Action& action) {
  if (at < now_) {
    std::abort();  // a model that changes the past is wrong
  }
  heap_.emplace_back();
  SiftUp(heap_.size() - 1, {at, made_++, action});
}

bool EventQueue::RunOne() {
  if (heap_.empty()) {
    return false;
  }
  const Event event = heap_.front();
  const Event last = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) {
    SiftDown(last);
  }
  now_ = event.at;
  ran_++;
  event.action();
  return true;
}

bool EventQueue::Run(uint64_t limit) {
  for (uint64_t i = 0; i < limit; ++i) {
    if (!RunOne()) {
      return true;
    }
  }
  return heap_.empty();
}

}  // namespace ferry::sim

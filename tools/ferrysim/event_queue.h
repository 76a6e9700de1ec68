// Runs events in the order of their times, and of their making where times are equal. So a
// simulation that has no clock or thread of its own runs the same way every time.
//
// Calling thread: one. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/ferrysim/time.h"

namespace ferry::sim {

// A function to call, with its arguments; needs no allocation.
struct Action {
  void (*call)(void* self, uint64_t a, uint64_t b) = nullptr;
  void* self = nullptr;
  uint64_t a = 0;
  uint64_t b = 0;

  void operator()() const { call(self, a, b); }
};

class EventQueue {
 public:
  // `at` is not before now().
  void At(Time at, const Action& action);
  // Runs the next event. False: there is none.
  bool RunOne();
  // Runs until nothing is left, or `limit` events have run. Returns whether nothing is left.
  bool Run(uint64_t limit = UINT64_MAX);

  Time now() const { return now_; }
  uint64_t ran() const { return ran_; }

 private:
  struct Event {
    Time at;
    uint64_t order;
    Action action;
  };
  static bool IsSooner(const Event& a, const Event& b) {
    return a.at != b.at ? a.at < b.at : a.order < b.order;
  }
  void SiftUp(size_t hole, const Event& event);
  void SiftDown(const Event& event);

  // A heap with four children per node: half as deep as a binary one, and children that are
  // compared lie together in memory.
  std::vector<Event> heap_;
  Time now_ = 0;
  uint64_t made_ = 0;
  uint64_t ran_ = 0;
};

}  // namespace ferry::sim

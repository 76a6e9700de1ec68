// Makes a schedule from the calls that an algorithm makes in the order of an ordinary program.
//
// Algorithms write down sends, receives, copies and reductions as if each were over before the next
// begins. The builder finds out which steps really have to wait for which: a step waits for those
// before it that wrote bytes it reads, or that read or wrote bytes it writes. So no schedule has a
// race, and everything else overlaps: segments of a pipeline, receives posted ahead, exchanges.
//
// Messages between two ranks pair up in the order of the program: the k-th that one says it sends
// to the other is the k-th that the other says it receives. Ranges of no bytes make no step, on
// either side; Notify and Await are messages without bytes.
//
// Calling thread: one. Nothing blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "coll/schedule.h"

namespace ferry::collective {

class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(size_t element_bytes = 1) { schedule_.element_bytes = element_bytes; }

  void Send(int peer, const Range& from);
  void Receive(int peer, const Range& to);
  void Copy(const Range& from, const Range& to);
  // `to` is left, right, or apart from both. All three have the same size: whole elements.
  // `operation`: which of the reducer's.
  void Reduce(const Range& left, const Range& right, const Range& to, uint32_t operation = 0);
  void Notify(int peer);
  void Await(int peer);
  // Steps that come later wait for all that came before.
  void Fence();

  // Memory of the schedule's own, aligned to 64 bytes.
  Range Scratch(size_t size_bytes);

  Schedule Finish() { return std::move(schedule_); }

 private:
  // Bytes with the same history.
  struct Stretch {
    size_t end = 0;
    StepId writer = kNobody;
    std::vector<StepId> readers;  // since it was written
  };
  using Stretches = std::map<size_t, Stretch>;  // by first byte; without gaps or overlaps
  static constexpr StepId kNobody = UINT32_MAX;

  StepId NextStep() const { return static_cast<StepId>(schedule_.steps.size()); }
  void Split(Stretches* stretches, size_t at);
  void NoteRead(const Range& range);
  void NoteWrite(const Range& range);
  void WaitFor(StepId step);
  bool IsImplied(StepId step) const;
  void Add(const Step& step);

  Schedule schedule_;
  std::array<Stretches, kPlaces> stretches_;
  std::vector<StepId> waits_;  // of the step being added
  StepId fence_ = kNobody;
  std::unordered_map<int, uint32_t> sent_;
  std::unordered_map<int, uint32_t> received_;
};

}  // namespace ferry::collective

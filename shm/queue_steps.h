// Writing and reading the steps of a queue (shm/layout/queue_layout.h).
//
// Calling thread: the writer's, one at a time; readers any, of any process that maps the block.
// Nothing blocks. The rank may change the steps meanwhile, and may have written anything.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shm/layout/queue_layout.h"

namespace ferry::shm {

struct QueueStep {
  uint64_t position = 0;  // from 1
  uint64_t round = 0;
  Location end{};
  QueueStepKind kind = QueueStepKind::kStart;
};

// Replaces what was at the position's entry.
void WriteQueueStep(QueueStepsLayout* steps, const QueueStep& step);
// Removes the step at the position's entry, if there is any.
void ClearQueueStep(QueueStepsLayout* steps, uint64_t position);
// Returns the steps in the order in which the stream carries them out; none if the block is none.
// All words of a step belong to each other.
std::vector<QueueStep> ReadQueueSteps(const QueueStepsLayout& steps);

// A place in a rank's memory as one number, CallRecordLayout::object; 0: it has none.
uint64_t ObjectOf(const Location& place);
std::optional<Location> PlaceOf(uint64_t object);

}  // namespace ferry::shm

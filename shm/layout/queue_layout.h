// The steps of a queue: the starts and waits of matched pairs that its stream carries out, one
// after the other, as far as they may not be over. A block in the heap of the rank, which its
// ferryd reads to find streams that wait for each other; a rank inside ferry_queue_wait tells where
// it lies (CallRecordLayout::object, shm/queue_steps.h).
//
// One writer: the rank, under the lock of its queues. A step that finds its entry taken by one that
// is not over is left out, so a reader knows true steps, but not always all of them.
#pragma once

#include <cstdint>

#include "shm/layout/descriptor.h"
#include "shm/layout/layout_check.h"

namespace ferry::shm {

inline constexpr uint64_t kQueueStepsMagic = 0x3153504554535146;  // "FQSTEPS1"
inline constexpr uint32_t kQueueSteps = 512;

enum class QueueStepKind : uint32_t { kStart = 1, kWait = 2 };

struct alignas(64) QueueStepLayout {
  uint64_t position;  // in the queue, from 1; 0: no step, or words being changed. Stored last
  uint64_t round;     // of the pair: the number of this end's starts, with this one
  Location end;       // the PairLayout of this end, in the rank's memory
  uint32_t kind;      // QueueStepKind
  uint32_t reserved0;
  uint64_t reserved[3];
};
FERRY_ASSERT_LAYOUT(QueueStepLayout, 64);
FERRY_ASSERT_OFFSET(QueueStepLayout, position, 0);
FERRY_ASSERT_OFFSET(QueueStepLayout, round, 8);
FERRY_ASSERT_OFFSET(QueueStepLayout, end, 16);
FERRY_ASSERT_OFFSET(QueueStepLayout, kind, 32);

struct alignas(64) QueueStepsLayout {
  uint64_t magic;  // kQueueStepsMagic; 0 once the queue is freed
  uint64_t reserved[7];
  QueueStepLayout steps[kQueueSteps];  // that of a position: modulo kQueueSteps
};
FERRY_ASSERT_LAYOUT(QueueStepsLayout, 64 + 64 * kQueueSteps);
FERRY_ASSERT_OFFSET(QueueStepsLayout, steps, 64);

}  // namespace ferry::shm

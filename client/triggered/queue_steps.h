// Notes the steps of a queue where ferryd sees them (shm/layout/queue_layout.h), so that it can
// tell streams that wait for each other for ever from those that go on.
//
// Calling thread: any, one at a time (the lock of Queues). Nothing blocks, but for the allocation
// at the first step.
#pragma once

#include <array>
#include <cstdint>

#include "client/memory/memory.h"
#include "client/triggered/pair.h"
#include "shm/queue_steps.h"

namespace ferry::client {

class QueueSteps {
 public:
  // `memory` outlives it.
  explicit QueueSteps(Memory* memory) : memory_(*memory) {}
  ~QueueSteps();
  QueueSteps(const QueueSteps&) = delete;
  QueueSteps& operator=(const QueueSteps&) = delete;

  // Notes the pair's last start, or the wait for it. To be called in the order in which the stream
  // carries them out. Leaves out what there is no room for.
  void Note(shm::QueueStepKind kind, const Pair& pair);
  // Forgets a pair that is about to be freed.
  void Forget(const Pair& pair);
  // Returns the number by which a call record names the block; 0: it has none.
  uint64_t object() const { return object_; }

 private:
  struct Noted {
    const Pair* pair = nullptr;
    uint64_t round = 0;
    uint64_t position = 0;
  };
  static bool IsOver(const Noted& step);
  bool Allocate();

  Memory& memory_;
  shm::QueueStepsLayout* block_ = nullptr;
  bool has_none_ = false;  // there was no memory for it
  uint64_t object_ = 0;
  uint64_t position_ = 0;
  std::array<Noted, shm::kQueueSteps> noted_ = {};  // as `block_`
};

}  // namespace ferry::client

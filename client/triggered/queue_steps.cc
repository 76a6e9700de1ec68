#include "client/triggered/queue_steps.h"

#include <new>

#include "common/status.h"
#include "shm/atomic.h"

namespace ferry::client {

QueueSteps::~QueueSteps() {
  if (block_ != nullptr) {
    shm::StoreRelaxed(block_->magic, 0);
    (void)memory_.Free(block_);
  }
}

bool QueueSteps::Allocate() {
  if (block_ != nullptr || has_none_) {
    return block_ != nullptr;
  }
  const StatusOr<void*> memory =
      memory_.Allocate(sizeof(shm::QueueStepsLayout), MemoryKind::kPinned, 0);
  has_none_ = !memory.ok();
  if (memory.ok()) {
    block_ = new (*memory) shm::QueueStepsLayout{};
    shm::StoreRelaxed(block_->magic, shm::kQueueStepsMagic);
    object_ = shm::ObjectOf(memory_.regions().Find(block_, sizeof(*block_)));
  }
  return memory.ok();
}

bool QueueSteps::IsOver(const Noted& step) {
  return step.pair == nullptr || step.pair->Done() >= step.round ||
         step.pair->Failure() != ErrorCode::kOk;
}

void QueueSteps::Note(shm::QueueStepKind kind, const Pair& pair) {
  const uint64_t position = ++position_;
  Noted& noted = noted_[position % shm::kQueueSteps];
  if (!Allocate() || !IsOver(noted)) {
    return;
  }
  noted = {&pair, pair.starts, position};
  shm::WriteQueueStep(block_, {position, pair.starts,
                               memory_.regions().Find(pair.end, sizeof(shm::PairLayout)), kind});
}

void QueueSteps::Forget(const Pair& pair) {
  for (Noted& step : noted_) {
    if (step.pair == &pair) {
      shm::ClearQueueStep(block_, step.position);
      step = {};
    }
  }
}

}  // namespace ferry::client

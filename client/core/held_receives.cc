// Client: receives that are held for a while before they are posted. See client.h.
//
// Posting a receive, and taking it out of the match table again, costs several times as much as the
// rest of a small message; it buys the progress worker's help while the rank computes. Where ranks
// share cores there is no core for the worker, and most receives start before their messages come.
// So small receives wait here, in order, for the rank's next wait, which takes their messages
// straight from the lanes. Any other call that could match a message posts them first.
#include "client/core/progress.h"
#include "shm/atomic.h"

namespace ferry::client {

using shm::RequestLayout;
using shm::RequestState;

namespace {

// A bit of RequestLayout::flags that the rank alone looks at: the request, in state kInactive, is
// one of held_.
constexpr uint32_t kRequestHeld = uint32_t{1} << 31;
constexpr size_t kMaxHeld = 128;

}  // namespace

bool Client::MayHold(uint32_t request) const {
  const RequestLayout& slot = requests_->Slot(request);
  return cores_are_scarce_ && !threads_ && slot.size_bytes <= shm::kCellBytes &&
         held_.size() < kMaxHeld && (slot.flags & shm::kRequestBounce) == 0 &&
         memory_->IsAnyBufferPlain() && !MayBeRemote(slot.peer) && !engine_->HasUnexpected();
}

void Client::Hold(uint32_t request) {
  requests_->Slot(request).flags |= kRequestHeld;
  held_.push_back(request);
}

bool Client::IsHeld(const RequestLayout& slot) { return (slot.flags & kRequestHeld) != 0; }

// Takes the messages that have come for the first held receives. If a message cannot be taken this
// way, it and its receive are left to the engine.
void Client::TakeHeld() {
  while (!held_.empty()) {
    const uint32_t request = held_.front();
    RequestLayout& slot = requests_->Slot(request);
    const uint32_t lane = engine_->LaneOf(slot.peer);
    if (!engine_->HasMessage(lane)) {
      return;
    }
    held_.pop_front();
    slot.flags &= ~kRequestHeld;
    const Message message{reinterpret_cast<void*>(slot.user_address), slot.size_bytes, slot.peer,
                          slot.tag, slot.context};
    if (!ReceiveAtOnce(request, message, lane)) {
      PostOne(request);
    }
  }
}

void Client::PostAllHeld() {
  while (!held_.empty()) {
    const uint32_t request = held_.front();
    held_.pop_front();
    requests_->Slot(request).flags &= ~kRequestHeld;
    PostOne(request);
  }
}

// A held receive has already started: if posting fails, it ends with the error.
void Client::PostOne(uint32_t request) {
  if (const ErrorCode error = StartSlot(request); error != ErrorCode::kOk) {
    RequestLayout& slot = requests_->Slot(request);
    shm::StoreRelaxed(slot.error, static_cast<int32_t>(error));
    shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kComplete));
  }
}

}  // namespace ferry::client

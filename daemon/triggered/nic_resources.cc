#include "daemon/triggered/nic_resources.h"

#include <algorithm>
#include <utility>

#include "shm/counter.h"

namespace ferry::daemon {

using transport::NicCounter;

// ---- Pinning: the done word, the message of a send, then what the other end writes to -----------

void NicResources::Begin() {
  shm::CounterLayout* const done = &pair_->layout->done;
  Pin(&done_word_, {.base = reinterpret_cast<std::byte*>(done),
                    .bytes = sizeof(*done),
                    .access = transport::Access::kRemoteWrite,
                    .memory = pair_->plan.end.region});
}

// For this NIC, which may be one of several.
void NicResources::Pin(progress::PinnedMemory* memory, progress::PinRequest request) {
  request.nic = &nic_.transport;
  request.on_end = [this, memory] { OnPinned(*memory); };
  *memory = progress::PinnedMemory(nic_.registrar, std::move(request));
}

void NicResources::PinTarget() {
  const bool is_word = pair_->is_send() || bytes() == 0;
  progress::PinRequest request;
  request.bytes = is_word ? sizeof(*word_) : bytes();
  request.base = is_word ? reinterpret_cast<std::byte*>(word_.get()) : pair_->message();
  if (is_word) {
    request.memory = word_;
  } else {
    request.memory = pair_->memory();
  }
  request.pin = [&deferred = nic_.deferred, base = request.base, size_bytes = request.bytes,
                 counter = pair_->is_send() ? *trigger_ : *moved_,
                 device = is_word ? std::nullopt : pair_->device()] {
    return deferred.PrepareTarget(base, size_bytes, counter, device);
  };
  Pin(&target_, std::move(request));
}

void NicResources::OnPinned(const progress::PinnedMemory& memory) {
  if (pair_ == nullptr || pair_->error != ErrorCode::kOk) {
    return;  // TryEnd goes on
  }
  ErrorCode code = memory.code();
  if (code == ErrorCode::kOk && &memory == &done_word_ && pair_->is_send() && bytes() > 0) {
    return Pin(&message_, {.base = pair_->message(),
                           .bytes = bytes(),
                           .access = transport::Access::kLocal,
                           .memory = pair_->memory(),
                           .device = pair_->device()});
  }
  if (code == ErrorCode::kOk && &memory != &target_) {
    code = OpenCounters();
    if (code == ErrorCode::kOk && has_target()) {
      return PinTarget();
    }
  }
  on_settled_(code);
}

NicPlace NicResources::TargetPlace() const {
  if (!has_target()) {
    return {};
  }
  return {target_.region().remote_base, target_.region().key};
}

// ---- Counters -----------------------------------------------------------------------------------

ErrorCode NicResources::OpenCounters() {
  if (nic_.deferred.max_write_bytes() < std::min(bytes(), kNicChunkBytes)) {
    return ErrorCode::kUnsupported;
  }
  const bool clears = !pair_->is_send() && !pair_->is_ready();
  const bool triggers = !pair_->is_ready() || (pair_->is_send() && nic_.gives_pages());
  for (auto* counter :
       {&moved_, &stored_, clears ? &cleared_ : nullptr, triggers ? &trigger_ : nullptr}) {
    if (counter == nullptr) {
      continue;
    }
    if (const Status status = OpenCounter(counter); !status.ok()) {
      return status.code();
    }
  }
  return ErrorCode::kOk;
}

Status NicResources::OpenCounter(std::optional<NicCounter>* counter) {
  StatusOr<NicCounter> opened = nic_.deferred.OpenCounter();
  FERRY_RETURN_IF_ERROR(opened.status());
  *counter = *opened;
  return Status();
}

StatusOr<NicCounter> NicResources::Begun() {
  if (!begun_) {
    FERRY_RETURN_IF_ERROR(OpenCounter(&begun_));
  }
  return *begun_;
}

void NicResources::OfferPage() {
  if (trigger_ && nic_.gives_pages()) {
    page_.Offer(pair_->layout, nic_.deferred.Doorbell(*trigger_), nic_.NextPage(), nic_.index);
  }
}

// ---- Ends ---------------------------------------------------------------------------------------

void NicResources::Close() {
  target_ = {};
  CloseTrigger();
  for (const std::optional<NicCounter> counter : {begun_, moved_, cleared_, stored_}) {
    if (counter) {
      nic_.deferred.CloseCounter(*counter);
    }
  }
  message_ = {};
}

// A counter to which the rank may still store keeps its place in the NIC, so that no other counter
// gets it. Operations armed there may fire then: they read memory that ReleaseMemory does not let
// go of before, and write to places whose keys are gone.
void NicResources::CloseTrigger() {
  if (!trigger_) {
    return;
  }
  if (page_.TryTakeBack()) {
    nic_.deferred.CloseCounter(*trigger_);
  } else {
    nic_.parked.Park({*trigger_, pair_->plan.end.region, pair_->layout, page_.id(), pair_->rank});
  }
}

void NicResources::Leave() {
  done_word_ = {};
  message_ = {};
  pair_ = nullptr;
}

}  // namespace ferry::daemon

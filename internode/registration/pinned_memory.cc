#include "internode/registration/pinned_memory.h"

namespace ferry::progress {

PinnedMemory::PinnedMemory(Registrar& registrar, PinRequest request)
    : pinning_(std::make_shared<Pinning>(std::move(request))) {
  pinning_->registrar = registrar.self_;
  if (pinning_->nic == nullptr) {
    pinning_->nic = &registrar.transport_;
  }
  registrar.Pin(pinning_);
}

PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
  if (this != &other) {
    ReleaseAt(0);
    pinning_ = std::move(other.pinning_);
  }
  return *this;
}

ErrorCode PinnedMemory::code() const {
  if (pinning_ == nullptr) {
    return ErrorCode::kNotFound;
  }
  return pinning_->has_ended ? pinning_->status.code() : ErrorCode::kWouldBlock;
}

void PinnedMemory::Cancel() {
  if (is_pinning()) {
    pinning_->unwanted = true;
  }
}

bool PinnedMemory::TryRelease(std::shared_ptr<UnpinSignal> unpinned) {
  if (pinning_ != nullptr) {
    Registrar* const registrar = *pinning_->registrar;
    if (registrar != nullptr && !registrar->TryRelease(*pinning_, std::move(unpinned))) {
      return false;
    }
    pinning_.reset();
  }
  return true;
}

bool PinnedMemory::TryRenew() {
  PinRequest again{.base = pinning_->base,
                   .bytes = pinning_->bytes,
                   .access = pinning_->access,
                   .memory = pinning_->memory,
                   .owner = pinning_->owner,
                   .device = pinning_->device,
                   .nic = pinning_->nic,
                   .on_end = pinning_->on_end};
  Registrar& registrar = **pinning_->registrar;
  if (!TryRelease()) {
    return false;
  }
  *this = PinnedMemory(registrar, std::move(again));
  return true;
}

void PinnedMemory::ReleaseAt(uint64_t time_ns) {
  if (pinning_ != nullptr) {
    if (Registrar* const registrar = *pinning_->registrar; registrar != nullptr) {
      registrar->ReleaseAt(time_ns, std::move(pinning_));
    }
    pinning_.reset();
  }
}

}  // namespace ferry::progress

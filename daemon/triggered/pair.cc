#include "daemon/triggered/pair.h"

#include <algorithm>

#include "shm/atomic.h"

namespace ferry::daemon {

// ---- Starts ----

ErrorCode Starts::Refresh(bool is_idle) {
  // Pairs with the rank's: what it shares holds.
  const uint64_t armed = shm::LoadAcquire(end_->armed);
  if (armed <= announced_) {
    return ErrorCode::kOk;
  }
  SharedDoorbell shared;
  if (const ErrorCode code = ReadShared(&shared); code != ErrorCode::kOk) {
    return code;
  }
  // The rank knows of the end of a message that a NIC has moved before we do.
  if (!is_idle && !(shared == shared_)) {
    return ErrorCode::kOk;
  }
  shared_ = shared;
  announced_ = armed;
  return ErrorCode::kOk;
}

ErrorCode Starts::ReadShared(SharedDoorbell* shared) const {
  if (shm::LoadRelaxed(end_->shares) == 0) {
    return ErrorCode::kOk;
  }
  const uint64_t offset = shm::LoadRelaxed(end_->shared_start);
  if (offset % alignof(shm::CounterLayout) != 0 || offset > region_.size() ||
      region_.size() - offset < sizeof(shm::CounterLayout)) {
    return ErrorCode::kCorrupt;
  }
  shared->word = reinterpret_cast<const shm::CounterLayout*>(region_.data() + offset);
  shared->base = shm::LoadRelaxed(end_->shared_base);
  shared->until = shm::LoadRelaxed(end_->shared_until);
  return ErrorCode::kOk;
}

uint64_t Starts::Made() const {
  const uint64_t own = shm::LoadAcquire(end_->start.value);
  if (shared_.word == nullptr) {
    return own;
  }
  // Others' starts, after this end's last one, are not its own.
  const uint64_t by_shared = shm::LoadAcquire(shared_.word->value) + shared_.base;
  const uint64_t most = std::min(shared_.until, announced_);
  const bool is_before_the_first = static_cast<int64_t>(by_shared) < 0;
  return std::max(own, is_before_the_first ? 0 : std::min(by_shared, most));
}

bool Starts::IsArmed(uint64_t done) const { return shm::LoadRelaxed(end_->armed) > done; }

// ---- Pair ----

uint64_t Pair::followed_rounds() const {
  uint64_t rounds = UINT64_MAX;
  for (const Pair* const followed : follows) {
    rounds = std::min(rounds, followed->rounds);
  }
  return rounds;
}

}  // namespace ferry::daemon

// Publishing to a rank, and sleeping until somebody publishes (shm/layout/wake_layout.h).
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "shm/layout/wake_layout.h"

namespace ferry::shm {

// What a publisher learns about the rank it published to.
struct PublishResult {
  bool woke_sleeper = false;   // a futex call was made
  bool nobody_inside = false;  // no thread of the rank is in a blocking call: the rank computes
};

class Wake {
 public:
  Wake() = default;
  explicit Wake(WakeLayout* layout) : layout_(layout) {}

  // Announces that lane `lane` has something (already stored with release): bumps the wake word with a
  // sequentially consistent read-modify-write, sets the activity bit if it is clear, and wakes sleepers.
  PublishResult PublishLane(uint32_t lane);
  // The same without a lane: a completion or a state change.
  PublishResult Publish();

  // Takes the activity bits of word `word_index` (0 .. kActivityWords - 1) and clears them. The lanes
  // they name must be drained after the call, not before.
  uint64_t TakeActivity(uint32_t word_index);
  bool HasActivity() const;
  // Marks a lane active without waking anybody: the holder left something behind in it.
  void RestoreActivity(uint32_t lane);

  // A sleeper calls PrepareToSleep, looks for work once more, then either Sleep or CancelSleep.
  uint32_t PrepareToSleep();
  void CancelSleep();
  // Sleeps until the wake word differs from `sequence`, at most `timeout_ns` (0 = for ever), and leaves
  // the sleepers. Returns early on signals; callers look for work and call again.
  void Sleep(uint32_t sequence, uint64_t timeout_ns);

  // Entering and leaving blocking calls: publishers of work that cannot wait see whether to call the
  // daemon.
  void Enter();
  void Leave();

  // Poisons the rank: everything on it fails with `error` from now on. First one wins.
  void Poison(ErrorCode error);
  ErrorCode poison() const;

  WakeLayout* layout() const { return layout_; }

 private:
  WakeLayout* layout_ = nullptr;
};

}  // namespace ferry::shm

// The templates of Client that run the engine and wait: for client/core's own files.
#pragma once

#include <algorithm>

#include "client/core/client.h"
#include "common/clock.h"

namespace ferry::client {

// The longest sleep while waiting for something that may come without a wake-up: room in a lane is
// announced, but not by a peer that was killed.
inline constexpr uint64_t kUnannouncedSleepNs = 1'000'000;
// Idle polls (pauses, then yields) before a waiting sender calls the worker for a receiver that
// computes.
inline constexpr uint32_t kPollsBeforeWorker = 128;

// Idle looks (pauses, then yields) for the messages of held receives, before those are posted.
inline constexpr uint32_t kIdleLooksForHeld = 16;

// Runs `action(effects)`, which returns an ErrorCode, as the holder of the progress lease, then,
// outside the lease, carries out the effects it asked for. Fails with the rank's poison when the
// lease's holder is dead.
template <typename Action>
ErrorCode Client::UnderLease(Action&& action, engine::LaneSet* later) {
  if (!EnterLease()) {
    return wake_.poison();
  }
  engine::Effects effects;
  const ErrorCode result = action(effects);
  lease_.Release(Holder());
  Perform(effects, later);
  return result;
}

// Waits for the messages of held receives, while those are what `done` waits for and there is
// nothing else to do. False: none of them is held any more, and done() is not true yet.
template <typename Done>
bool Client::AwaitHeld(Done&& done, const shm::WaitPolicy& policy) {
  shm::Waiter waiter(policy);
  size_t left = held_.size();
  for (uint32_t idle = 0; idle < kIdleLooksForHeld;) {
    is_held_up_by_held_ = false;
    if (done()) {
      return true;
    }
    if (!is_held_up_by_held_ || engine_->WaitsForRoom() || engine_->HasUnexpected()) {
      break;
    }
    idle = held_.size() < left ? 0 : idle + 1;
    left = held_.size();
    (void)waiter.Idle();
  }
  PostHeld();
  return done();
}

// Polls until done() is true: pauses, then yields, then sleeps until somebody publishes. `done` may
// advance requests; it must become true once the rank is poisoned, and at `end_ns`. For ranks in
// `later` that still have not come after a while it calls the worker.
template <typename Done>
void Client::WaitUntil(Done&& done, const shm::WaitPolicy& policy, engine::LaneSet* later,
                       uint64_t end_ns) {
  if (done()) {
    return;
  }
  wake_.Enter();
  if (!held_.empty() && AwaitHeld(done, policy)) {
    LeaveLibrary();
    return;
  }
  shm::Waiter waiter(policy);
  uint32_t idle_polls = 0;
  while (!done()) {
    if (PollOnce() || HelpBackground()) {
      waiter.Reset();
      continue;
    }
    if (later != nullptr && ++idle_polls == kPollsBeforeWorker) {
      AskToAttend(*later);
    }
    if (!waiter.Idle()) {
      continue;
    }
    const engine::LaneSet forgotten = engine_->ForgetLanes();
    const uint32_t sequence = wake_.PrepareToSleep();
    if (engine_->HasWork(forgotten) || done()) {
      wake_.CancelSleep();
      waiter.Reset();
      continue;
    }
    // Streams write without waking anybody.
    uint64_t sleep_ns =
        engine_->WaitsForRoom() || channels_->any_started() ? kUnannouncedSleepNs : 0;
    if (end_ns != UINT64_MAX) {
      const uint64_t left_ns = end_ns - std::min(end_ns - 1, MonotonicNs());
      sleep_ns = sleep_ns == 0 ? left_ns : std::min(sleep_ns, left_ns);
    }
    wake_.Sleep(sequence, sleep_ns);
  }
  LeaveLibrary();
}

}  // namespace ferry::client

// A thread's wait for a collective that it carries on itself.
#pragma once

#include <cstdint>

#include "client/api/front_end.h"
#include "coll/messages/front_messenger.h"
#include "coll/runner.h"

namespace ferry::collective {

// Blocks until the run is done, or the connection has ended. The messenger may be patient
// (FrontMessenger::SetPatient). `wait` has Advance, which carries on with all that is under way;
// Look, which is called again and again, and looks for what may be wrong once the time is
// `end_ns()` (MonotonicNs).
template <typename Wait>
void AwaitRun(client::FrontEnd* front_end, FrontMessenger* messenger, const Runner& runner,
              const CollectiveRun& run, Wait* wait) {
  struct Waiting {
    Wait* wait;
    const CollectiveRun* run;
    const FrontMessenger* messenger;
  } waiting{wait, &run, messenger};
  for (; wait->Advance(), !run.is_done() && front_end->poison() == ErrorCode::kOk; wait->Look()) {
    if (messenger->has_held() && runner.waits_for_one()) {
      messenger->ReceiveHeld(wait->end_ns());
      continue;
    }
    if (messenger->has_held()) {
      messenger->PostHeld();
      continue;
    }
    front_end->peers->WaitFor(
        [](void* argument) {
          const auto* self = static_cast<Waiting*>(argument);
          self->wait->Advance();
          return self->run->is_done() || self->messenger->has_held();
        },
        &waiting, client::kAny, wait->end_ns());
  }
}

}  // namespace ferry::collective

// The collectives of a team, or of an active set, whose PEs are on several nodes: the schedules of
// MPI's collectives, by messages (coll/messages).
//
// A failure on one PE makes the others fail, too (coll/runner.h).
// Calling thread: one at a time, for one object.
#pragma once

#include <cstdint>
#include <vector>

#include "coll/messages/front_messenger.h"
#include "coll/messages/kept_runs.h"
#include "coll/messenger.h"
#include "coll/problem.h"
#include "coll/runner.h"

namespace ferry::shmem {

class MessageRuns {
 public:
  // `pes`: of the world, in the order of the team, in which this one is `self`. `context`:
  // message_contexts.h.
  MessageRuns(uint32_t context, const std::vector<int>& pes, int self);

  // Carries a collective out; returns how that failed, or kOk; kNotFound if a PE that it waits for
  // has left. `before`: what has failed on this PE already, so that the run only tells the others.
  // Blocks.
  collective::RunFailure Run(const collective::Problem& problem, const collective::Binding& binding,
                             const collective::RunFailure& before = {});

 private:
  class Wait;
  void Abandon(collective::KeptRuns::Taken taken);

  collective::FrontMessenger messenger_;
  collective::Runner runner_;
  collective::KeptRuns kept_;
  uint32_t number_ = 0;
};

}  // namespace ferry::shmem

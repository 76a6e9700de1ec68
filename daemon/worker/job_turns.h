// The work of a progress worker for one job. A process that brings work to a rank that is not
// inside the library asks for it. The worker then takes the rank's lease (it never waits for a
// rank: a lease that is taken is tried again later), runs its engine until nothing is left, wakes
// whom the engine names, and copies the transfers it matched, or that the rank had matched before
// it went, chunk by chunk, beside the ranks themselves.
//
// The same code runs in a thread of the daemon and in a worker process.
//
// Calling thread: the worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "daemon/worker/worker_job.h"
#include "engine/effects.h"

namespace ferry::daemon {

class JobTurns {
 public:
  // Both outlive this. `ring_daemon` wakes the progress thread: a rank's lane to it has something.
  JobTurns(WorkerJob& job, const std::function<void()>& ring_daemon);

  // One round over all ranks; returns how much was done. 0 = nothing to do, or only ranks that
  // hold their lease and do not run.
  uint32_t Turn();
  // Work is left.
  bool IsBusy() const;
  // Somebody asked meanwhile. Sequentially consistent, for a last look before a sleep.
  bool IsWanted() const;

 private:
  uint32_t AttendRank(WorkerRank& rank);
  void Perform(WorkerRank& rank, const engine::Effects& effects);
  static void AddCopy(WorkerRank& rank, uint32_t request, bool is_ranks);
  static void FindCopies(WorkerRank& rank);
  uint32_t CopyNext(WorkerRank& rank);

  WorkerJob& job_;
  const std::function<void()>& ring_daemon_;
  std::vector<std::byte> bounce_;
};

}  // namespace ferry::daemon

// JobTurns: the work of a progress worker for one job. A process that brings work to a rank that is
// not inside the library sets the rank's attention word. The worker then takes the rank's lease (it
// never waits for a rank: a lease that is taken is tried again later), runs its engine until
// nothing is left, wakes the ranks that the engine names, and copies the transfers it matched, or
// that the rank had matched before it went, chunk by chunk, beside the ranks themselves.
//
// This code runs in a thread of the daemon, and in a worker process.
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
  // Both references outlive this. `ring_daemon` wakes the progress thread when a rank's lane to it
  // has descriptors.
  JobTurns(WorkerJob& job, const std::function<void()>& ring_daemon);

  // Makes one round over all ranks; returns how much was done. 0: nothing to do, or only for ranks
  // that hold their lease and do not run.
  uint32_t Turn();
  // Returns true if work is left.
  bool IsBusy() const;
  // Returns true if a process has asked for the worker meanwhile. The loads are sequentially
  // consistent, for a last look before a sleep.
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

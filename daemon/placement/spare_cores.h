// Keeps ferryd's threads off the cores of ranks that are bound, where there are others.
//
// A rank is bound if it may run on only some of the daemon's CPUs, whichever program bound it. CPUs
// that launchers of Ferry have claimed (topology/claims.h) are left to their ranks, too. If no CPU
// is left then, the threads run where they may.
//
// Any thread. Blocks for the files of /proc.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "common/topology/cpu_set.h"

namespace ferry::daemon {

class SpareCores {
 public:
  // `allowed`: where the daemon may run. `progress`: where its progress thread should; empty:
  // anywhere.
  SpareCores(topology::CpuSet allowed, topology::CpuSet progress)
      : allowed_(std::move(allowed)), progress_(std::move(progress)) {}

  using Rank = std::pair<std::string, uint32_t>;  // its job and number
  // Adds a rank that may run on these CPUs, or removes it. Returns true if the threads should move.
  bool Add(const Rank& rank, const topology::CpuSet& cpus);
  bool Remove(const Rank& rank);

  struct Places {
    topology::CpuSet progress;  // of the progress thread
    topology::CpuSet others;    // of all others
  };
  // Chooses the CPUs for the threads. `claimed`: CPUs that any launcher has claimed.
  Places Choose(const topology::CpuSet& claimed);
  // Moves the threads of this process. Threads that they start later stay with them; those that
  // start worker processes do not move, since these belong to jobs.
  void Settle(pthread_t progress);

 private:
  std::mutex mutex_;
  const topology::CpuSet allowed_;
  const topology::CpuSet progress_;
  std::map<Rank, topology::CpuSet> bound_;
  topology::CpuSet left_;  // to ranks, when the threads moved last
};

}  // namespace ferry::daemon

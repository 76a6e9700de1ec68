// Moves a waiting thread off a core that it shares with another rank of its node.
//
// Ranks that are not bound, and wait by yielding, may be put on one core by Linux, and stay there
// though others are idle: each then waits for the other's turn, 20 to 30 times as long as for a
// message. A thread that notices that others run while it waits (shm::SetCrowdedHook) asks the
// kernel where the node's other ranks are. If one of them wants the thread's core, and a CPU of the
// thread's mask has none of them, the thread moves to that CPU, and keeps its mask.
//
// Only the first threads of the other ranks are looked at; processes of other jobs are not. Where
// /proc does not show the other ranks, nothing happens.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace ferry::client {

class CoreSharing {
 public:
  // While this object lives, waiting threads of this process move. One at a time in a process: a
  // further one does nothing.
  explicit CoreSharing(std::vector<pid_t> others);
  ~CoreSharing();
  CoreSharing(const CoreSharing&) = delete;
  CoreSharing& operator=(const CoreSharing&) = delete;

  // Moves the calling thread if need be. Takes microseconds for each other rank, and therefore does
  // its work for a small part of the time only. True: the thread has moved. One thread at a time.
  bool MoveAway();
  // For shm::SetCrowdedHook: calls MoveAway of the object that lives, if there is one.
  static void OnCrowded();

 private:
  bool TryMove() const;

  const std::vector<pid_t> others_;
  uint64_t next_ns_ = 0;
};

// Returns true if the ranks of a node outnumber the CPUs that they may use. `processes` are theirs,
// 0 where this pid namespace does not show them; then the machine's CPUs count.
bool OutnumberCpus(const std::vector<pid_t>& processes);

}  // namespace ferry::client

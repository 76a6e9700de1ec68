// Moves a waiting thread off a core that it shares with another rank of its node.
//
// Ranks that are not bound, and wait by yielding, may be put on one core by Linux, and stay there
// though others are idle: each then waits for the other's turn, 20 to 30 times as long as for a
// message. A thread that notices that others run while it waits (shm::SetCrowdedHook) asks the
// kernel where the node's other ranks are; if one of them wants its core, and a CPU of its own mask
// has none of them, it goes there, and keeps its mask.
//
// Only the first threads of the other ranks are looked at. What other jobs run is not known here.
// Where /proc does not show the others, nothing happens.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace ferry::client {

class CoreSharing {
 public:
  // `others`: the processes of the node's other ranks. While this lives, waiting threads of this
  // process move. One at a time in a process: a further one does nothing.
  explicit CoreSharing(std::vector<pid_t> others);
  ~CoreSharing();
  CoreSharing(const CoreSharing&) = delete;
  CoreSharing& operator=(const CoreSharing&) = delete;

  // For the calling thread: moves it if need be. Takes microseconds for each other rank, and is
  // therefore done for a small part of the time only. True: it has moved. One thread at a time.
  bool MoveAway();
  // For shm::SetCrowdedHook: MoveAway of the one that lives, if any.
  static void OnCrowded();

 private:
  bool TryMove() const;

  const std::vector<pid_t> others_;
  uint64_t next_ns_ = 0;
};

// Whether so many ranks of a node are more than the CPUs that they may use: `processes` are theirs,
// 0 where this pid namespace does not show them; then the machine's CPUs count.
bool OutnumberCpus(const std::vector<pid_t>& processes);

}  // namespace ferry::client

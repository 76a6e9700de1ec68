// The events that the front end tells tools of, while a tool watches (mpi/mpi_t/events.h).
//
// Calling thread: that of the call. The functions may call the tool.
#pragma once

#include <atomic>

#include "shm/call_board.h"

namespace ferry::mpi {

class ToolWatch {
 public:
  // MPI has a connection now, is about to end it.
  virtual void Connected() = 0;
  virtual void Disconnecting() = 0;
  // A collective operation begins; it has ended in this rank. Not called by Ferry's own threads.
  virtual void CollectiveEntered(const shm::CallDescription& call) = 0;
  virtual void CollectiveLeft(const shm::CallDescription& call) = 0;

 protected:
  ~ToolWatch() = default;
};

// Null: no tool watches. The object stays for as long as the process.
inline constinit std::atomic<ToolWatch*> tool_watch{nullptr};

inline ToolWatch* CurrentToolWatch() {
  return tool_watch.load(std::memory_order_acquire);  // Pairs with EventHub::Watch.
}

}  // namespace ferry::mpi

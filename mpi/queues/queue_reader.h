// Reads the messages of a rank that a debugger has stopped: what it sends and receives, and what
// has come without a receive, by communicator.
//
// The rank may have written anything, and may be stopped in the middle of a change: numbers are
// checked, and a list may miss what is being changed.
//
// Calling thread: any, one at a time. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "shm/debug_session.h"

namespace ferry::mpi {

// Copies bytes of the process from an address. False: there are none.
using FetchMemory = std::function<bool(uint64_t address, size_t size_bytes, void* to)>;

struct QueuedMessage {
  int32_t peer = 0;  // a rank of the job; -1: any
  int32_t tag = 0;   // -1: any
  uint64_t size_bytes = 0;
  uint64_t buffer = 0;   // the program's address; 0: not known
  bool matched = false;  // and then:
  int32_t actual_peer = 0;
  int32_t actual_tag = 0;
  uint64_t actual_bytes = 0;
  const char* note = "";  // for people
  uint64_t order = 0;
};

// The first contexts of a communicator are eight times its number (mpi/comm/context_ids.h).
struct QueuesOfCommunicator {
  std::vector<QueuedMessage> sends;
  std::vector<QueuedMessage> receives;
  std::vector<QueuedMessage> unexpected;
};

inline constexpr uint32_t kNumberOfWorld = 1;
inline constexpr uint32_t kNumberOfSelf = 2;

// By the communicators' numbers: MPI_COMM_WORLD, MPI_COMM_SELF, and those that have messages of the
// program. False: the session cannot be read.
bool ReadQueues(const shm::DebugSession& session, const FetchMemory& fetch,
                std::map<uint32_t, QueuesOfCommunicator>* queues);

}  // namespace ferry::mpi

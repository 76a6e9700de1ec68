// Notes that calls of MPI leave about themselves while they wait (client/api/calls.h).
//
// Calling thread: that of the call. Nothing blocks.
#pragma once

#include <cstdint>

#include "client/api/calls.h"
#include "mpi/comm/comm.h"

namespace ferry::mpi {

// Names the communicator.
void DescribeComm(const Comm& comm, shm::CallDescription* description);
// Names a rank of `comm`, to which or from which a message goes (`peer` of its peers()). Does
// nothing for one that is none.
void DescribePeer(const Comm& comm, int peer, shm::CallDescription* description);
// Names a rank of the job, or any one (client::kAny).
void DescribeWorldPeer(const Comm* comm, int32_t world_rank, shm::CallDescription* description);
// A tag, or client::kAny.
void DescribeTag(int32_t tag, shm::CallDescription* description);
void DescribeBytes(uint64_t bytes, shm::CallDescription* description);

// The use that a call makes of a file.
struct FileUse {
  const char* name = nullptr;  // from the root on, if that is known; outlives the call
  int64_t offset = -1;         // the first byte of the file; -1: not known, or none
  int64_t bytes = -1;          // of data in memory; -1: it moves none
};
// Names the file.
void DescribeFile(const FileUse& use, shm::CallDescription* description);

// A call of which the function and the communicator are known, perhaps later.
struct CommNote : client::CallNote {
  CommNote(const char* function, const Comm* comm)
      : CallNote(&DescribeIt), function(function), comm(comm) {}

  const char* const function;
  const Comm* comm;
  const Comm* peers = nullptr;  // null: it has no peer
  int peer = 0;                 // of `peers`
  bool is_window = false;
  const FileUse* file = nullptr;  // null: it has no file

 private:
  static void DescribeIt(const CallNote& note, shm::CallDescription* description);
};

// A call in its scope, if this process is connected when it begins. The connection may end before
// it does.
class NotedCall {
 public:
  NotedCall(const char* function, const Comm* comm);
  ~NotedCall();
  NotedCall(const NotedCall&) = delete;
  NotedCall& operator=(const NotedCall&) = delete;

  CommNote& note() { return note_; }

 private:
  CommNote note_;
  client::CallNote** place_ = nullptr;  // null: it is not noted
  client::CallNote* outer_ = nullptr;
};

// Ends the scopes of the calling thread's calls, before the connection ends.
void EndNotedCalls();

// While it exists, the thread is in the program's own function, as an error handler, and in no call
// of MPI. The function may leave by longjmp: then the calls around it never end, and nothing points
// to their notes, which are gone.
class OutsideCalls {
 public:
  OutsideCalls();
  ~OutsideCalls();
  OutsideCalls(const OutsideCalls&) = delete;
  OutsideCalls& operator=(const OutsideCalls&) = delete;

 private:
  client::CallNote* left_ = nullptr;
};

}  // namespace ferry::mpi

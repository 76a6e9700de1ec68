// The thread that works for calls on files that do not block. It begins with the first piece of
// work, and ends soon after the last.
//
// Several pieces are under way at a time: one that waits for other ranks lets those behind it go
// first, so that no rank waits in a file for the ranks of another one. The thread does the pieces
// in the order in which they were given, as far as each can go.
//
// The thread counts no references to objects: while it is alone with one thread of the program that
// counting is not atomic (mpi/base/object.h).
//
// Calling thread: any.
#pragma once

#include <cstdint>

namespace ferry::mpi {

class IoWork {
 public:
  enum class State : uint8_t {
    kOver,    // all of it is done
    kGoesOn,  // a part of it is
    kWaits,   // nothing could be done now: it is for others to go on first
  };
  // Does a part of the work. Once that returns kOver it is not called again, and the object may be
  // gone.
  virtual State Work() = 0;

 protected:
  ~IoWork() = default;
};

// Has the thread do the work, which stays until it is over. False: the system starts no thread, and
// the caller does the work itself.
bool GiveToIoThread(IoWork* work);

// Waits until the thread has nothing to do. Blocks.
void AwaitIoThread();

}  // namespace ferry::mpi

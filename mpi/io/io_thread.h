// The threads that work for calls on files that do not block. A thread begins with the first piece
// of work in its line, and ends soon after the last.
//
// All files that have offsets, and lie on file systems of this machine, share a line. On any other
// a transfer may wait for a server that does not answer, so each such file has a line of its own:
// it holds no other one up. A pipe, a terminal or a socket may let a transfer wait for its other
// end for as long as that likes, so each such file has two lines, one for reads and one for writes.
//
// Several pieces are under way at a time: one that waits for other ranks lets those behind it go
// first, so that no rank waits in a file for the ranks of another one. The thread does the pieces
// in the order in which they were given, as far as each can go.
//
// A thread counts no references to objects: while it is alone with one thread of the program that
// counting is not atomic (mpi/base/object.h).
//
// Calling thread: any.
#pragma once

#include <cstdint>
#include <utility>

namespace ferry::mpi {

class File;

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

// Null: the line that files share. Otherwise one of a file's, for its writes (true) or, with those
// of a file that has offsets, for its reads. If the file is gone, another one at its address may go
// on with its lines.
using IoLine = std::pair<const File*, bool>;
IoLine LineOf(File& file, bool is_write);

// Has the line's thread do the work, which stays until it is over. False: the system starts no
// thread, and the caller does the work itself.
bool GiveToIoThread(IoWork* work, IoLine line);

// Waits until no thread has anything to do. Blocks.
void AwaitIoThreads();

}  // namespace ferry::mpi

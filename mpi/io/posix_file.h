// A file of the operating system. All system calls on files of MPI-IO are made here.
//
// A transfer goes on after short counts and interrupts, and is cut into calls of less than 2 GiB,
// since the kernel moves no more at a time. A failure has the class that errno stands for (MPI 5.0,
// section 14.7), and its text names the file.
//
// Units: bytes. Calling thread: any; transfers of several threads may run at once. Blocks: all
// calls but the accessors.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "common/unique_fd.h"
#include "mpi/base/failure.h"
#include "shm/atomic.h"

namespace ferry::mpi {

// Returns the class and the text of a system call that failed with `error` (errno); `doing` is what
// it was to do to the file: "open", "write to".
Failure FailureOfErrno(int error, const char* doing, const std::string& name);

class PosixFile {
 public:
  PosixFile() = default;
  // MPI_ERR_UNSUPPORTED_OPERATION: the name is that of a pipe, whose open would wait for its other
  // end. Any other name is for the open to judge.
  static Failure CheckHasOffsets(const std::string& name);
  // Opens a file that exists, by the flags of open(2). Descriptors are not inherited by programs
  // that the process starts.
  static Failure Open(const std::string& name, int flags, PosixFile* file);
  // Opens a file, and makes it, if there is none, with this mode less the process's umask.
  // `exclusive`: MPI_ERR_FILE_EXISTS if there is one. *created: this call has made it.
  static Failure Create(const std::string& name, int flags, mode_t mode, bool exclusive,
                        PosixFile* file, bool* created);
  // Removes the name.
  static Failure Remove(const std::string& name);

  bool is_open() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  const std::string& name() const { return name_; }
  // Returns true if the file has no offsets: a pipe, a terminal, a socket.
  bool is_stream() const { return is_stream_; }
  // How near the bytes of a file are to the nodes that use it.
  enum class Nearness : uint8_t {
    kLocal,     // the file system is one of this machine's own: most reads are copies out of memory
    kCoherent,  // what one node has written others see at once
    kCached,    // each node may have a cache of its own, which it believes for a while (NFS, FUSE)
  };
  // A system call.
  Nearness FindNearness() const;
  // Before it reads next, or tells the size, what the node knows of the file is looked up anew: a
  // file on a cached file system has changed elsewhere.
  void SetStale() const;
  // Hands what this node has written to the file system's server, so that other nodes find it
  // there. The errors of writing back may come here.
  Failure HandOver() const;

  // Each sets *moved to the bytes that were read or written, also where it fails. A read ends
  // early, without a failure, at the end of the file.
  Failure ReadAt(int64_t offset, void* to, int64_t bytes, int64_t* moved) const;
  Failure WriteAt(int64_t offset, const void* from, int64_t bytes, int64_t* moved) const;
  // Reads bytes that follow each other in the file to several places, of which each has some. Uses
  // `to` up.
  Failure ReadScattered(int64_t offset, std::span<iovec> to, int64_t* moved) const;
  // For files without offsets. A write whose reader has gone fails with EPIPE, and raises no
  // SIGPIPE.
  Failure ReadNext(void* to, int64_t bytes, int64_t* moved) const;
  Failure WriteNext(const void* from, int64_t bytes, int64_t* moved) const;

  Failure GetSize(int64_t* bytes) const;
  Failure SetSize(int64_t bytes) const;
  // Gives the file room, and a size of at least `bytes`; what it holds stays as it is. No other
  // process may write meanwhile where the file system cannot do it by itself.
  Failure Allocate(int64_t bytes) const;
  // Writes what the system still holds to the device.
  Failure Sync() const;
  // Closes the file, and reports what the system has kept back of errors.
  Failure Close();

 private:
  PosixFile(UniqueFd fd, std::string name);
  void LookAgainIfStale() const {
    if (shm::LoadRelaxed(changes_seen_) != shm::LoadRelaxed(changes_)) [[unlikely]] {
      LookAgain();
    }
  }
  void LookAgain() const;

  UniqueFd fd_;
  std::string name_;
  bool is_stream_ = false;
  // How often SetStale was called, and how many of those calls a look has followed. Any thread
  // changes them.
  mutable uint32_t changes_ = 0;
  mutable uint32_t changes_seen_ = 0;
};

}  // namespace ferry::mpi

// Keeps accesses in atomic mode apart (MPI 5.0, section 14.6.1): a lock of the kernel on a range of
// the file's bytes, which belongs to the open file of one rank. It ends with that rank, and no
// close of another handle ends it, as a lock of the process would. It holds between the nodes of a
// file system that passes locks on.
//
// Calling thread: that of the access. Blocks until no other rank has a lock on any of the bytes;
// threads of the process that use the same file take turns.
#pragma once

#include <cstdint>
#include <mutex>

#include "mpi/base/failure.h"
#include "mpi/io/posix_file.h"

namespace ferry::mpi {

class RangeLock {
 public:
  RangeLock() = default;
  ~RangeLock();
  RangeLock(const RangeLock&) = delete;
  RangeLock& operator=(const RangeLock&) = delete;

  // Locks the bytes [begin, end) of the file, for reads together with other reads. `threads`: the
  // file's, which outlives this. MPI_ERR_IO: the file system has no locks.
  Failure Lock(const PosixFile& file, std::mutex* threads, int64_t begin, int64_t end,
               bool is_write);

 private:
  std::unique_lock<std::mutex> threads_;
  const PosixFile* file_ = nullptr;  // null: nothing is locked
  int64_t begin_ = 0;
  int64_t end_ = 0;
};

}  // namespace ferry::mpi

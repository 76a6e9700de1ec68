// How one side of a partitioned message accesses the other side's memory: its block of words, and
// the buffer of its data. Memory of a rank of the same node (*local*) is mapped, or copied by the
// kernel; memory of a rank of another node (*remote*) is accessed by one-sided operations.
//
// Calling thread: any, after Open, which one thread calls and which may block on the daemon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "client/api/one_sided.h"
#include "mpi/base/failure.h"
#include "shm/layout/descriptor.h"

namespace ferry::mpi {

// The error class in a word of the other side; MPI_ERR_OTHER if it is not one of MPI's.
int ErrorClassOf(uint64_t word);

// The other side's block of words.
class PeerBlock {
 public:
  Failure Open(uint32_t rank, bool is_local, const shm::Location& where, uint64_t size_bytes);
  bool is_open() const { return is_open_; }
  // Null: the block is remote.
  std::byte* mapped() const { return mapped_.get(); }
  const client::RemoteAddress& place() const { return place_; }

  // Stores one of the block's words; in one order with all that this side stores there, and, if it
  // is local, with the stores to all words of the two sides.
  void Store(uint64_t offset, uint64_t value) const;
  // Stores a word of a local block without waiting for the cache line, where the caller need not
  // know what the other side does at the same time.
  void StoreSoon(uint64_t offset, uint64_t value) const;
  // Writes bytes, which the other side sees before words that are stored later.
  void Write(uint64_t offset, const void* bytes, uint64_t size_bytes) const;
  // The signal that makes a put add to one of the block's words once its data are there.
  client::Signal AddTo(uint64_t offset, uint64_t value) const {
    return {shm::SignalUpdate::kAdd, place_.segment, place_.offset + offset, value};
  }

 private:
  uint64_t& WordAt(uint64_t offset) const;

  bool is_open_ = false;
  std::shared_ptr<std::byte> mapped_;
  client::RemoteAddress place_;  // remote
};

// The data buffer of a local side.
class PeerData {
 public:
  // Opens a buffer of `size_bytes`, in private memory or in a region.
  Failure Open(uint32_t rank, const shm::Location& where, uint64_t size_bytes);
  // `by_stream`: only streams reach this rank's memory. kUnsupported and other errors: nothing was
  // copied.
  ErrorCode CopyTo(uint64_t offset, const void* from, uint64_t size_bytes, bool by_stream) const;
  ErrorCode CopyFrom(uint64_t offset, void* to, uint64_t size_bytes, bool by_stream) const;
  // Null: the operating system's kernel copies.
  std::byte* mapped() const { return mapped_.get(); }
  // Returns true if only streams reach the mapped memory.
  bool is_by_stream() const { return is_by_stream_; }

 private:
  uint32_t rank_ = 0;
  shm::Location where_{};
  std::shared_ptr<std::byte> mapped_;
  bool is_by_stream_ = false;
};

}  // namespace ferry::mpi

// What one side of a partitioned message reaches of the other's memory: its block of words, and
// where data lie or go. Of a rank of the same node (*local*) memory is mapped, or copied by the
// kernel; of another node (*remote*) it is reached by one-sided operations.
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

// The error class that a word of the other side's names: MPI_ERR_OTHER, if it is not one of MPI's.
int ErrorClassOf(uint64_t word);

// The other side's block.
class PeerBlock {
 public:
  Failure Open(uint32_t rank, bool is_local, const shm::Location& where, uint64_t size_bytes);
  bool is_open() const { return is_open_; }
  // Null: it is remote.
  std::byte* mapped() const { return mapped_.get(); }
  const client::RemoteAddress& place() const { return place_; }

  // Stores one of its words; in one order with all that is stored here, and (local) with all words
  // of the two sides.
  void Store(uint64_t offset, uint64_t value) const;
  // The same for a local one, where the caller need not know what the other side does at the same
  // time.
  void StoreSoon(uint64_t offset, uint64_t value) const;
  // Bytes, before words that are stored later.
  void Write(uint64_t offset, const void* bytes, uint64_t size_bytes) const;
  // What a put is to do to a word once its data are there.
  client::Signal AddTo(uint64_t offset, uint64_t value) const {
    return {shm::SignalUpdate::kAdd, place_.segment, place_.offset + offset, value};
  }

 private:
  uint64_t& WordAt(uint64_t offset) const;

  bool is_open_ = false;
  std::shared_ptr<std::byte> mapped_;
  client::RemoteAddress place_;  // remote
};

// The data of a local one.
class PeerData {
 public:
  // Of `size_bytes`, private memory or not.
  Failure Open(uint32_t rank, const shm::Location& where, uint64_t size_bytes);
  // `by_stream`: whether only streams reach the own memory. kUnsupported and others: it was not
  // copied.
  ErrorCode CopyTo(uint64_t offset, const void* from, uint64_t size_bytes, bool by_stream) const;
  ErrorCode CopyFrom(uint64_t offset, void* to, uint64_t size_bytes, bool by_stream) const;
  // Null: the kernel copies.
  std::byte* mapped() const { return mapped_.get(); }
  // Whether only streams reach what is mapped.
  bool is_by_stream() const { return is_by_stream_; }

 private:
  uint32_t rank_ = 0;
  shm::Location where_{};
  std::shared_ptr<std::byte> mapped_;
  bool is_by_stream_ = false;
};

}  // namespace ferry::mpi

// The words by which the processes of a window synchronise. Each has a block of them in its rank's
// heap: ranks of its node map it, those of other nodes reach it by one-sided operations, which the
// CPU of its node carries out. So all of them agree, and its owner takes no part.
//
// The writers of the words in a block of rank r: each rank o writes `lock` and `stands[o]`, by
// atomic operations (locks.h); only rank o counts up `posts[o]` and `completes[o]`; each rank that
// changes elements of r's private memory writes `elements` (private_memory.h); only r writes the
// rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "client/api/one_sided.h"
#include "mpi/base/failure.h"
#include "shm/element_lock.h"
#include "shm/layout/descriptor.h"

namespace ferry::mpi {

// How a rank stands towards the lock of another.
enum Stand : uint32_t {
  kApart = 0,
  kShares = 1,         // holds it, or tries to, as one of several
  kAwaitsAlone = 2,    // waits for it for itself
  kAwaitsSharing = 3,  // waits for it as one of several
};

struct ControlLayout {
  // The layout for a window of `size` ranks.
  explicit constexpr ControlLayout(int size) : size(static_cast<uint64_t>(size)) {}

  static constexpr uint64_t lock() { return 0; }        // uint32_t; see locks.h
  static constexpr uint64_t attached() { return 64; }   // AttachedHead; see attached.h
  static constexpr uint64_t elements() { return 128; }  // shm::ElementLock
  constexpr uint64_t post(int rank) const { return 192 + 8 * static_cast<uint64_t>(rank); }
  constexpr uint64_t complete(int rank) const { return post(rank) + 8 * size; }
  constexpr uint64_t stands() const { return 192 + 16 * size; }
  constexpr uint64_t stand(int rank) const { return stands() + 4 * static_cast<uint64_t>(rank); }
  constexpr uint64_t size_bytes() const { return stands() + 4 * size; }

  const uint64_t size;
};

// The block of one rank of the window, as this process reaches it. Calling thread: any, after Open.
class ControlBlock {
 public:
  // `own`: the block's address, if it is this process's own. `context`: that of the operations by
  // which this process tells its owner of changes. Blocks on the daemon where the block has to be
  // mapped.
  Failure Open(client::OneSidedContext* context, uint32_t rank, bool is_local, std::byte* own,
               const shm::Location& where, uint64_t size_bytes);

  // Each stores the old value in *found. An error: the rank is gone.
  ErrorCode Load(uint64_t offset, uint32_t* found) const;
  ErrorCode Load(uint64_t offset, uint64_t* found) const;
  ErrorCode Swap(uint64_t offset, uint32_t value, uint32_t* found) const;
  ErrorCode CompareSwap(uint64_t offset, uint32_t expected, uint32_t value, uint32_t* found) const;
  // Stores a word, and wakes its rank, which may rest until the word changes. Operations whose end
  // was awaited before are complete by then.
  ErrorCode Tell(uint64_t offset, uint64_t value) const;
  // Copies words of 4 bytes, which may change meanwhile.
  ErrorCode Read(uint64_t offset, void* to, uint64_t size_bytes) const;

  // The lock of elements, of a local block.
  shm::ElementLock& elements() const { return At<shm::ElementLock>(ControlLayout::elements()); }

  bool is_local() const { return base_ != nullptr; }
  uint32_t rank() const { return place_.rank; }

 private:
  template <typename T>
  T& At(uint64_t offset) const {
    return *static_cast<T*>(static_cast<void*>(base_ + offset));
  }
  ErrorCode Atomic(uint64_t offset, uint32_t width, shm::OneSidedOperation operation,
                   uint64_t operand, uint64_t compare, uint64_t* found) const;

  client::OneSidedContext* context_ = nullptr;
  std::shared_ptr<std::byte> mapping_;
  std::byte* base_ = nullptr;  // null: it is of another node
  client::RemoteAddress place_;
};

}  // namespace ferry::mpi

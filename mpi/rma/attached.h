// The memory that processes attach to a dynamic window (MPI_Win_create_dynamic; MPI 5.0, section
// 12.2.4), and how others find it: displacements are its owner's addresses.
//
// Each process keeps a table of the memory that it has attached in its rank's heap, and the table's
// place in its control block, under a version, which is odd while the two change. Others copy the
// table when they find another version than that of their copy.
//
// Calling thread: any. Attach and Detach block on the daemon; FindAttached while it asks for the
// table.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "mpi/base/failure.h"
#include "mpi/datatype/shape.h"
#include "mpi/rma/window.h"
#include "shm/layout/descriptor.h"

namespace ferry::mpi {

struct WindowAddress;

// Lies in the control block, at ControlLayout::attached().
struct AttachedHead {
  uint64_t version;
  uint64_t count;
  shm::Location table;  // of `count` AttachedEntry
};
static_assert(sizeof(AttachedHead) == 32);

struct AttachedEntry {
  uint64_t address;
  uint64_t size_bytes;
  shm::Location location;  // as ExposedAt takes it
};
static_assert(sizeof(AttachedEntry) == 32);

// The memory that this process has attached.
class AttachedMemory {
 public:
  // Both arguments lie in this process's control block.
  AttachedMemory(AttachedHead* head, shm::ElementLock& elements)
      : head_(*head), elements_(elements) {}

  // Attaches memory. MPI_ERR_RMA_ATTACH: some of it is attached already; MPI_ERR_NO_MEM.
  Failure Attach(const void* base, uint64_t size_bytes);
  // Detaches memory. MPI_ERR_RMA_ATTACH: no attached memory begins there.
  Failure Detach(const void* base);

 private:
  Failure Publish();

  std::mutex mutex_;
  AttachedHead& head_;
  shm::ElementLock& elements_;
  std::vector<AttachedEntry> entries_;                 // by address
  std::map<uint64_t, Exposure> exposures_;             // of those that are private, by address
  std::vector<std::unique_ptr<WindowMemory>> tables_;  // the last one is in use
  uint64_t capacity_ = 0;                              // of it
};

// The bytes that an operation wants.
struct AttachedRange {
  int64_t address;
  Bounds span;  // from there
};
// Finds those bytes at the target. MPI_ERR_RMA_RANGE: they are not all in one piece of memory that
// the target has attached.
Failure FindAttached(Win& win, WindowTarget* target, const AttachedRange& range,
                     WindowAddress* window_address);

}  // namespace ferry::mpi

// The shared file pointer (MPI 5.0, section 14.4.4): a word of 8 bytes in the memory of the file's
// rank 0, which all ranks change by atomic operations: those of its node directly, those of others
// one-sided. No file, and no lock of the file system, stands behind it.
//
// Units: etypes of the view. Calling thread: any, once Open has returned. Blocks: Open on the
// daemon; the others for the time of one operation. MPI_ERR_PROC_ABORTED: rank 0 is gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "client/api/one_sided.h"
#include "mpi/base/failure.h"
#include "mpi/comm/comm.h"
#include "shm/layout/descriptor.h"

namespace ferry::mpi {

class SharedPosition {
 public:
  SharedPosition() = default;
  ~SharedPosition();
  SharedPosition(const SharedPosition&) = delete;
  SharedPosition& operator=(const SharedPosition&) = delete;

  // On rank 0: makes the word, with the value 0. MPI_ERR_NO_MEM.
  Failure Make(const Comm& comm);
  // Where it is, for the other ranks.
  shm::Location location() const { return location_; }
  // On the other ranks: where rank 0 of `comm` has it. The word is reached at its first use.
  void Find(const Comm& comm, const shm::Location& location);
  // On rank 0: frees the word, once no rank uses it any more.
  void Free();

  // Adds to the pointer. *before: its value until then.
  Failure Add(int64_t etypes, int64_t* before);
  Failure Set(int64_t etypes);
  Failure Get(int64_t* etypes);

 private:
  Failure Reach();
  Failure Change(shm::OneSidedOperation operation, int64_t operand, int64_t* before);

  shm::Location location_{};
  void* block_ = nullptr;  // rank 0's memory
  uint32_t owner_ = 0;     // rank 0, in the job
  bool is_near_ = false;   // on this node
  std::mutex mutex_;       // of Reach
  std::shared_ptr<std::byte> mapping_;
  std::atomic<uint64_t*> word_{nullptr};  // where ranks of its node have it
};

}  // namespace ferry::mpi

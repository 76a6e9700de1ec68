// Reads and writes that do not block (MPI 5.0, section 14.4.2): a request whose transfer a thread
// of Ferry's makes. The thread begins with the first of them, ends soon after the last, and calls
// nothing of libferry but to wake those who wait.
//
// Calling thread: that of the call; see mpi/p2p/request.h for the request.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "mpi/base/failure.h"
#include "mpi/io/access.h"
#include "mpi/io/file.h"
#include "mpi/p2p/request.h"

namespace ferry::mpi {

class FileRequest : public Request {
 public:
  // `function` began it. `file` is kept until the request ends, and what it was made of, too: the
  // program may free its datatypes at once. Data of memory that only streams reach are copied by
  // the calling thread.
  FileRequest(const char* function, File& file, Access access);
  ~FileRequest() override;

  // Starts the transfer: once, before anything else. MPI_ERR_NO_MEM. Blocks only where the system
  // starts no thread: then the transfer is over when it returns.
  Failure Begin();

  bool IsDone() override { return is_done_.load(std::memory_order_acquire); }
  Failure End(MPI_Status* status) override;
  void Look(MPI_Status* status) override;
  Comm* comm() const override { return &file_->comm(); }
  void DescribeWait(shm::CallDescription* description) const override;

  // For the thread: makes the transfer. Afterwards the request may be gone.
  void Work();

 private:
  const char* const function_;
  const Ref<File> file_;
  Access access_;
  Payload by_stream_;  // the program's memory, where a copy stands in for it
  std::unique_ptr<std::byte[]> copy_;
  int64_t moved_bytes_ = 0;
  Failure failure_;
  std::atomic<bool> is_done_{false};  // publishes the two before
};

// Waits until no transfer is under way. Blocks.
void AwaitFileRequests();

}  // namespace ferry::mpi

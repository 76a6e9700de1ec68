// Reads and writes that do not block (MPI 5.0, section 14.4.2): requests whose transfers a thread
// of Ferry's makes (io_thread.h).
//
// Calling thread: that of the call; see mpi/p2p/request.h for the request.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "mpi/base/failure.h"
#include "mpi/io/access.h"
#include "mpi/io/background.h"
#include "mpi/io/collective_access.h"
#include "mpi/io/file.h"
#include "mpi/io/io_thread.h"
#include "mpi/p2p/request.h"

namespace ferry::mpi {

// The common part of the two kinds below.
class FileRequest : public Request {
 public:
  ~FileRequest() override;

  bool IsDone() override { return is_done_.load(std::memory_order_acquire); }
  Failure End(MPI_Status* status) override;
  void Look(MPI_Status* status) override;
  Comm* comm() const override { return &file_->comm(); }
  void DescribeWait(shm::CallDescription* description) const override;

 protected:
  // `function` began it. `file` is kept until the request ends, and what the part is made of, too:
  // the program may free its datatypes at once.
  FileRequest(const char* function, File& file, CollectivePart part);

  // Copies data of memory that only streams reach. MPI_ERR_NO_MEM.
  Failure FetchData();
  // The last thing before the request is done; it may be gone afterwards.
  void BeDone();

  const char* const function_;
  const Ref<File> file_;
  CollectivePart part_;
  int64_t moved_bytes_ = 0;
  Failure failure_;

 private:
  Payload by_stream_;  // the program's memory, where a copy stands in for it
  std::unique_ptr<std::byte[]> copy_;
  std::atomic<bool> is_done_{false};  // publishes the moved bytes and the failure
};

// A transfer of one rank.
class TransferRequest : public FileRequest, private IoWork {
 public:
  TransferRequest(const char* function, File& file, Access access);

  // Starts the transfer: once, before anything else. MPI_ERR_NO_MEM. Blocks only where the system
  // starts no thread, or a function of the program's converts the data: then the transfer is over
  // when it returns.
  Failure Begin();

 private:
  State Work() override;
};

// One rank's part of a transfer of all ranks.
class TogetherRequest : public FileRequest, private BackgroundCall {
 public:
  TogetherRequest(const char* function, File& file, CollectivePart part);

  // As TransferRequest::Begin. If it fails, as it does if the part is refused, the request still
  // has to be completed: the other ranks are told, and their requests fail.
  Failure Begin();

  bool IsDone() override;
  void AwaitUntil(bool (*done)(void*), void* argument) override;
  void DescribeWait(shm::CallDescription* description) const override;

 private:
  void CarryOut(Background& background) override;
  void EndCall() override { BeDone(); }

  BackgroundCalls& calls_;  // of the file
  uint64_t number_ = 0;     // of this one
};

// Waits until no transfer is under way. Blocks.
void AwaitFileRequests();

}  // namespace ferry::mpi

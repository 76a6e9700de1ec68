#include "mpi/io/requests.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "common/thread.h"
#include "mpi/base/connection.h"
#include "mpi/comm/call_notes.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {
namespace {

// The thread waits so long for more: programs that overlap start one transfer after the other.
constexpr std::chrono::milliseconds kPatience(100);

// The transfers that are to be made, in the order of their calls.
class IoThread {
 public:
  // `request` stays until it is done. False: there is no thread, and the caller makes the transfer
  // itself.
  bool Take(FileRequest* request) {
    const std::lock_guard lock(mutex_);
    if (!is_running_) {
      StatusOr<std::thread> thread =
          StartThread("MPI files", "that reads and writes files", [this] { Work(); });
      if (!thread.ok()) {
        return false;
      }
      thread->detach();
      is_running_ = true;
    }
    waiting_.push_back(request);
    has_changed_.notify_all();
    return true;
  }

  void AwaitEnd() {
    std::unique_lock lock(mutex_);
    has_changed_.wait(lock, [this] { return waiting_.empty() && !is_busy_; });
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (has_changed_.wait_for(lock, kPatience, [this] { return !waiting_.empty(); })) {
      FileRequest* const request = waiting_.front();
      waiting_.pop_front();
      is_busy_ = true;
      lock.unlock();
      request->Work();  // and is gone, perhaps
      lock.lock();
      is_busy_ = false;
      has_changed_.notify_all();
    }
    is_running_ = false;
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable has_changed_;
  std::deque<FileRequest*> waiting_;
  bool is_running_ = false;
  bool is_busy_ = false;
};

// Is never destroyed: the thread may run until the process has ended.
IoThread& io_thread = *new IoThread();

}  // namespace

FileRequest::FileRequest(const char* function, File& file, Access access)
    : function_(function), file_(Ref<File>::Share(&file)), access_(std::move(access)) {
  file_->BeginTransfer();
}

FileRequest::~FileRequest() = default;

Failure FileRequest::Begin() {
  if (access_.conversion.datarep != nullptr) {
    Work();  // functions of the program run on its own thread
    return {};
  }
  const int64_t bytes = access_.payload.size_bytes();
  if (access_.payload.IsByStream()) {
    copy_.reset(new (std::nothrow) std::byte[static_cast<size_t>(bytes)]);
    if (copy_ == nullptr) {
      file_->EndTransfer();
      return {MPI_ERR_NO_MEM,
              "no memory for a copy of " + std::to_string(bytes) + " bytes of device memory"};
    }
    by_stream_ = std::move(access_.payload);
    access_.payload = Payload(copy_.get(), bytes, *datatypes.Find(MPI_BYTE));
    if (access_.is_write) {
      const Failure copied = by_stream_.CopyOut(copy_.get());
      if (!copied.ok()) {
        file_->EndTransfer();
        return copied;
      }
    }
  }
  if (!io_thread.Take(this)) {
    Work();
  }
  return {};
}

void FileRequest::Work() {
  failure_ = CarryIn(*file_, access_, &moved_bytes_);
  file_->EndTransfer();
  // The program's thread may end and free the request from here on: references to objects are for
  // that thread alone to give back, since it counts them without atomic operations.
  is_done_.store(true, std::memory_order_release);  // Pairs with IsDone.
  front_end->peers->WakeThreads();
}

// Of the access there is only what does not change while the thread makes the transfer.
void FileRequest::DescribeWait(shm::CallDescription* description) const {
  FileUse use;
  use.name = file_->absolute_name().c_str();
  use.bytes = access_.file_bytes;
  DescribeFile(use, description);
  description->inner = client::CallOf(function_);
  description->flags |= shm::kCallNonblocking;
}

Failure FileRequest::End(MPI_Status* status) {
  if (copy_ != nullptr && !access_.is_write) {
    const Failure copied = by_stream_.CopyIn(copy_.get(), moved_bytes_);
    failure_ = failure_.ok() ? copied : failure_;
  }
  copy_.reset();
  Look(status);
  return failure_;
}

void FileRequest::Look(MPI_Status* status) {
  SetStatus(status, MPI_ANY_SOURCE, MPI_ANY_TAG, moved_bytes_);
}

void AwaitFileRequests() { io_thread.AwaitEnd(); }

}  // namespace ferry::mpi

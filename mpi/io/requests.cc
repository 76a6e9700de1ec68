#include "mpi/io/requests.h"

#include <new>
#include <string>
#include <utility>

#include "mpi/base/connection.h"
#include "mpi/comm/call_notes.h"
#include "mpi/io/call_check.h"
#include "mpi/io/meeting.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {

FileRequest::FileRequest(const char* function, File& file, CollectivePart part)
    : function_(function), file_(Ref<File>::Share(&file)), part_(std::move(part)) {
  file_->BeginTransfer();
}

FileRequest::~FileRequest() = default;

Failure FileRequest::FetchData() {
  Access& access = part_.access;
  if (!access.payload.IsByStream() || access.conversion.datarep != nullptr) {
    return {};
  }
  const int64_t bytes = access.payload.size_bytes();
  copy_.reset(new (std::nothrow) std::byte[static_cast<size_t>(bytes)]);
  if (copy_ == nullptr) {
    return {MPI_ERR_NO_MEM,
            "no memory for a copy of " + std::to_string(bytes) + " bytes of device memory"};
  }
  by_stream_ = std::move(access.payload);
  access.payload = Payload(copy_.get(), bytes, *datatypes.Find(MPI_BYTE));
  return access.is_write ? by_stream_.CopyOut(copy_.get()) : Failure();
}

// The program's thread may end and free the request from then on: references to objects are for
// that thread alone to give back, since it counts them without atomic operations.
void FileRequest::BeDone() {
  file_->EndTransfer();
  is_done_.store(true, std::memory_order_release);  // Pairs with IsDone.
}

// Another thread may be carrying the part out: this reads only what does not change meanwhile.
void FileRequest::DescribeWait(shm::CallDescription* description) const {
  FileUse use;
  use.name = file_->absolute_name().c_str();
  use.bytes = part_.access.file_bytes;
  DescribeFile(use, description);
  description->inner = client::CallOf(function_);
  description->flags |= shm::kCallNonblocking;
}

Failure FileRequest::End(MPI_Status* status) {
  if (copy_ != nullptr && !part_.access.is_write) {
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

// ---- Of one rank --------------------------------------------------------------------------------

TransferRequest::TransferRequest(const char* function, File& file, Access access)
    : FileRequest(function, file, CollectivePart()) {
  part_.access = std::move(access);
}

Failure TransferRequest::Begin() {
  if (Failure fetched = FetchData(); !fetched.ok()) {
    file_->EndTransfer();
    return fetched;
  }
  // Functions of the program run on its own thread.
  if (part_.access.conversion.datarep != nullptr ||
      !GiveToIoThread(this, LineOf(*file_, part_.access.is_write))) {
    (void)Work();
  }
  return {};
}

IoWork::State TransferRequest::Work() {
  failure_ = CarryIn(*file_, part_.access, &moved_bytes_);
  BeDone();
  front_end->peers->WakeThreads();
  return State::kOver;
}

// ---- Of all ranks -------------------------------------------------------------------------------

TogetherRequest::TogetherRequest(const char* function, File& file, CollectivePart part)
    : FileRequest(function, file, std::move(part)), calls_(BackgroundCalls::Of(file)) {}

Failure TogetherRequest::Begin() {
  if (part_.refused.ok()) {
    part_.refused = FetchData();
  }
  if (part_.refused.ok() && part_.access.conversion.datarep != nullptr) {
    part_.carried = CarryIn(*file_, part_.access, &moved_bytes_);
    part_.is_carried = true;
  }
  Failure refused = part_.refused;  // the call may end at once
  number_ = calls_.Add(this, function_);
  return refused;
}

void TogetherRequest::CarryOut(Background& background) {
  Meeting meeting(function_, file_->comm(), &background);
  failure_ = CheckSameCall(meeting, function_, *file_);
  if (failure_.ok()) {
    failure_ = CarryTogether(meeting, *file_, part_, &moved_bytes_);
  }
}

bool TogetherRequest::IsDone() {
  if (!FileRequest::IsDone()) {
    calls_.Advance();
  }
  return FileRequest::IsDone();
}

void TogetherRequest::AwaitUntil(bool (*done)(void*), void* argument) {
  const Ref<File> keeps_calls = file_;  // `done` may free the request
  const BackgroundCalls::Waiting waiting(&calls_);
  calls_.Await({number_, function_}, done, argument);
}

// Ranks that meet have a number; without one it waits for the system.
void TogetherRequest::DescribeWait(shm::CallDescription* description) const {
  FileRequest::DescribeWait(description);
  if (calls_.IsMeeting()) {
    description->number = number_;
    description->flags |= shm::kCallHasNumber;
  }
}

void AwaitFileRequests() { AwaitIoThreads(); }

}  // namespace ferry::mpi

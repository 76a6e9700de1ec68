#include "mpi/p2p/payload.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "mpi/base/connection.h"
#include "mpi/p2p/strided_runs.h"

namespace ferry::mpi {
namespace {

// Copies the runs of a buffer that only streams reach: by one kernel of the device for each strided
// copy, where it has kernels, else block by block.
Failure CopyRuns(std::byte* buffer, int64_t count, const Datatype& type, int64_t offset,
                 int64_t bytes, std::byte* packed, bool is_pack) {
  Status status;
  ForEachStrided(buffer, count, type, offset, bytes, packed, is_pack,
                 [&status, buffer](const gpu::StridedCopy& copy) {
                   // At MPI_BOTTOM the runs may lie in several allocations.
                   if (status.ok() && copy.block_count > 1 && buffer != nullptr) {
                     status = front_end->memory->CopyStrided(copy);
                     if (status.code() != ErrorCode::kUnsupported) {
                       return;
                     }
                     status = {};
                   }
                   ForEachBlock(copy, [&status](void* to, const void* from, uint64_t size_bytes) {
                     if (status.ok()) {
                       status = front_end->memory->Copy(to, from, size_bytes);
                     }
                   });
                 });
  return FailureOf(status);
}

}  // namespace

bool Payload::IsByStream() const {
  if (size_bytes_ == 0) {
    return false;
  }
  if (is_dense()) {
    return front_end->IsByStream(data_);
  }
  bool is_by_stream = front_end->IsByStream(buffer_ + type_->true_lower_bound());
  if (buffer_ == nullptr && !is_by_stream) {
    type_->ForEachRun(count_, 0, size_bytes_, [&](int64_t displacement, int64_t /*length*/) {
      is_by_stream = is_by_stream || front_end->IsByStream(buffer_ + displacement);
    });
  }
  return is_by_stream;
}

// Copies the data from their places to a packed copy.
Failure Payload::PackInto(void* packed, int64_t offset, int64_t bytes) const {
  if (!IsByStream() && !front_end->IsByStream(packed)) [[likely]] {
    type_->Pack(buffer_, count_, offset, bytes, packed);
    return {};
  }
  return CopyRuns(buffer_, count_, *type_, offset, bytes, static_cast<std::byte*>(packed), true);
}

// Copies packed data back to their places.
Failure Payload::UnpackFrom(const void* packed, int64_t offset, int64_t bytes) const {
  if (!IsByStream() && !front_end->IsByStream(packed)) [[likely]] {
    type_->Unpack(buffer_, count_, offset, bytes, packed);
    return {};
  }
  return CopyRuns(buffer_, count_, *type_, offset, bytes,
                  static_cast<std::byte*>(const_cast<void*>(packed)), false);
}

Payload& Payload::operator=(Payload&& other) noexcept {
  FreeCopy();
  buffer_ = other.buffer_;
  count_ = other.count_;
  size_bytes_ = other.size_bytes_;
  data_ = std::exchange(other.data_, nullptr);
  type_ = std::move(other.type_);
  return *this;
}

Failure Payload::MakeRoom() {
  if (is_dense() || data_ != nullptr || size_bytes_ == 0) {
    return {};
  }
  data_ = static_cast<std::byte*>(std::malloc(static_cast<size_t>(size_bytes_)));
  if (data_ == nullptr) {
    return {MPI_ERR_NO_MEM,
            "no memory for a packed copy of " + std::to_string(size_bytes_) + " bytes"};
  }
  return {};
}

Failure Payload::CopyOut(void* packed, int64_t offset, int64_t bytes) const {
  if (bytes == 0) {
    return {};
  }
  return is_dense() ? FailureOf(front_end->memory->Copy(packed, data_ + offset,
                                                        static_cast<uint64_t>(bytes)))
                    : PackInto(packed, offset, bytes);
}

Failure Payload::CopyIn(const void* packed, int64_t offset, int64_t bytes) const {
  if (bytes == 0) {
    return {};
  }
  return is_dense() ? FailureOf(front_end->memory->Copy(data_ + offset, packed,
                                                        static_cast<uint64_t>(bytes)))
                    : UnpackFrom(packed, offset, bytes);
}

std::vector<gpu::StridedCopy> Payload::CopiesWith(void* packed, bool is_pack) const {
  std::vector<gpu::StridedCopy> copies;
  auto* const bytes = static_cast<std::byte*>(packed);
  if (size_bytes_ != 0 && is_dense()) {
    copies.push_back({data_, bytes, static_cast<uint64_t>(size_bytes_), 1, 0, is_pack});
  } else if (size_bytes_ != 0) {
    ForEachStrided(buffer_, count_, *type_, 0, size_bytes_, bytes, is_pack,
                   [&copies](const gpu::StridedCopy& copy) { copies.push_back(copy); });
  }
  return copies;
}

Failure Payload::Pack() {
  if (is_dense()) {
    return {};
  }
  FERRY_RETURN_FAILURE(MakeRoom());
  return size_bytes_ == 0 ? Failure() : PackInto(data_, 0, size_bytes_);
}

Failure Payload::Unpack(int64_t bytes) {
  return is_dense() || bytes == 0 ? Failure() : UnpackFrom(data_, 0, bytes);
}

void Payload::FreeCopy() {
  if (!is_dense()) {
    std::free(data_);
    data_ = nullptr;
  }
}

}  // namespace ferry::mpi

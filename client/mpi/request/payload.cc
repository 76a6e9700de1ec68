#include "client/mpi/request/payload.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

// Copies the runs of a buffer that only streams reach, one by one.
Failure CopyRuns(std::byte* buffer, int64_t count, const Datatype& type, int64_t offset,
                 int64_t bytes, std::byte* packed, bool to_packed) {
  Status status;
  type.ForEachRun(count, offset, bytes, [&](int64_t displacement, int64_t length) {
    if (status.ok()) {
      std::byte* const run = buffer + displacement;
      status = to_packed ? front_end->Copy(packed, run, static_cast<uint64_t>(length))
                         : front_end->Copy(run, packed, static_cast<uint64_t>(length));
    }
    packed += length;
  });
  return FailureOf(status);
}

}  // namespace

Failure PackInto(const void* buffer, int64_t count, const Datatype& type, int64_t offset,
                 int64_t bytes, void* packed) {
  if (!front_end->IsByStream(buffer)) [[likely]] {
    type.Pack(buffer, count, offset, bytes, packed);
    return {};
  }
  return CopyRuns(static_cast<std::byte*>(const_cast<void*>(buffer)), count, type, offset, bytes,
                  static_cast<std::byte*>(packed), true);
}

Failure UnpackFrom(void* buffer, int64_t count, const Datatype& type, int64_t offset, int64_t bytes,
                   const void* packed) {
  if (!front_end->IsByStream(buffer)) [[likely]] {
    type.Unpack(buffer, count, offset, bytes, packed);
    return {};
  }
  return CopyRuns(static_cast<std::byte*>(buffer), count, type, offset, bytes,
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

Failure Payload::CopyOut(void* packed) const {
  if (size_bytes_ == 0) {
    return {};
  }
  return is_dense() ? FailureOf(front_end->Copy(packed, data_, static_cast<uint64_t>(size_bytes_)))
                    : PackInto(buffer_, count_, *type_, 0, size_bytes_, packed);
}

Failure Payload::CopyIn(const void* packed, int64_t bytes) const {
  if (bytes == 0) {
    return {};
  }
  return is_dense() ? FailureOf(front_end->Copy(data_, packed, static_cast<uint64_t>(bytes)))
                    : UnpackFrom(buffer_, count_, *type_, 0, bytes, packed);
}

Failure Payload::Pack() {
  if (is_dense()) {
    return {};
  }
  if (Failure failure = MakeRoom(); !failure.ok()) {
    return failure;
  }
  return size_bytes_ == 0 ? Failure() : PackInto(buffer_, count_, *type_, 0, size_bytes_, data_);
}

Failure Payload::Unpack(int64_t bytes) {
  return is_dense() || bytes == 0 ? Failure()
                                  : UnpackFrom(buffer_, count_, *type_, 0, bytes, data_);
}

void Payload::FreeCopy() {
  if (!is_dense()) {
    std::free(data_);
    data_ = nullptr;
  }
}

}  // namespace ferry::mpi

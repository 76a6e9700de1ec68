#include "client/mpi/request/payload.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

// Copies the runs of a buffer that only streams reach. Runs of one length at equal distances, such
// as a vector has, are one kernel of the device.
class RunCopier {
 public:
  RunCopier(std::byte* buffer, std::byte* packed, bool is_pack)
      : buffer_(buffer), next_packed_(packed), is_pack_(is_pack) {}

  // In the order in which they lie packed.
  void Add(int64_t displacement, int64_t length) {
    const int64_t distance = displacement - last_;
    if (runs_.block_count != 0 && static_cast<uint64_t>(length) == runs_.block_bytes &&
        (runs_.block_count == 1 ? MayBeStride(distance) : distance == runs_.stride_bytes)) {
      runs_.stride_bytes = distance;
      ++runs_.block_count;
    } else {
      Flush();
      runs_ = {buffer_ + displacement, next_packed_, static_cast<uint64_t>(length), 1, 0, is_pack_};
    }
    last_ = displacement;
    next_packed_ += length;
  }
  Failure Finish() {
    Flush();
    return FailureOf(status_);
  }

 private:
  // Blocks that overlap can only be written one after the other.
  bool MayBeStride(int64_t distance) const {
    const auto length = static_cast<int64_t>(runs_.block_bytes);
    return is_pack_ || distance >= length || distance <= -length;
  }

  void Flush() {
    if (status_.ok() && runs_.block_count > 1) {
      status_ = front_end->CopyStrided(runs_);
      if (status_.code() != ErrorCode::kUnsupported) {
        runs_.block_count = 0;
        return;
      }
      status_ = {};
    }
    auto* block = static_cast<std::byte*>(runs_.blocks);
    auto* packed = static_cast<std::byte*>(runs_.packed);
    for (; runs_.block_count > 0; --runs_.block_count) {
      if (status_.ok()) {
        status_ = is_pack_ ? front_end->Copy(packed, block, runs_.block_bytes)
                           : front_end->Copy(block, packed, runs_.block_bytes);
      }
      block += runs_.stride_bytes;
      packed += runs_.block_bytes;
    }
  }

  std::byte* const buffer_;
  std::byte* next_packed_;
  const bool is_pack_;
  gpu::StridedCopy runs_;
  int64_t last_ = 0;  // displacement of the last of them
  Status status_;
};

Failure CopyRuns(std::byte* buffer, int64_t count, const Datatype& type, int64_t offset,
                 int64_t bytes, std::byte* packed, bool is_pack) {
  RunCopier copier(buffer, packed, is_pack);
  type.ForEachRun(count, offset, bytes,
                  [&](int64_t displacement, int64_t length) { copier.Add(displacement, length); });
  return copier.Finish();
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

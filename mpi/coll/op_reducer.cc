#include "mpi/coll/op_reducer.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "mpi/base/connection.h"
#include "shm/word_copy.h"

namespace ferry::mpi {
namespace {

using collective::kHostMemory;

// The bytes that are copied at a time if operands have to be copied. They fit the first-level
// cache.
constexpr int64_t kChunkBytes = 8192;

}  // namespace

int OpReducer::ChooseDevice(std::initializer_list<const void*> buffers, int64_t count) {
  const auto bytes = static_cast<uint64_t>(count) * static_cast<uint64_t>(type_->size_bytes());
  if (bytes == 0 || bytes < front_end->options().device_reduction_min_bytes) {
    return kHostMemory;
  }
  int device = kHostMemory;
  uintptr_t addresses = 0;
  for (const void* buffer : buffers) {
    if (buffer == nullptr) {
      continue;
    }
    const auto* const first = static_cast<const char*>(buffer) + type_->true_lower_bound();
    const int found = front_end->memory->DeviceOf(first);
    if (found == kHostMemory || (device != kHostMemory && device != found)) {
      return kHostMemory;
    }
    device = found;
    addresses |= reinterpret_cast<uintptr_t>(first);
  }
  const std::optional<DeviceReduction> how =
      device != kHostMemory ? FindOn(device, addresses) : std::nullopt;
  if (!how.has_value()) {
    return kHostMemory;
  }
  on_device_ = how;
  return device;
}

std::optional<DeviceReduction> OpReducer::FindOn(int device, uintptr_t addresses) const {
  const std::optional<DeviceReduction> how = FindDeviceReduction(*op_, *type_);
  const bool is_found = how.has_value() && addresses % gpu::LayoutOf(how->type).alignment == 0 &&
                        front_end->memory->CanReduce(device, how->type, how->op);
  return is_found ? how : std::nullopt;
}

ErrorCode OpReducer::Reduce(const void* left, const void* right, void* to, size_t count) {
  if (on_device_.has_value() &&
      (front_end->IsByStream(to) || front_end->IsByStream(left) || front_end->IsByStream(right))) {
    return front_end->memory->Reduce(OnDevice(left, right, to, count)).code();
  }
  const auto elements = static_cast<int64_t>(count);
  try {
    if (type_->IsDense(elements)) {
      ReduceDense(static_cast<const char*>(left), static_cast<const char*>(right),
                  static_cast<char*>(to), elements);
    } else {
      ReduceUnpacked(static_cast<const char*>(left), static_cast<const char*>(right),
                     static_cast<char*>(to), elements);
    }
  } catch (const std::bad_alloc&) {
    return ErrorCode::kOutOfMemory;
  }
  return ErrorCode::kOk;
}

void OpReducer::ReduceDense(const char* left, const char* right, char* to, int64_t count) {
  const int64_t first = type_->true_lower_bound();  // MPI counts displacements from before it
  if (to != left || op_->IsPredefined()) [[likely]] {
    op_->Combine(left - first, right - first, to - first, count, *type_);
    return;
  }
  if (op_->IsCommutative()) {
    op_->Combine(right - first, left - first, to - first, count, *type_);
    return;
  }
  // A function leaves its result where its right operand was.
  const int64_t size = type_->size_bytes();
  const int64_t chunk = std::max(kChunkBytes / size, int64_t{1});
  right_.resize(static_cast<size_t>(std::min(chunk, count) * size));
  for (int64_t done = 0; done < count; done += chunk) {
    const int64_t elements = std::min(chunk, count - done);
    const auto bytes = static_cast<size_t>(elements * size);
    std::memcpy(right_.data(), right + done * size, bytes);
    op_->Combine(left + done * size - first, right_.data() - first, right_.data() - first, elements,
                 *type_);
    shm::CopyWords(to + done * size, right_.data(), bytes);
  }
}

void OpReducer::ReduceUnpacked(const char* left, const char* right, char* to, int64_t count) {
  const int64_t size = type_->size_bytes();
  const int64_t chunk =
      std::min(count, std::max(kChunkBytes / std::max(size, int64_t{1}), int64_t{1}));
  const Bounds span = type_->Span(chunk);
  left_.resize(static_cast<size_t>(span.high - span.low));
  right_.resize(left_.size());
  char* const a = left_.data() - span.low;
  char* const b = right_.data() - span.low;
  for (int64_t done = 0; done < count; done += chunk) {
    const int64_t elements = std::min(chunk, count - done);
    type_->Unpack(a, elements, 0, elements * size, left + done * size);
    type_->Unpack(b, elements, 0, elements * size, right + done * size);
    op_->Combine(a, b, b, elements, *type_);
    type_->Pack(b, elements, 0, elements * size, to + done * size);
  }
}

}  // namespace ferry::mpi

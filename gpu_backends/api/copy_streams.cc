#include "gpu_backends/api/copy_streams.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "common/process_memory.h"
#include "shm/word_copy.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kPinnedBytes = uint64_t{256} * 1024;
constexpr uint64_t kLongBlockBytes = uint64_t{64} * 1024;  // a copy engine is as good from here on

Status OfProcess(ErrorCode error) {
  return error == ErrorCode::kOk ? Status() : Status(error, "reaching another process's memory");
}

Status NoPinnedMemory() { return {ErrorCode::kOutOfMemory, "no pinned memory for a copy"}; }

Status CopyAndWait(Stream& stream, void* destination, const void* source, uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(stream.CopyAsync(destination, source, size_bytes));
  return stream.Synchronize();
}

Status CopyAndWait(Stream& stream, const StridedCopy& copy) {
  FERRY_RETURN_IF_ERROR(stream.CopyStrided(copy));
  return stream.Synchronize();
}

}  // namespace

CopyStreams::~CopyStreams() {
  for (auto& [device, lanes] : idle_) {
    for (Lane& lane : lanes) {
      lane.stream.reset();
      if (lane.pinned != nullptr) {
        (void)backend_.Free(lane.pinned);
      }
    }
  }
}

Status CopyStreams::Copy(void* destination, const void* source, uint64_t size_bytes) {
  if (size_bytes == 0) {
    return {};
  }
  const PointerKind to = backend_.Identify(destination).kind;
  const PointerKind from = backend_.Identify(source).kind;
  if (to != PointerKind::kDevice && from != PointerKind::kDevice) {
    shm::CopyWords(destination, source, size_bytes);
    return {};
  }
  return With(DeviceOf(destination, source), [&](const Lane& lane) {
    const bool is_short = lane.pinned != nullptr && size_bytes <= kPinnedBytes;
    if (is_short && from == PointerKind::kUnknown) {
      std::memcpy(lane.pinned, source, size_bytes);
      return CopyAndWait(*lane.stream, destination, lane.pinned, size_bytes);
    }
    if (is_short && to == PointerKind::kUnknown) {
      FERRY_RETURN_IF_ERROR(CopyAndWait(*lane.stream, lane.pinned, source, size_bytes));
      shm::CopyWords(destination, lane.pinned, size_bytes);
      return Status();
    }
    return CopyAndWait(*lane.stream, destination, source, size_bytes);
  });
}

Status CopyStreams::CopyStrided(const StridedCopy& copy) {
  if (copy.block_bytes == 0 || copy.block_count == 0) {
    return {};
  }
  if (copy.block_bytes > kLongBlockBytes) {
    return {ErrorCode::kUnsupported, "long blocks are copied one by one"};
  }
  return With(DeviceOf(copy.blocks, copy.packed), [&](const Lane& lane) {
    return backend_.Identify(copy.packed).kind == PointerKind::kUnknown
               ? CopyStridedByPinned(lane, copy)
               : CopyAndWait(*lane.stream, copy);
  });
}

// For a packed place that the device does not reach: copies as many blocks at a time as the lane's
// memory holds.
Status CopyStreams::CopyStridedByPinned(const Lane& lane, const StridedCopy& copy) {
  if (lane.pinned == nullptr) {
    return {ErrorCode::kUnsupported, "no pinned memory for a packed copy"};
  }
  StridedCopy part = copy;
  part.packed = lane.pinned;
  auto* packed = static_cast<std::byte*>(copy.packed);
  for (uint64_t left = copy.block_count; left > 0; left -= part.block_count) {
    part.block_count = std::min(left, kPinnedBytes / copy.block_bytes);
    if (!copy.is_pack) {
      std::memcpy(lane.pinned, packed, part.size_bytes());
    }
    FERRY_RETURN_IF_ERROR(CopyAndWait(*lane.stream, part));
    if (copy.is_pack) {
      shm::CopyWords(packed, lane.pinned, part.size_bytes());
    }
    packed += part.size_bytes();
    part.blocks = static_cast<std::byte*>(part.blocks) +
                  static_cast<int64_t>(part.block_count) * copy.stride_bytes;
  }
  return {};
}

Status CopyStreams::Reduce(const Reduction& reduction) {
  if (reduction.count == 0) {
    return {};
  }
  const bool is_right = backend_.Identify(reduction.right).kind == PointerKind::kDevice;
  const void* const operand = is_right ? reduction.right : reduction.left;
  return With(DeviceOf(reduction.to, operand), [&](const Lane& lane) {
    FERRY_RETURN_IF_ERROR(lane.stream->Reduce(reduction));
    return lane.stream->Synchronize();
  });
}

bool CopyStreams::CanReduce(int device, ReductionType type, ReductionOp op) {
  if (!IsReducible(type, op)) {
    return false;
  }
  {
    std::lock_guard lock(mutex_);
    if (const auto known = reduces_.find({device, type}); known != reduces_.end()) {
      return known->second;
    }
  }
  const Status answer = With(device, [&](const Lane& lane) {
    FERRY_RETURN_IF_ERROR(lane.stream->Reduce({.type = type, .op = op}));
    return lane.stream->Synchronize();
  });
  std::lock_guard lock(mutex_);
  return reduces_[{device, type}] = answer.ok();
}

Status CopyStreams::Read(void* destination, pid_t pid, uint64_t address, uint64_t size_bytes) {
  return With(DeviceOf(destination, nullptr), [&](const Lane& lane) {
    if (lane.pinned == nullptr) {
      return NoPinnedMemory();
    }
    for (uint64_t done = 0; done < size_bytes; done += kPinnedBytes) {
      const uint64_t part = std::min(size_bytes - done, kPinnedBytes);
      FERRY_RETURN_IF_ERROR(OfProcess(ReadProcessMemory(pid, address + done, lane.pinned, part)));
      FERRY_RETURN_IF_ERROR(CopyAndWait(*lane.stream, static_cast<std::byte*>(destination) + done,
                                        lane.pinned, part));
    }
    return Status();
  });
}

Status CopyStreams::Write(pid_t pid, uint64_t address, const void* source, uint64_t size_bytes) {
  return With(DeviceOf(nullptr, source), [&](const Lane& lane) {
    if (lane.pinned == nullptr) {
      return NoPinnedMemory();
    }
    for (uint64_t done = 0; done < size_bytes; done += kPinnedBytes) {
      const uint64_t part = std::min(size_bytes - done, kPinnedBytes);
      FERRY_RETURN_IF_ERROR(CopyAndWait(*lane.stream, lane.pinned,
                                        static_cast<const std::byte*>(source) + done, part));
      FERRY_RETURN_IF_ERROR(OfProcess(WriteProcessMemory(pid, address + done, lane.pinned, part)));
    }
    return Status();
  });
}

// Imported memory may be of a device that this process does not have.
int CopyStreams::DeviceOf(const void* destination, const void* source) const {
  const PointerInfo to = backend_.Identify(destination);
  const int device = to.kind == PointerKind::kDevice ? to.device : backend_.Identify(source).device;
  return device >= 0 && device < backend_.device_count() ? device : 0;
}

template <typename Use>
Status CopyStreams::With(int device, Use&& use) {
  StatusOr<Lane> lane = Take(device);
  FERRY_RETURN_IF_ERROR(lane.status());
  Status status = use(*lane);
  if (!status.ok() && status.code() != ErrorCode::kUnsupported) {
    lane->stream.reset();  // it may be poisoned
  }
  Give(device, std::move(*lane));
  return status;
}

StatusOr<CopyStreams::Lane> CopyStreams::Take(int device) {
  Lane lane;
  {
    std::lock_guard lock(mutex_);
    std::vector<Lane>& lanes = idle_[device];
    if (!lanes.empty()) {
      lane = std::move(lanes.back());
      lanes.pop_back();
    }
  }
  if (lane.stream == nullptr) {
    StatusOr<std::unique_ptr<Stream>> stream = backend_.CreateStream(device);
    if (!stream.ok()) {
      Give(device, std::move(lane));
      return stream.status();
    }
    lane.stream = std::move(*stream);
  }
  if (lane.pinned == nullptr) {
    const StatusOr<void*> pinned = backend_.AllocatePinned(kPinnedBytes);
    lane.pinned = pinned.ok() ? *pinned : nullptr;
  }
  return lane;
}

void CopyStreams::Give(int device, Lane lane) {
  std::lock_guard lock(mutex_);
  idle_[device].push_back(std::move(lane));
}

}  // namespace ferry::gpu

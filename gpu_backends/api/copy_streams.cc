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

// One end, or both, is device memory.
Status CopyAndWait(Stream& stream, void* destination, const void* source, uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(stream.CopyDeviceAsync(destination, source, size_bytes));
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

// Identifies the memory. A vendor's failure to answer is an error: the memory may be anything.
StatusOr<PointerInfo> CopyStreams::Look(const void* pointer) const {
  PointerInfo info = backend_.Identify(pointer);
  FERRY_RETURN_IF_ERROR(info.failure);
  return info;
}

StatusOr<PointerInfo> CopyStreams::LookAtDevice(const void* pointer, int device) const {
  if (device >= 0) {
    PointerInfo known;
    known.kind = PointerKind::kDevice;
    known.device = device;
    return known;
  }
  StatusOr<PointerInfo> info = Look(pointer);
  return info.ok() && info->kind == PointerKind::kUnknown
             ? Status(ErrorCode::kInvalidBuffer,
                      "there is no memory that " + std::string(backend_.name()) +
                          " knows where a copy was to find a device's: was it freed?")
             : info;
}

Status CopyStreams::Copy(void* destination, const void* source, uint64_t size_bytes,
                         const DeviceEnds& ends) {
  if (size_bytes == 0) {
    return {};
  }
  const StatusOr<PointerInfo> to =
      ends.destination ? LookAtDevice(destination, ends.destination_device) : Look(destination);
  FERRY_RETURN_IF_ERROR(to.status());
  const StatusOr<PointerInfo> from =
      ends.source ? LookAtDevice(source, ends.source_device) : Look(source);
  FERRY_RETURN_IF_ERROR(from.status());
  if (to->kind != PointerKind::kDevice && from->kind != PointerKind::kDevice) {
    shm::CopyWords(destination, source, size_bytes);
    return {};
  }
  return With(DeviceFor(to->kind == PointerKind::kDevice ? *to : *from), [&](const Lane& lane) {
    const bool is_short = lane.pinned != nullptr && size_bytes <= kPinnedBytes;
    if (is_short && from->kind == PointerKind::kUnknown) {
      std::memcpy(lane.pinned, source, size_bytes);
      return CopyAndWait(*lane.stream, destination, lane.pinned, size_bytes);
    }
    if (is_short && to->kind == PointerKind::kUnknown) {
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
  const StatusOr<PointerInfo> blocks = Look(copy.blocks);
  FERRY_RETURN_IF_ERROR(blocks.status());
  const StatusOr<PointerInfo> packed = Look(copy.packed);
  FERRY_RETURN_IF_ERROR(packed.status());
  const PointerInfo& owner = blocks->kind == PointerKind::kDevice ? *blocks : *packed;
  return With(DeviceFor(owner), [&](const Lane& lane) {
    return packed->kind == PointerKind::kUnknown ? CopyStridedByPinned(lane, copy)
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

// Kernels of the device reach its own memory in any case.
Status CopyStreams::LetReach(int device, const void* pointer) {
  const StatusOr<PointerInfo> info = Look(pointer);
  FERRY_RETURN_IF_ERROR(info.status());
  if (info->kind != PointerKind::kDevice || info->device == device) {
    return {};
  }
  const Status reached = backend_.LetKernelsReach(device, pointer);
  return reached.ok() ? Status() : Status(ErrorCode::kUnsupported, reached.message());
}

Status CopyStreams::CopySpread(const SpreadCopy& copy) {
  if (copy.block_bytes == 0) {
    return {};
  }
  const StatusOr<PointerInfo> owner = Look(copy.destinations[0]);
  FERRY_RETURN_IF_ERROR(owner.status());
  if (owner->kind != PointerKind::kDevice) {
    return {ErrorCode::kUnsupported, "CopySpread: the first destination is no device memory"};
  }
  const int device = DeviceFor(*owner);
  for (uint64_t i = 0; i < std::min(copy.source_count, SpreadCopy::kMost); ++i) {
    FERRY_RETURN_IF_ERROR(LetReach(device, copy.sources[i]));
  }
  for (uint64_t i = 0; i < std::min(copy.destination_count, SpreadCopy::kMost); ++i) {
    FERRY_RETURN_IF_ERROR(LetReach(device, copy.destinations[i]));
  }
  return With(device, [&](const Lane& lane) {
    FERRY_RETURN_IF_ERROR(lane.stream->CopySpread(copy));
    return lane.stream->Synchronize();
  });
}

Status CopyStreams::Reduce(const Reduction& reduction) {
  if (reduction.count == 0) {
    return {};
  }
  PointerInfo owner;
  for (const void* buffer :
       {static_cast<const void*>(reduction.to), reduction.right, reduction.left}) {
    const StatusOr<PointerInfo> info = Look(buffer);
    FERRY_RETURN_IF_ERROR(info.status());
    if (info->kind == PointerKind::kDevice) {
      owner = *info;
      break;
    }
  }
  return ReduceOn(DeviceFor(owner), reduction);
}

Status CopyStreams::ReduceNear(const void* own, Reduction reduction) {
  if (reduction.count == 0) {
    return {};
  }
  const StatusOr<PointerInfo> owner = Look(own);
  FERRY_RETURN_IF_ERROR(owner.status());
  if (owner->kind != PointerKind::kDevice) {
    return {ErrorCode::kUnsupported, "Reduce: there is no device memory whose device could reduce"};
  }
  const int device = DeviceFor(*owner);
  for (size_t i = 0; i < std::min(reduction.operand_count(), Reduction::kMost); ++i) {
    FERRY_RETURN_IF_ERROR(LetReach(device, reduction.operand(i)));
  }
  for (size_t i = 0; i < std::min(reduction.result_count(), Reduction::kMost); ++i) {
    FERRY_RETURN_IF_ERROR(LetReach(device, reduction.result(i)));
  }
  reduction.is_reached = true;
  return ReduceOn(device, reduction);
}

Status CopyStreams::ReduceOn(int device, const Reduction& reduction) {
  return With(device, [&](const Lane& lane) {
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
  const Status answer = ReduceOn(device, {.type = type, .op = op});
  std::lock_guard lock(mutex_);
  return reduces_[{device, type}] = answer.ok();
}

Status CopyStreams::Read(void* destination, pid_t pid, uint64_t address, uint64_t size_bytes,
                         int device) {
  const StatusOr<PointerInfo> to = LookAtDevice(destination, device);
  FERRY_RETURN_IF_ERROR(to.status());
  return With(DeviceFor(*to), [&](const Lane& lane) {
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

Status CopyStreams::Write(pid_t pid, uint64_t address, const void* source, uint64_t size_bytes,
                          int device) {
  const StatusOr<PointerInfo> from = LookAtDevice(source, device);
  FERRY_RETURN_IF_ERROR(from.status());
  return With(DeviceFor(*from), [&](const Lane& lane) {
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
int CopyStreams::DeviceFor(const PointerInfo& memory) const {
  return memory.device >= 0 && memory.device < backend_.device_count() ? memory.device : 0;
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

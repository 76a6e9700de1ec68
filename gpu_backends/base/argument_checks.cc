#include "gpu_backends/base/argument_checks.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "shm/layout/pair_layout.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 63;

Status InvalidArgument(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}

Status CheckNoOverlap(const void* destination, const void* source, uint64_t size_bytes,
                      const char* call) {
  const auto to = reinterpret_cast<uintptr_t>(destination);
  const auto from = reinterpret_cast<uintptr_t>(source);
  const uint64_t distance = to > from ? to - from : from - to;
  if (distance < size_bytes) {
    return InvalidArgument(std::string(call) + ": source and destination of " +
                           std::to_string(size_bytes) + " bytes lie only " +
                           std::to_string(distance) + " bytes apart");
  }
  return {};
}

}  // namespace

Status ArgumentChecks::Copy(const void* destination, const void* source, uint64_t size_bytes,
                            const char* call) const {
  if (destination == nullptr || source == nullptr) {
    return InvalidArgument(std::string(call) + ": source and destination must not be null");
  }
  FERRY_RETURN_IF_ERROR(CheckNoOverlap(destination, source, size_bytes, call));
  FERRY_RETURN_IF_ERROR(table_.CheckRange(destination, size_bytes, /*must_be_known=*/false));
  return table_.CheckRange(source, size_bytes, /*must_be_known=*/false);
}

Status ArgumentChecks::Reachable(const void* pointer, uint64_t size_bytes) const {
  Status known = table_.CheckRange(pointer, size_bytes, /*must_be_known=*/true);
  return !known.ok() && reaches_ && reaches_(pointer) &&
                 reaches_(static_cast<const std::byte*>(pointer) + (size_bytes - 1))
             ? Status()
             : known;
}

Status ArgumentChecks::Strided(const StridedCopy& copy) const {
  if (copy.blocks == nullptr || copy.packed == nullptr) {
    return InvalidArgument("CopyStrided: blocks and packed must not be null");
  }
  const uint64_t step = copy.stride_bytes < 0 ? 0 - static_cast<uint64_t>(copy.stride_bytes)
                                              : static_cast<uint64_t>(copy.stride_bytes);
  uint64_t packed_bytes = 0;
  uint64_t between_bytes = 0;  // the begins of the first and the last block
  uint64_t extent_bytes = 0;
  if (__builtin_mul_overflow(copy.block_bytes, copy.block_count, &packed_bytes) ||
      __builtin_mul_overflow(step, copy.block_count - 1, &between_bytes) ||
      __builtin_add_overflow(between_bytes, copy.block_bytes, &extent_bytes) ||
      std::max(packed_bytes, extent_bytes) > kMostBytes) {
    return InvalidArgument("CopyStrided: " + std::to_string(copy.block_count) + " blocks of " +
                           std::to_string(copy.block_bytes) + " bytes, one every " +
                           std::to_string(copy.stride_bytes) + " bytes, are no range of memory");
  }
  if (!copy.is_pack && copy.block_count > 1 && step < copy.block_bytes) {
    return InvalidArgument("CopyStrided: blocks of " + std::to_string(copy.block_bytes) +
                           " bytes, one every " + std::to_string(copy.stride_bytes) +
                           " bytes, overlap, and so cannot be unpacked");
  }
  const auto first = reinterpret_cast<uintptr_t>(copy.blocks);
  const uintptr_t lowest = copy.stride_bytes < 0 ? first - between_bytes : first;
  const auto packed = reinterpret_cast<uintptr_t>(copy.packed);
  FERRY_RETURN_IF_ERROR(Reachable(reinterpret_cast<const void*>(lowest), extent_bytes));
  FERRY_RETURN_IF_ERROR(Reachable(copy.packed, packed_bytes));
  return packed < lowest + extent_bytes && lowest < packed + packed_bytes
             ? InvalidArgument("CopyStrided: the packed place lies between the blocks")
             : Status();
}

Status ArgumentChecks::Spread(const SpreadCopy& copy) const {
  if (copy.source_count == 0 || copy.source_count > SpreadCopy::kMost ||
      copy.destination_count == 0 || copy.destination_count > SpreadCopy::kMost) {
    return InvalidArgument("CopySpread: there must be 1 to " + std::to_string(SpreadCopy::kMost) +
                           " sources, and as many destinations");
  }
  if (copy.block_bytes > kMostBytes / copy.source_count) {
    return InvalidArgument("CopySpread: blocks of " + std::to_string(copy.block_bytes) +
                           " bytes are no range of memory");
  }
  for (uint64_t i = 0; i < copy.source_count; ++i) {
    if (copy.sources[i] == nullptr) {
      return InvalidArgument("CopySpread: no source must be null");
    }
    FERRY_RETURN_IF_ERROR(Reachable(copy.sources[i], copy.block_bytes));
  }
  for (uint64_t to = 0; to < copy.destination_count; ++to) {
    if (copy.destinations[to] == nullptr) {
      return InvalidArgument("CopySpread: no destination must be null");
    }
    FERRY_RETURN_IF_ERROR(Reachable(copy.destinations[to], copy.size_bytes()));
    for (uint64_t other = 0; other < to; ++other) {
      FERRY_RETURN_IF_ERROR(CheckNoOverlap(copy.destinations[to], copy.destinations[other],
                                           copy.size_bytes(), "CopySpread"));
    }
    for (uint64_t from = 0; from < copy.source_count; ++from) {
      const auto begin = reinterpret_cast<uintptr_t>(copy.destinations[to]);
      const auto source = reinterpret_cast<uintptr_t>(copy.sources[from]);
      if (copy.sources[from] != copy.Place(to, from) && source < begin + copy.size_bytes() &&
          begin < source + copy.block_bytes) {
        return InvalidArgument("CopySpread: source " + std::to_string(from) +
                               " lies in a destination, and not in its place there");
      }
    }
  }
  return {};
}

Status ArgumentChecks::Reduce(const Reduction& reduction) const {
  if (!IsReducible(reduction.type, reduction.op)) {
    return InvalidArgument("Reduce: operation " + std::to_string(static_cast<int>(reduction.op)) +
                           " is not defined for numbers of type " +
                           std::to_string(static_cast<int>(reduction.type)));
  }
  if (reduction.operand_count() > Reduction::kMost || reduction.result_count() > Reduction::kMost) {
    return InvalidArgument("Reduce: there must be at most " + std::to_string(Reduction::kMost) +
                           " operands, and as many results");
  }
  if (reduction.count == 0) {
    return {};
  }
  const ElementLayout element = LayoutOf(reduction.type);
  if (reduction.count > kMostBytes / element.size_bytes) {
    return InvalidArgument("Reduce: " + std::to_string(reduction.count) + " elements of " +
                           std::to_string(element.size_bytes) + " bytes are no range of memory");
  }
  for (size_t i = 0; i < reduction.operand_count(); ++i) {
    FERRY_RETURN_IF_ERROR(ReduceBuffer(reduction, reduction.operand(i)));
  }
  for (size_t i = 0; i < reduction.result_count(); ++i) {
    void* const result = reduction.result(i);
    FERRY_RETURN_IF_ERROR(ReduceBuffer(reduction, result));
    for (size_t other = 0; other < i; ++other) {
      FERRY_RETURN_IF_ERROR(
          CheckNoOverlap(result, reduction.result(other), reduction.size_bytes(), "Reduce"));
    }
    for (size_t from = 0; from < reduction.operand_count(); ++from) {
      if (reduction.operand(from) != result) {
        FERRY_RETURN_IF_ERROR(
            CheckNoOverlap(result, reduction.operand(from), reduction.size_bytes(), "Reduce"));
      }
    }
  }
  return {};
}

Status ArgumentChecks::ReduceBuffer(const Reduction& reduction, const void* buffer) const {
  const uint64_t alignment = LayoutOf(reduction.type).alignment;
  if (buffer == nullptr) {
    return InvalidArgument("Reduce: the result and the operands must not be null");
  }
  if (reinterpret_cast<uintptr_t>(buffer) % alignment != 0) {
    return InvalidArgument("Reduce: a buffer is not aligned to the " + std::to_string(alignment) +
                           " bytes that its type asks for");
  }
  return Reachable(buffer, reduction.size_bytes());
}

Status ArgumentChecks::Word(const uint64_t* word) const {
  if (reinterpret_cast<uintptr_t>(word) % sizeof(*word) != 0) {
    return InvalidArgument("a word that streams write or wait for must be aligned to 8 bytes");
  }
  return Reachable(word, sizeof(*word));
}

Status ArgumentChecks::Move(const MatchedMove& move, const char* call) const {
  if (move.own == nullptr || move.other == nullptr) {
    return InvalidArgument(std::string(call) + ": the blocks of both ends must not be null");
  }
  FERRY_RETURN_IF_ERROR(Word(&move.own->done.value));
  return move.size_bytes == 0 ? Status()
                              : Copy(move.destination, move.source, move.size_bytes, call);
}

Status ArgumentChecks::AwaitMove(const MatchedMove& move) const {
  const bool is_between_nodes = move.own != nullptr && move.other == nullptr;
  return is_between_nodes ? Word(&move.own->done.value) : Move(move, "AwaitMove");
}

Status CheckSize(uint64_t size_bytes, const char* call) {
  return size_bytes > 0 ? Status() : InvalidArgument(std::string(call) + ": the size is zero");
}

Status CheckHostRange(const void* pointer, uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(CheckSize(size_bytes, "RegisterHostMemory"));
  if (pointer == nullptr || size_bytes - 1 > UINTPTR_MAX - reinterpret_cast<uintptr_t>(pointer)) {
    return InvalidArgument("RegisterHostMemory: " + std::to_string(size_bytes) +
                           " bytes from this address, null or too high, are no range of memory");
  }
  return {};
}

Status CheckIpcHandle(const IpcHandle& handle) {
  FERRY_RETURN_IF_ERROR(CheckSize(handle.size_bytes, "ImportIpc"));
  const bool is_empty = std::all_of(handle.opaque.begin(), handle.opaque.end(),
                                    [](uint8_t byte) { return byte == 0; });
  if (!handle.fd.valid() && is_empty) {
    return InvalidArgument("ImportIpc: the handle has no descriptor; send it by SCM_RIGHTS");
  }
  if (handle.offset_bytes >= handle.size_bytes) {
    return InvalidArgument("ImportIpc: offset " + std::to_string(handle.offset_bytes) +
                           " lies outside the " + std::to_string(handle.size_bytes) +
                           " bytes of the allocation");
  }
  return {};
}

Status CheckHostFunction(const std::function<Status()>& function) {
  return function ? Status() : InvalidArgument("LaunchHost: the function is empty");
}

}  // namespace ferry::gpu

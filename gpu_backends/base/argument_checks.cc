#include "gpu_backends/base/argument_checks.h"

#include <algorithm>
#include <string>

#include "shm/layout/channel_layout.h"

namespace ferry::gpu {
namespace {

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

Status ArgumentChecks::Word(const uint64_t* word) const {
  if (reinterpret_cast<uintptr_t>(word) % sizeof(*word) != 0) {
    return InvalidArgument("a word that streams write or wait for must be aligned to 8 bytes");
  }
  Status known = table_.CheckRange(word, sizeof(*word), /*must_be_known=*/true);
  return !known.ok() && reaches_ && reaches_(word) ? Status() : known;
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

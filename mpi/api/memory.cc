// Memory that MPI allocates (MPI 5.0, section 9.2): host memory, or what the keys below ask for.
#include <algorithm>
#include <bit>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>

#include "common/number_text.h"
#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/base/connection.h"
#include "mpi/info/info.h"
#include "mpi/init/fail.h"

namespace ferry::mpi {
namespace {

constexpr size_t kAlignment = 64;  // what the heap has, too
constexpr uint64_t kMostAlignment = uint64_t{1} << 30;
constexpr char kKindKey[] = "ferry_memory_kind";
constexpr char kDeviceKey[] = "ferry_device";
constexpr char kAlignmentKey[] = "mpi_minimum_memory_alignment";

// Memory that came from the system because the rank's heap had no room.
struct Overflow {
  std::mutex mutex;
  std::unordered_set<void*> blocks;
};
Overflow& overflow = *new Overflow();

// The wishes of the info argument.
struct Wish {
  client::MemoryKind kind = client::MemoryKind::kHost;
  int device = 0;
  size_t alignment = kAlignment;
};

Failure WrongValue(const char* key, const std::string& value, const char* allowed) {
  return {MPI_ERR_INFO_VALUE, std::string(key) + " is \"" + value + "\"; it must be " + allowed};
}

// Keys that are none of these are hints for others.
Failure ReadWish(const Info& info, Wish* wish) {
  if (const auto kind = info.Find(kKindKey); kind.has_value()) {
    if (*kind != "host" && *kind != "pinned" && *kind != "device") {
      return WrongValue(kKindKey, *kind, "host, pinned or device");
    }
    wish->kind = *kind == "host"     ? client::MemoryKind::kHost
                 : *kind == "pinned" ? client::MemoryKind::kPinned
                                     : client::MemoryKind::kDevice;
  }
  if (const auto text = info.Find(kDeviceKey); text.has_value()) {
    const std::optional<uint64_t> device = NumberIn<uint64_t>(*text);
    if (!device.has_value() || *device > INT_MAX) {
      return WrongValue(kDeviceKey, *text, "the number of a device");
    }
    wish->device = static_cast<int>(*device);
  }
  if (const auto text = info.Find(kAlignmentKey); text.has_value()) {
    const std::optional<uint64_t> alignment = NumberIn<uint64_t>(*text);
    if (!alignment.has_value() || !std::has_single_bit(*alignment) || *alignment > kMostAlignment) {
      return WrongValue(kAlignmentKey, *text, "a power of two of up to 1 GiB, in bytes");
    }
    wish->alignment = std::max<size_t>(kAlignment, *alignment);
  }
  return {};
}

bool IsAligned(const void* memory, size_t alignment) {
  return reinterpret_cast<uintptr_t>(memory) % alignment == 0;
}

void* AllocateFromSystem(size_t bytes, size_t alignment) {
  void* const memory =
      std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory != nullptr) {
    std::lock_guard lock(overflow.mutex);
    overflow.blocks.insert(memory);
  }
  return memory;
}

// Host memory comes from the rank's heap, which peers and the network reach without a copy, if that
// has room and the alignment.
Failure Allocate(size_t bytes, const Wish& wish, void** memory) {
  const StatusOr<void*> shared = front_end->memory->AllocateMemory(bytes, wish.kind, wish.device);
  if (shared.ok() && IsAligned(*shared, wish.alignment)) {
    *memory = *shared;
    return {};
  }
  if (shared.ok()) {
    (void)front_end->memory->FreeMemory(*shared);  // which has just been allocated
  }
  if (wish.kind != client::MemoryKind::kHost) {
    return shared.ok() ? Failure{MPI_ERR_NO_MEM, "there is no such memory aligned to " +
                                                     std::to_string(wish.alignment) + " bytes"}
                       : FailureOf(shared.status());
  }
  *memory = AllocateFromSystem(bytes, wish.alignment);
  return *memory != nullptr
             ? Failure{}
             : Failure{MPI_ERR_NO_MEM, "no memory for " + std::to_string(bytes) + " bytes"};
}

bool FreeOverflow(void* memory) {
  std::lock_guard lock(overflow.mutex);
  const bool found = overflow.blocks.erase(memory) != 0;
  if (found) {
    std::free(memory);
  }
  return found;
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Alloc_mem, (MPI_Aint size, MPI_Info info, void* result)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  const Info* const hints = call.ok() ? call.FindOrNull(info) : nullptr;
  if (size < 0) {
    call.Refuse(MPI_ERR_ARG, "the size is " + std::to_string(size));
  }
  call.Need(result, "baseptr");
  Wish wish;
  if (call.ok() && hints != nullptr) {
    call.Refuse(ReadWish(*hints, &wish));
  }
  void* memory = nullptr;
  if (call.ok()) {
    call.Refuse(Allocate(size == 0 ? 1 : static_cast<size_t>(size), wish, &memory));
  }
  return call.Then([&] { std::memcpy(result, &memory, sizeof(memory)); });
}

FERRY_MPI_CALL(int, MPI_Free_mem, (void* memory)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  return call.Then([&]() -> Failure {
    if (memory == nullptr || FreeOverflow(memory)) {
      return {};
    }
    const Status status = front_end->memory->FreeMemory(memory);
    return status.ok() ? Failure() : Failure{MPI_ERR_BASE, status.message()};
  });
}

}  // namespace ferry::mpi

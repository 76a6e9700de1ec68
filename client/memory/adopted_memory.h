// Device memory that the program has allocated itself, by its vendor's calls.
//
// It is *adopted* when a call first names it: a region like AllocateDevice's, if other processes
// can map it; else only this process's streams reach it. At each use the vendor is asked again:
// what was freed meanwhile is withdrawn, and what lies there now is adopted anew, under another
// number.
//
// Calling thread: any. Blocks on the daemon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "client/memory/memory_state.h"
#include "common/status.h"
#include "gpu_backends/api/backend.h"

namespace ferry::client {

class AdoptedMemory {
 public:
  explicit AdoptedMemory(MemoryState* state) : state_(*state) {}

  // Looks at a buffer in memory that Ferry has not allocated, and adopts it if it is device memory.
  // kInvalidBuffer: it runs past the end of that memory, or there is no memory that CPUs or the
  // vendor know.
  Status LookAt(const void* pointer, uint64_t size_bytes);
  // Remembers that other ranks may name the memory at any time: it stays a region.
  void NoteLocated(const void* pointer, uint64_t size_bytes);
  // `holds(memory, size_bytes)` says if requests use that memory, or may once more: until they no
  // longer do, it stays a region. Called before any buffer is looked at.
  void SetHolder(std::function<bool(const void*, uint64_t)> holds) { holds_ = std::move(holds); }

 private:
  struct Adopted {
    OwnRegion region;
    uint64_t allocation_id = 0;  // 0: the vendor gives none,
    gpu::IpcHandle handle{};     // so its handle of the memory tells
    // The program maps it to addresses that it has reserved: one mapping, or several with holes
    // between them. No other process maps it, so no mapping is stale.
    bool is_mapped = false;
    const void* seen = nullptr;  // an address of it at the last look
    bool is_gone = false;        // freed; and nothing else has been seen there since
    bool is_located = false;     // other ranks may name it at any time
    uint64_t last_look = 0;
  };

  gpu::GpuBackend* backend() const { return state_.gpu.backend(); }
  Status CheckAll(const Adopted& first, const void* pointer, uint64_t size_bytes);
  Status AdoptUnlessKnown(const void* pointer, const gpu::PointerInfo& info,
                          const gpu::MemoryPiece& piece);
  Status AdoptAnew(const void* pointer, const gpu::PointerInfo& info);
  Status Adopt(const void* pointer, const gpu::PointerInfo& info);
  StatusOr<bool> IsStillThere(const Adopted& adopted, const void* pointer,
                              const gpu::PointerInfo& info);
  void NoteGone(Adopted* adopted);
  void WithdrawFreed(size_t most_looks);
  void MakeRoom();
  void WithdrawBetween(const std::byte* begin, const std::byte* end);
  void Withdraw(const Adopted& adopted);

  MemoryState& state_;
  // Under its mutex:
  std::map<const std::byte*, Adopted> adopted_;  // by base; none overlap
  uint64_t looks_ = 0;
  uint64_t earlier_looks_ = 0;  // before the call that looks now
  std::function<bool(const void*, uint64_t)> holds_;
};

}  // namespace ferry::client

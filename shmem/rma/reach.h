// Translates an address of this PE into the same place in another PE's memory: the first step of
// each put, get and atomic operation.
//
// Calling thread: any. Nothing blocks. Invalid addresses and PEs abort the program with an error
// message.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/api/one_sided.h"
#include "shmem/base/job.h"
#include "shmem/rma/team.h"

namespace ferry::shmem {

// A place in a PE's memory: its address here, or, of a remote PE, what libferry calls it. For
// device memory of a local PE that only streams reach, the address is one for streams (copies.h).
class PeAddress {
 public:
  static PeAddress Local(std::byte* address) {
    return PeAddress(reinterpret_cast<uint64_t>(address), kLocal, 0);
  }
  static PeAddress ByStream(std::byte* address) {
    return PeAddress(reinterpret_cast<uint64_t>(address), kByStream, 0);
  }
  static PeAddress Remote(int pe, uint32_t segment, uint64_t offset) {
    return PeAddress(offset, static_cast<uint32_t>(pe), segment);
  }

  bool is_local() const { return rank_ == kLocal; }  // loads and stores reach it
  bool is_by_stream() const { return rank_ == kByStream; }
  bool is_remote() const { return rank_ < kByStream; }
  std::byte* address() const { return reinterpret_cast<std::byte*>(at_); }
  client::RemoteAddress place() const { return {rank_, segment_, at_}; }
  int remote_pe() const { return static_cast<int>(rank_); }
  // Returns the address `offset` bytes further.
  PeAddress At(uint64_t offset) const { return PeAddress(at_ + offset, rank_, segment_); }
  // Addresses and offsets both count from multiples of a page, so either tells the alignment.
  bool IsAligned(size_t bytes) const { return at_ % bytes == 0; }

 private:
  static constexpr uint32_t kLocal = UINT32_MAX;
  static constexpr uint32_t kByStream = kLocal - 1;
  PeAddress(uint64_t at, uint32_t rank, uint32_t segment)
      : at_(at), rank_(rank), segment_(segment) {}

  uint64_t at_;
  uint32_t rank_;
  uint32_t segment_;
};

// Returns the place of `address` in the heap of a local PE, the usual case. Null: the address lies
// in static data, the PE is remote, or an argument is invalid.
inline std::byte* ReachLocalHeap(const Context* context, const void* address, size_t bytes,
                                 int pe) {
  if (context == nullptr) [[unlikely]] {
    return nullptr;
  }
  const Team& team = *context->team;
  if (!team.Has(pe)) [[unlikely]] {
    return nullptr;
  }
  const LocalHeap& heap = team.heaps[pe];
  const auto* const place = static_cast<const std::byte*>(address);
  const auto offset = static_cast<size_t>(place - job.heap.base);
  if (offset >= heap.size_bytes || bytes > heap.size_bytes - offset) [[unlikely]] {
    return nullptr;
  }
  std::byte* const there = const_cast<std::byte*>(place) + heap.shift;
  if (there == nullptr) {
    __builtin_unreachable();  // so that callers do not test it again
  }
  return there;
}

// Does the rest of Reach: for an address in static data or a remote PE; ends the program if an
// argument is invalid.
PeAddress ReachSlowly(const char* call, const Context* context, const void* address, size_t bytes,
                      int pe);

inline PeAddress Reach(const char* call, const Context* context, const void* address, size_t bytes,
                       int pe) {
  std::byte* const there = ReachLocalHeap(context, address, bytes, pe);
  return there != nullptr ? PeAddress::Local(there)
                          : ReachSlowly(call, context, address, bytes, pe);
}

// Does the rest of ReachWord, for a word that CPUs change or wait for: ends the program if only
// streams reach it. `argument`: its name in messages.
PeAddress ReachWordSlowly(const char* call, const Context* context, const char* argument,
                          const void* address, size_t bytes, int pe);

inline PeAddress ReachWord(const char* call, const Context* context, const char* argument,
                           const void* address, size_t bytes, int pe) {
  std::byte* const there = ReachLocalHeap(context, address, bytes, pe);
  return there != nullptr ? PeAddress::Local(there)
                          : ReachWordSlowly(call, context, argument, address, bytes, pe);
}

// Ends the program unless all of these bytes are symmetric memory.
void CheckSymmetric(const char* call, const char* argument, const void* address, size_t bytes);
// Ends the program unless all of these bytes are symmetric memory that CPUs reach.
void CheckWords(const char* call, const char* argument, const void* address, size_t bytes);

}  // namespace ferry::shmem

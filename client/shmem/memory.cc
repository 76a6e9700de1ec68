// The symmetric heap (OpenSHMEM 1.5, section 9.3). See operations.h.
//
// Each PE has an allocator of its own, outside the heap. All of them get the same calls in the same
// order, so they return the same offsets; that this holds is compared at each call, in the exchange
// that the standard's barrier is made of.
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "client/core/offset_allocator.h"
#include "client/shmem/call_comparison.h"
#include "client/shmem/fail.h"
#include "client/shmem/heap.h"
#include "client/shmem/job.h"
#include "client/shmem/operations.h"
#include "client/shmem/pieces.h"
#include "client/shmem/team.h"

namespace ferry::shmem {
namespace {

using client::OffsetAllocator;

constexpr size_t kSmallestAlignment = 16;

struct Heap {
  std::mutex mutex;
  OffsetAllocator pieces;
  uint64_t used_bytes = 0;
  uint64_t touched_end = 0;  // beyond, nothing was ever given out: all is zero
};
Heap& heap = *new Heap();

// What a PE passes to a collective call about memory, for all to compare.
struct MemoryCall {
  enum Kind : uint64_t { kMalloc, kRealloc, kFree };
  uint64_t kind;
  uint64_t bytes;
  uint64_t alignment;
  uint64_t offset;  // of what is to be freed; ~0: none

  bool operator==(const MemoryCall&) const = default;
  std::string Text() const {
    std::string text = kind == kMalloc    ? std::to_string(bytes) + " bytes"
                       : kind == kRealloc ? std::to_string(bytes) + " bytes in place of those"
                                          : std::string("to free what lies");
    if (kind == kMalloc && alignment > kSmallestAlignment) {
      text += " aligned to " + std::to_string(alignment);
    } else if (kind != kMalloc) {
      text += offset == ~uint64_t{0} ? " at null" : " at offset " + std::to_string(offset);
    }
    return text;
  }
};

// The standard's barrier, which also tells whether all PEs have called alike.
void MeetAndCompare(const char* call, const MemoryCall& own) {
  std::vector<MemoryCall> all(static_cast<size_t>(job.size));
  Quiet(call, DefaultContext());
  CheckCollective(call, *WorldTeam()->assembly, {});
  WorldTeam()->assembly->Gather(call, &own, sizeof(own), all.data());
  for (int pe = 0; pe < job.size; ++pe) {
    const MemoryCall& theirs = all[static_cast<size_t>(pe)];
    if (theirs != own) {
      Fail(call, "PE " + std::to_string(pe) + " asks for " + theirs.Text() + ", this one for " +
                     own.Text() + ": all PEs must make the same calls for symmetric memory");
    }
  }
}

void WarnOfExhaustion(const char* call, uint64_t bytes) {
  Warn(call, std::to_string(bytes) + " bytes asked for, " + std::to_string(heap.used_bytes) +
                 " of the symmetric heap's " + std::to_string(job.heap.size_bytes) +
                 " are in use, and the largest free piece has " +
                 std::to_string(heap.pieces.LargestFreeBytes()) +
                 ": raise SHMEM_SYMMETRIC_SIZE, or free memory");
}

// Null: there is none.
std::byte* Take(const char* call, uint64_t bytes, uint64_t alignment) {
  std::lock_guard lock(heap.mutex);
  const uint64_t offset = heap.pieces.Allocate(bytes, alignment);
  if (offset == OffsetAllocator::kNone) {
    WarnOfExhaustion(call, bytes);
    return nullptr;
  }
  heap.used_bytes += heap.pieces.SizeOf(offset);
  return job.heap.base + offset;
}

// Makes a new piece zero; what nobody has had before is zero already.
void Clear(std::byte* piece, uint64_t bytes) {
  const auto offset = static_cast<uint64_t>(piece - job.heap.base);
  if (offset < heap.touched_end) {
    std::memset(piece, 0, std::min(bytes, heap.touched_end - offset));
  }
}

void NoteTouched(const std::byte* piece, uint64_t bytes) {
  const auto end = static_cast<uint64_t>(piece - job.heap.base) + bytes;
  heap.touched_end = std::max(heap.touched_end, end);
}

uint64_t OffsetOf(const void* pointer) {
  return pointer == nullptr
             ? ~uint64_t{0}
             : static_cast<uint64_t>(static_cast<const std::byte*>(pointer) - job.heap.base);
}

// What the checking mode knows of the heap.
void NoteGiven(const char* call, const std::byte* piece, uint64_t bytes) {
  if (job.is_checking) {
    NotePiece(call, OffsetOf(piece), bytes);
  }
}
void NoteReturned(const char* call, const void* piece) {
  if (job.is_checking) {
    NoteFreed(call, OffsetOf(piece));
  }
}

// What was given out there; else the program ends.
uint64_t CheckPiece(const char* call, const void* pointer) {
  std::lock_guard lock(heap.mutex);
  const uint64_t size_bytes =
      job.heap.Contains(pointer, 1) ? heap.pieces.SizeOf(OffsetOf(pointer)) : 0;
  if (size_bytes == 0) {
    Fail(call, AddressText(pointer) +
                   (job.heap.Contains(pointer, 1)
                        ? " is where no memory begins that shmem_malloc has returned: was it freed "
                          "before?"
                        : " is not in the symmetric heap"));
  }
  return size_bytes;
}

void Give(const void* pointer) {
  std::lock_guard lock(heap.mutex);
  heap.used_bytes -= heap.pieces.Free(OffsetOf(pointer));
}

}  // namespace

void OpenHeap() {
  std::lock_guard lock(heap.mutex);
  heap.pieces = OffsetAllocator(job.heap.size_bytes);
  heap.used_bytes = 0;
  heap.touched_end = 0;
  ForgetPieces();
}

void* Malloc(const char* call, size_t bytes, size_t alignment, bool zero, long hints) {
  CheckRunning(call);
  if ((alignment & (alignment - 1)) != 0 || alignment > job.heap.size_bytes) {
    Fail(call, "the alignment " + std::to_string(alignment) +
                   " is no power of two, or larger than the heap");
  }
  (void)hints;  // all of the heap is good for atomics and signals
  if (bytes == 0) {
    return nullptr;
  }
  const uint64_t wanted = std::max(alignment, kSmallestAlignment);
  std::byte* const piece = Take(call, bytes, wanted);
  if (piece != nullptr) {
    if (zero) {
      Clear(piece, bytes);
    }
    NoteTouched(piece, bytes);
    NoteGiven(call, piece, bytes);
  }
  MeetAndCompare(call, {MemoryCall::kMalloc, bytes, wanted, OffsetOf(piece)});
  return piece;
}

void Free(const char* call, void* pointer) {
  CheckRunning(call);
  if (pointer == nullptr) {
    return;
  }
  (void)CheckPiece(call, pointer);
  MeetAndCompare(call, {MemoryCall::kFree, 0, 0, OffsetOf(pointer)});
  NoteReturned(call, pointer);
  Give(pointer);
}

void* Realloc(const char* call, void* pointer, size_t bytes) {
  CheckRunning(call);
  if (pointer == nullptr) {
    return Malloc(call, bytes, 0, false, 0);
  }
  if (bytes == 0) {
    Free(call, pointer);
    return nullptr;
  }
  const uint64_t old_bytes = CheckPiece(call, pointer);
  MeetAndCompare(call, {MemoryCall::kRealloc, bytes, 0, OffsetOf(pointer)});
  if (bytes <= old_bytes) {
    NoteGiven(call, static_cast<std::byte*>(pointer), bytes);
    return pointer;
  }
  std::byte* const piece = Take(call, bytes, kSmallestAlignment);
  if (piece == nullptr) {
    return nullptr;  // the old memory stays
  }
  std::memcpy(piece, pointer, old_bytes);
  NoteTouched(piece, bytes);
  NoteGiven(call, piece, bytes);
  WorldTeam()->assembly->Sync(call);
  NoteReturned(call, pointer);
  Give(pointer);
  return piece;
}

void GetHeapInfo(const char* call, HeapInfo* info) {
  CheckRunning(call);
  std::lock_guard lock(heap.mutex);
  *info = {.reserved_bytes = job.heap.size_bytes,
           .size_bytes = heap.touched_end,
           .used_bytes = heap.used_bytes,
           .largest_free_bytes = heap.pieces.LargestFreeBytes()};
}

}  // namespace ferry::shmem

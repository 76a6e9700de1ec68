// The symmetric heaps (OpenSHMEM 1.5, section 9.3). See operations.h and heap.h.
//
// Each PE has allocators of its own, outside the heaps. All of them get the same calls in the same
// order, so they return the same offsets; that this holds is compared at each call, in the exchange
// that the standard's barrier is made of.
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "client/memory/offset_allocator.h"
#include "shmem/base/copies.h"
#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/operations.h"
#include "shmem/base/pieces.h"
#include "shmem/heap/heap.h"
#include "shmem/rma/call_comparison.h"
#include "shmem/rma/team.h"

namespace ferry::shmem {
namespace {

using client::OffsetAllocator;

constexpr size_t kSmallestAlignment = 16;
constexpr uint64_t kNowhere = ~uint64_t{0};

struct Heap {
  OffsetAllocator pieces;
  uint64_t alignment = 0;  // of its beginning
  uint64_t used_bytes = 0;
  uint64_t touched_end = 0;  // beyond, nothing was ever given out: all is zero
};
struct Heaps {
  std::mutex mutex;
  std::array<Heap, 1 + kMostSpaces> all;
};
Heaps& heaps = *new Heaps();

Heap& HeapOf(int heap) { return heaps.all[static_cast<size_t>(heap)]; }

// Where it lies. Of a space it is there for as long as that is.
const Segment& SegmentOf(int heap) {
  return heap == 0 ? job.heap
                   : *job.spaces[static_cast<size_t>(heap - 1)].load(std::memory_order_acquire);
}

// Some of a heap's memory, of this PE.
struct Block {
  int heap;
  uint64_t offset;  // kNowhere: it is null

  const Segment& segment() const { return SegmentOf(heap); }
  std::byte* address() const { return offset == kNowhere ? nullptr : segment().base + offset; }
};

// The arguments that a PE passes to a collective call about memory, for all PEs to compare.
struct MemoryCall {
  enum Kind : uint64_t { kMalloc, kRealloc, kFree };
  uint64_t kind;
  uint64_t heap;
  uint64_t bytes;
  uint64_t alignment;
  uint64_t offset;  // of what is to be freed, or was found

  bool operator==(const MemoryCall&) const = default;
  std::string Text() const {
    std::string text = kind == kMalloc    ? std::to_string(bytes) + " bytes"
                       : kind == kRealloc ? std::to_string(bytes) + " bytes in place of those"
                                          : std::string("to free what lies");
    if (kind == kMalloc && alignment > kSmallestAlignment) {
      text += " aligned to " + std::to_string(alignment);
    } else if (kind != kMalloc) {
      text += offset == kNowhere ? " at null" : " at offset " + std::to_string(offset);
    }
    return heap == 0 ? text : text + " of " + HeapName(static_cast<int>(heap));
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

MemoryCall CallOf(MemoryCall::Kind kind, const Block& piece, uint64_t bytes, uint64_t alignment) {
  return {kind, static_cast<uint64_t>(piece.heap), bytes, alignment, piece.offset};
}

void WarnOfExhaustion(const char* call, int heap, uint64_t bytes) {
  const Heap& its = HeapOf(heap);
  Warn(call, std::to_string(bytes) + " bytes asked for, " + std::to_string(its.used_bytes) +
                 " of " + HeapName(heap) + "'s " + std::to_string(SegmentOf(heap).size_bytes) +
                 " are in use, and the largest free piece has " +
                 std::to_string(its.pieces.LargestFreeBytes()) + ": " +
                 (heap == 0 ? "raise SHMEM_SYMMETRIC_SIZE" : "make a larger space") +
                 ", or free memory");
}

// Takes a piece of the heap; its offset is kNowhere if there is none.
Block Take(const char* call, int heap, uint64_t bytes, uint64_t alignment) {
  std::lock_guard lock(heaps.mutex);
  Heap& its = HeapOf(heap);
  const uint64_t offset = its.pieces.Allocate(bytes, alignment);
  if (offset == OffsetAllocator::kNone) {
    WarnOfExhaustion(call, heap, bytes);
    return {heap, kNowhere};
  }
  its.used_bytes += its.pieces.SizeOf(offset);
  return {heap, offset};
}

// Makes a new piece zero; memory beyond touched_end was never given out, and is zero already.
void Clear(const char* call, const Block& piece, uint64_t bytes) {
  const uint64_t touched_end = HeapOf(piece.heap).touched_end;
  if (piece.offset >= touched_end) {
    return;
  }
  const uint64_t dirty_bytes = std::min(bytes, touched_end - piece.offset);
  if (piece.segment().is_by_stream) {
    ClearByStream(call, piece.address(), dirty_bytes);
  } else {
    std::memset(piece.address(), 0, dirty_bytes);
  }
}

// Notes that the program has the piece from now on, also for the checking mode.
void NoteGiven(const char* call, const Block& piece, uint64_t bytes) {
  Heap& its = HeapOf(piece.heap);
  its.touched_end = std::max(its.touched_end, piece.offset + bytes);
  if (job.is_checking) {
    NotePiece(call, piece.heap, piece.offset, bytes);
  }
}

// Returns the piece that was given out at `pointer`, and its size; else ends the program.
Block FindBlock(const char* call, const void* pointer, uint64_t* size_bytes) {
  const Segment* const segment = job.FindSegment(pointer, 1);
  if (segment == nullptr || !segment->is_heap()) {
    Fail(call, AddressText(pointer) + " is not in the symmetric heap" +
                   (segment == nullptr ? "" : ", but in " + segment->name));
  }
  if (segment->is_programs) {
    Fail(call, AddressText(pointer) + " lies in " + segment->name +
                   ", of which only the program itself gives memory out, and takes it back");
  }
  std::lock_guard lock(heaps.mutex);
  const Block piece{segment->heap,
                    static_cast<uint64_t>(static_cast<const std::byte*>(pointer) - segment->base)};
  *size_bytes = HeapOf(piece.heap).pieces.SizeOf(piece.offset);
  if (*size_bytes == 0) {
    Fail(call, AddressText(pointer) + " is where no memory begins that " +
                   (piece.heap == 0 ? "shmem_malloc" : "shmemx_space_malloc") +
                   " has returned: was it freed before?");
  }
  return piece;
}

void Give(const char* call, const Block& piece) {
  if (job.is_checking) {
    NoteFreed(call, piece.heap, piece.offset);
  }
  std::lock_guard lock(heaps.mutex);
  HeapOf(piece.heap).used_bytes -= HeapOf(piece.heap).pieces.Free(piece.offset);
}

// Returns true if addresses are aligned where offsets are, on all PEs. Warns if not.
bool CanAlign(const char* call, int heap, size_t alignment) {
  if ((alignment & (alignment - 1)) != 0) {
    Fail(call, "the alignment " + std::to_string(alignment) + " is no power of two");
  }
  if (alignment > HeapOf(heap).alignment) {
    Warn(call, "the alignment " + std::to_string(alignment) + " is more than that of " +
                   HeapName(heap) + " itself, which is " + std::to_string(HeapOf(heap).alignment) +
                   ": the address is null");
    return false;
  }
  return true;
}

}  // namespace

void OpenHeap(int heap, uint64_t alignment) {
  std::lock_guard lock(heaps.mutex);
  HeapOf(heap) = {.pieces = OffsetAllocator(SegmentOf(heap).size_bytes), .alignment = alignment};
  ForgetPieces(heap);
}

void* MallocIn(const char* call, int heap, size_t bytes, size_t alignment, bool zero) {
  if (bytes == 0) {
    return nullptr;
  }
  const uint64_t wanted = std::max(alignment, kSmallestAlignment);
  const Block piece =
      CanAlign(call, heap, wanted) ? Take(call, heap, bytes, wanted) : Block{heap, kNowhere};
  if (piece.offset != kNowhere) {
    if (zero) {
      Clear(call, piece, bytes);
    }
    NoteGiven(call, piece, bytes);
  }
  MeetAndCompare(call, CallOf(MemoryCall::kMalloc, piece, bytes, wanted));
  return piece.address();
}

void* Malloc(const char* call, size_t bytes, size_t alignment, bool zero, long hints) {
  CheckRunning(call);
  (void)hints;  // all of the heap is good for atomics and signals
  return MallocIn(call, 0, bytes, alignment, zero);
}

void Free(const char* call, void* pointer) {
  CheckRunning(call);
  if (pointer == nullptr) {
    return;
  }
  uint64_t size_bytes = 0;
  const Block piece = FindBlock(call, pointer, &size_bytes);
  MeetAndCompare(call, CallOf(MemoryCall::kFree, piece, 0, 0));
  Give(call, piece);
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
  uint64_t old_bytes = 0;
  const Block old = FindBlock(call, pointer, &old_bytes);
  MeetAndCompare(call, CallOf(MemoryCall::kRealloc, old, bytes, 0));
  if (bytes <= old_bytes) {
    NoteGiven(call, old, bytes);
    return pointer;
  }
  const Block piece = Take(call, old.heap, bytes, kSmallestAlignment);
  if (piece.offset == kNowhere) {
    return nullptr;  // the old memory stays
  }
  CopyAnyhow(call, piece.address(), pointer, old_bytes, piece.segment().is_by_stream);
  NoteGiven(call, piece, bytes);
  WorldTeam()->assembly->Sync(call);
  Give(call, old);
  return piece.address();
}

void GetHeapInfoOf(int heap, HeapInfo* info) {
  std::lock_guard lock(heaps.mutex);
  const Heap& its = HeapOf(heap);
  const size_t reserved_bytes = SegmentOf(heap).size_bytes;
  // Devices' memory is there from the beginning.
  *info = {.reserved_bytes = reserved_bytes,
           .size_bytes = heap == 0 ? its.touched_end : reserved_bytes,
           .used_bytes = its.used_bytes,
           .largest_free_bytes = its.pieces.LargestFreeBytes()};
}

void GetHeapInfo(const char* call, HeapInfo* info) {
  CheckRunning(call);
  GetHeapInfoOf(0, info);
}

}  // namespace ferry::shmem

// The memory behind malloc: one memfd that grows, which other processes may map.
//
// A range of addresses is reserved once. The heap takes it from the bottom up: the file's length
// doubles (so that other processes, which map it anew each time, seldom have to), and the process
// maps it in steps, so that core dumps and mlockall do not touch what was never asked for. Ranges
// that the allocator gives back are punched out of the file, so they read as zero and take no
// memory.
//
// fork: the heap is no part of the child (MADV_DONTFORK), since a shared mapping would be the same
// memory in both. The child takes a copy when it first touches the heap, at the latest in its fork
// handler. The parent waits until the child has its copy. A child that makes no progress for long
// is taken to be stopped: then the parent goes on, and that child ends. The copy is private memory,
// so the child's own children get it as every process does. It is no snapshot of one moment: data
// that other threads write meanwhile may be half in it, as long as no lock is held across the fork.
//
// There is one Heap per process, in static storage: it is used before constructors run. It calls
// nothing that may allocate.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "client/malloc/free_ranges.h"
#include "client/malloc/heap_view.h"

namespace ferry::malloc_heap {

class Heap {
 public:
  constexpr Heap() = default;

  // Returns zeroed memory, aligned to 2 MiB if it is as large as that. Null: the heap has no room
  // for it. Any thread.
  void* Map(size_t size_bytes);
  // Gives back a range that Map returned, or whole pages of it.
  void Unmap(void* address, size_t size_bytes);
  // Makes these pages read as zero and take no memory until they are written. Any thread.
  void Clear(void* address, size_t size_bytes);
  // Returns true if this address belongs to the heap. Any thread, no lock.
  bool Contains(const void* address) const;

  int Look(HeapView* view);

 private:
  enum class State { kUntried, kShared, kPrivate, kNone };

  void Start();
  bool Reserve();
  bool MakeFile();
  bool Grow(uint64_t top);
  bool GrowFile(uint64_t top);
  void ClearLocked(uint64_t offset, uint64_t size_bytes);
  void* TakeLocked(uint64_t size_bytes, uint64_t alignment);

  // fork.c of the C library calls these.
  void BeforeFork();
  void AfterForkInParent();
  void AfterForkInChild();
  void CopyInChild();
  void CopyData(const std::byte* parents);
  void AwaitCopy();
  void EndFork();
  static void OnFault(int signal, siginfo_t* info, void* context);

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  State state_ = State::kUntried;
  std::byte* base_ = nullptr;  // stored once, before any caller has an address of the heap
  uint64_t reserved_bytes_ = 0;
  uint64_t file_bytes_ = 0;
  uint64_t mapped_bytes_ = 0;
  uint64_t top_ = 0;  // all that was ever handed out lies below
  int fd_ = -1;
  Refusal refusal_ = Refusal::kNone;
  int error_ = 0;
  FreeRanges free_;

  // Used during a fork: from BeforeFork to the handler after it.
  bool forking_ = false;
  pid_t parent_ = 0;
  int pipe_[2] = {-1, -1};  // its hang-up, or a byte: the child has its copy, or died
  // Words that parent and child share, beside the pipe. Null: no memory for them; then the parent
  // waits.
  struct CopyWords {
    uint32_t outcome;   // CopyOutcome
    uint32_t progress;  // grows while the child copies
  };
  CopyWords* words_ = nullptr;
  struct sigaction old_action_ = {};
  sigset_t old_mask_ = {};
};

extern constinit Heap heap;

}  // namespace ferry::malloc_heap

// HeapView: how libferry_malloc.so tells other libraries of its process where its memory lies, and
// in which file.
//
// The only symbol that it exports beside malloc and its kin is kHeapViewSymbol. A library looks it
// up (dlsym), and calls it again for an address beyond the heap's end as last told: the heap only
// grows, and never moves.
//
// Calling thread: any. The function takes the heap's lock, and blocks while another thread lets the
// heap grow.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::malloc_heap {

inline constexpr uint32_t kHeapViewVersion = 1;
inline constexpr char kHeapViewSymbol[] = "ferry_malloc_heap";

// Why the heap, or all that it hands out from now on, is private memory. Numbers are never reused.
enum class Refusal : uint32_t {
  kNone = 0,
  kAddressSpace = 1,  // no room in the address space (ulimit -v)
  kFile = 2,          // the kernel makes no memfd; `error` says why
  kFileSize = 3,      // the limit of a file's size (ulimit -f), or the kernel's: `error`
  kForked = 4,        // a child that was forked: its heap is a copy, its own
};

struct HeapView {
  uint32_t version;         // kHeapViewVersion of the caller, which is also that of the answer
  int32_t fd;               // the memfd, sealed against shrinking; -1: all of it is private
  std::byte* base;          // where the file begins in this process
  uint64_t reserved_bytes;  // the addresses from there that are the heap's, now or later
  uint64_t file_bytes;      // the file's length
  uint64_t mapped_bytes;    // how much of the file this process has mapped
  Refusal refusal;
  int32_t error;  // errno, or 0
};

// Fills in *view. Returns 0, or ENOTSUP if view->version is another one.
using HeapViewFunction = int (*)(HeapView* view);

}  // namespace ferry::malloc_heap

// The symmetric heaps: that in host memory (0), which begins and ends with the job, and those in
// memory of devices, by the number of their space (spaces.h). The program's calls on the first are
// in operations.h.
//
// Calling thread: as of the calls of memory; OpenHeap, that of shmem_init or of the space's making.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shmem/base/operations.h"

namespace ferry::shmem {

// Makes a heap of which all memory is free. Its segment is in `job`, it begins at a multiple of
// `alignment` on all PEs and wherever they map it, and all of its memory is zero.
void OpenHeap(int heap, uint64_t alignment);

// As Malloc and GetHeapInfo, in the heap of that number.
void* MallocIn(const char* call, int heap, size_t bytes, size_t alignment, bool zero);
void GetHeapInfoOf(int heap, HeapInfo* info);

}  // namespace ferry::shmem

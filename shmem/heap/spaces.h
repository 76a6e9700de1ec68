// Spaces: symmetric heaps in memory of devices. The program's calls on them are in operations.h.
//
// Each PE allocates its part from libferry, on a device of its choice, and maps those of the local
// PEs: several PEs may name one device, and a PE may have spaces on several. Like the heap in host
// memory, a space has a Segment (job.h) and an allocator (heap.h).
//
// Where CPUs reach the memory of all parts, a space is like that heap. Where not (GPUs), its bytes
// move by copies of the devices (copies.h), and it holds no words that CPUs change or wait for.
//
// A heap in memory of the program's own (shmemx_heap_create) is a space, too, but the program gives
// its memory out, not this library.
//
// Calling thread: that of shmem_init and shmem_finalize, unless it says otherwise. Nothing blocks
// but OpenProgramsHeap.
#pragma once

#include <cstddef>

namespace ferry::shmem {

// Returns how much memory shmemx_heap_create has named for the life that begins; 0: none.
size_t ProgramsHeapBytes();
// Makes a heap of that memory. All PEs have named as much. Blocks until all are here.
void OpenProgramsHeap(const char* call);
// Returns the number of spaces that the program has yet to destroy. Any thread.
size_t CountOpenSpaces();
// Unmaps the other PEs' parts. They may free them once they know that this PE has done so.
void UnmapSpaces();
// Frees this PE's own parts. After that there are no spaces.
void ForgetSpaces();

}  // namespace ferry::shmem

// Spaces: symmetric heaps in memory of devices. What programs do with them is in operations.h.
//
// Each PE allocates its part from libferry, on a device of its choice, and maps those of the local
// PEs: several PEs may name one device, and a PE may have spaces on several. What they have in
// common with the heap in host memory is a Segment (job.h) and an allocator (heap.h).
//
// Where CPUs reach the memory of all parts, a space is like that heap. Where not (GPUs), its bytes
// move by copies of the devices (copies.h), and it holds no words that CPUs change or wait for.
//
// A heap in memory of the program's own (shmemx_heap_create) is a space, too, but for who gives its
// memory out: not this library.
//
// Calling thread: that of shmem_init and shmem_finalize, unless it says otherwise. Nothing blocks
// but OpenProgramsHeap.
#pragma once

#include <cstddef>

namespace ferry::shmem {

// How much memory shmemx_heap_create has named for the life that begins; 0: none.
size_t ProgramsHeapBytes();
// Makes a heap of it. All PEs have named as much. Blocks until all are here.
void OpenProgramsHeap(const char* call);
// Of those that the program should destroy. Any thread.
size_t CountOpenSpaces();
// Lets go of the other PEs' parts. They may free them once they know that this PE has done so.
void UnmapSpaces();
// Frees the own parts. After that there are no spaces.
void ForgetSpaces();

}  // namespace ferry::shmem

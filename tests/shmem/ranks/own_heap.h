// Memory that a program of OpenSHMEM allocates by itself, for shmemx_heap_create.
#pragma once

#include <cstddef>

namespace ferry::own_heap {

// SHMEMX_EXTERNAL_HEAP_*: what the memory of this kind is.
int TypeOf(const char* kind);
// Begins what the memory is of. Between shmemx_heap_preinit and shmemx_heap_postinit.
void BeginMemory();
void* Take(const char* kind, size_t bytes);
void Give(const char* kind, void* memory, size_t bytes);
// Returns true if loads and stores of CPUs reach the memory.
bool IsForCpus(const char* kind);

}  // namespace ferry::own_heap

// The symmetric heap begins and ends with the job (memory.cc); what programs do with it is in
// operations.h.
#pragma once

namespace ferry::shmem {

// All of job.heap is free. Calling thread: that of shmem_init.
void OpenHeap();

}  // namespace ferry::shmem

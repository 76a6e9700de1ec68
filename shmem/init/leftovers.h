// In the checking mode (checks.h), shmem_finalize warns of objects that the program has not given
// back: pieces of the symmetric heaps, spaces, teams and contexts. PE 0 warns for all.
//
// Calling thread: that of shmem_finalize. Does not block.
#pragma once

namespace ferry::shmem {

void WarnOfLeftovers(const char* call);

}  // namespace ferry::shmem

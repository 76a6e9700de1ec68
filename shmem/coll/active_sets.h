// The assemblies of active sets: groups of PEs that the deprecated collectives name by start,
// stride and number, and that have not met before (OpenSHMEM 1.5, annex; pSync is not needed).
//
// If all are local, the first PE of a set makes its board at the first call, and publishes it in
// its place, where the others look. Boards stay until shmem_finalize: programs use few sets, again
// and again. Sets over several nodes need no board, only their number.
#pragma once

#include "shmem/base/assembly.h"

namespace ferry::shmem {

// Returns this PE's view of the set. Ends the program, with a sentence, if the set is invalid or
// this PE is not in it. Blocks while it waits for the first PE's board. Calling thread: any, one
// for each set.
Assembly& ActiveSet(const char* call, int start, int stride, int count);

void ForgetActiveSets();

}  // namespace ferry::shmem

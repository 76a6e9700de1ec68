// Programs that wait in a loop of calls that only look, as MPI_Test, MPI_Iprobe and
// shmem_test do.
#pragma once

namespace ferry::shm {

// Called by such a call after it has found nothing. Where ranks share a core, the loop would keep
// it from the rank for which it waits until the time slice is over, which takes milliseconds: so
// one look in vain in many yields the core, and one in a few once others have run meanwhile. Any
// thread.
void NoteVainLook();

}  // namespace ferry::shm

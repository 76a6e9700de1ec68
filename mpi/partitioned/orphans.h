// Orphans: sides of partitioned messages that the program has freed, but that the other side may
// still use (side.h).
//
// Calling thread: any. Nothing blocks.
#pragma once

namespace ferry::mpi {

class Side;

// Takes the side over, and frees it later.
void AddOrphan(Side* side);
// Frees the orphans that the other side does not use any more.
void EndOrphans();
// Frees all orphans. Called by one thread, at the end of MPI.
void DropOrphans();

}  // namespace ferry::mpi

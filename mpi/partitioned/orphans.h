// Sides of partitioned messages that the program has freed, until the other side has let go of
// them, too (side.h).
//
// Calling thread: any. Nothing blocks.
#pragma once

namespace ferry::mpi {

class Side;

// Takes it over.
void AddOrphan(Side* side);
// Ends those that nobody counts on any more.
void EndOrphans();
// At the end of MPI, for one thread: ends all of them.
void DropOrphans();

}  // namespace ferry::mpi

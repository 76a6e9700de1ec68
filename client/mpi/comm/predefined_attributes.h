// The attributes that every communicator has (MPI 5.0, section 9.1.2). The standard asks for them
// on MPI_COMM_WORLD; libraries that are handed a duplicate look for them there.
//
// Calling thread: any, between MPI_Init and MPI_Finalize. Does not block.
#pragma once

#include "client/mpi/comm/comm.h"

namespace ferry::mpi {

// Whether it is one of communicators or of windows.
bool IsPredefinedAttribute(int keyval);
// *value points to an int that stays where it is. False: it is not set (MPI_APPNUM, in a process
// that no launcher started), or windows have it. MPI_WTIME_IS_GLOBAL is true where all processes of
// the communicator are of one node, which has one clock.
bool PredefinedAttribute(const Comm& comm, int keyval, void** value);

}  // namespace ferry::mpi

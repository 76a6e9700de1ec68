// Compares collective calls on files before they are carried out (option mpi_check): ranks that
// make different calls on a file fail at once, in the same words, in place of taking part in each
// other's. The values that calls pass are compared with or without the option, by the calls
// themselves.
//
// Calling thread: that of the call. Blocks, with the option, until all ranks of the file have come.
#pragma once

#include "mpi/base/failure.h"
#include "mpi/io/file.h"
#include "mpi/io/meeting.h"

namespace ferry::mpi {

// MPI_ERR_OTHER: the file's ranks have not all made this call, and it has done nothing;
// MPI_ERR_PROC_ABORTED.
Failure CheckSameCall(const char* call, File& file);
// As that, in the background, too.
Failure CheckSameCall(Meeting& meeting, const char* call, File& file);

// With the option, names the files on standard error that the program has left open: MPI 5.0,
// section 14.2.2, wants them closed before MPI_Finalize.
void NameOpenFiles();

}  // namespace ferry::mpi

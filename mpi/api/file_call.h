// One call on a file, beside Call: finds the file, whose error handler the call then fails by (MPI
// 5.0, section 14.7).
//
// Calling thread: the program's.
#pragma once

#include <mpi.h>

#include "mpi/api/call.h"
#include "mpi/io/file.h"

namespace ferry::mpi {

// From then on the call fails by the error handler of MPI_FILE_NULL.
inline void BlameNoFile(Call& call) { call.Blame(NullFileHandler(), MPI_FILE_NULL); }

// Returns the file of a handle; null after a failure. From then on the call fails by the file's
// error handler.
inline File* FindFile(Call& call, MPI_File handle) {
  File* const file = files.Find(handle);
  call.NeedRunning();
  if (file == nullptr) {
    BlameNoFile(call);
    call.Refuse(MPI_ERR_FILE, handle == MPI_FILE_NULL ? std::string("the file is MPI_FILE_NULL")
                                                      : NoSuchHandle("MPI_File", handle));
    return nullptr;
  }
  call.Blame(file->error_handler(), handle);
  return call.ok() ? file : nullptr;
}

// Refuses a call that a file of MPI_MODE_SEQUENTIAL does not have: it has the shared pointer alone.
Failure CheckNotSequential(const File& file);
// Refuses a collective call between the begin and the end of a split one.
Failure CheckNoSplit(File& file);

}  // namespace ferry::mpi

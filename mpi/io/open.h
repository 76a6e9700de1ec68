// Opens, closes and removes files, and changes what all their ranks share: sizes, the view, what is
// written back (MPI 5.0, sections 14.2 and 14.3, 14.6).
//
// All of it but DeleteFile is collective: a rank whose arguments are wrong, or whose system
// refuses, tells the others, so that the call fails on all of them. Calling thread: any, one at a
// time for one communicator or file. Blocks. `call`: the function of MPI.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "mpi/base/failure.h"
#include "mpi/base/object.h"
#include "mpi/comm/comm.h"
#include "mpi/info/info.h"
#include "mpi/io/file.h"

namespace ferry::mpi {

struct OpenWish {
  std::string name;
  int amode = 0;
  const Info* info = nullptr;  // may be null
  // Why the caller's arguments are wrong, if they are.
  Failure refused;
};

// The file has a handle, to which the caller gives its reference. A file that this call has made is
// removed if any rank cannot open it.
Result<Ref<File>> OpenFile(const char* call, const Comm& comm, const OpenWish& wish);
// `refused`: why this rank cannot close the file; then it stays open on all ranks, and *is_closed
// false. It is gone afterwards otherwise, whatever the call returns. MPI_MODE_DELETE_ON_CLOSE
// removes the name.
Failure CloseFile(const char* call, File& file, const Failure& refused, bool* is_closed);
// Local. MPI_ERR_NO_SUCH_FILE.
Failure DeleteFile(const std::string& name);

// `refused`: why the caller's arguments are wrong, or success.
Failure SetFileSize(const char* call, File& file, int64_t bytes, const Failure& refused);
Failure PreallocateFile(const char* call, File& file, int64_t bytes, const Failure& refused);
Failure SyncFile(const char* call, File& file);
Failure SetFileAtomicity(const char* call, File& file, bool is_atomic, const Failure& refused);

// `view`: a new one, or why there is none. The own and the shared pointer are 0 afterwards.
Failure SetFileView(const char* call, File& file, Result<std::shared_ptr<const View>> view);

// Returns the value of MPI_DISPLACEMENT_CURRENT: the byte of the file at which the shared pointer
// stands.
Result<int64_t> CurrentDisplacement(const char* call, File& file);

// Sets the shared pointer. All ranks must give the same values.
Failure SeekShared(const char* call, File& file, int64_t offset, int whence,
                   const Failure& refused);

// The offset that `offset` and `whence` of a seek stand for; `current`: the pointer. MPI_ERR_ARG:
// it would be negative. Local.
Result<int64_t> OffsetOf(File& file, int64_t offset, int whence, int64_t current);

// The name from the root on. A process without a directory keeps the name that it has.
std::string AbsoluteName(const std::string& name);
// The name without a file system's name in front, as ROMIO has it ("ufs:", "lustre:").
std::string WithoutPrefix(const std::string& name);

}  // namespace ferry::mpi

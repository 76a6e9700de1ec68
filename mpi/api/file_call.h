// One call on a file, beside Call: finds the file, whose error handler the call then fails by (MPI
// 5.0, section 14.7).
//
// Calling thread: the program's.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <utility>

#include "mpi/api/call.h"
#include "mpi/base/connection.h"
#include "mpi/comm/call_notes.h"
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

// The file of a FileCall. A base of that, so that it is there to the call's end.
class FileUseHolder {
 protected:
  FileUse use_;
  std::string kept_name_;
};

// A call that may wait for the system, or for the other ranks of a file: it is shown from the time
// on at which its file is known.
class FileCall : private FileUseHolder, public Call {
 public:
  // `name`: as Call's.
  // NOLINTNEXTLINE: implicit, as Call's
  FileCall(const char* name) : Call(name) {}

  // `file`: the call's; it stays open at least until the call ends.
  void Use(const File& file) { Show(file.absolute_name().c_str()); }
  // As Use, for a call on a file that is not open before it, or no longer after it.
  void UseByName(std::string name) {
    kept_name_ = std::move(name);
    Show(kept_name_.c_str());
  }
  // Notes what it is to move, before Use: `bytes` of memory, from byte `offset` of the file on,
  // which is -1 where it is not known.
  void Plan(int64_t offset, int64_t bytes) {
    use_.offset = offset;
    use_.bytes = bytes;
  }
  // So many bytes have been moved.
  void NoteMoved(int64_t bytes) { use_.bytes = bytes; }

 private:
  void Show(const char* name) {
    use_.name = name;
    NoteFile(use_);
    if (ok() && front_end != nullptr) {
      front_end->calls->NoteWait();
    }
  }
};

// Refuses a call that a file of MPI_MODE_SEQUENTIAL does not have: it has the shared pointer alone.
Failure CheckNotSequential(const File& file);
// Refuses a collective call between the begin and the end of a split one.
Failure CheckNoSplit(File& file);

}  // namespace ferry::mpi

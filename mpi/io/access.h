// Reads and writes of one process: between its memory, of any datatype, and the data of its view
// (MPI 5.0, section 14.4.2).
//
// A write stores the bytes of the view and no other: what lies between them may be written by
// others at that moment. A read may read over small gaps and leave them out.
//
// Units: bytes of the view's data (positions; see view.h). Calling thread: any. Blocks. Memory that
// only streams reach goes through host memory.
#pragma once

#include <cstdint>
#include <memory>

#include "mpi/base/failure.h"
#include "mpi/io/file.h"
#include "mpi/io/hints.h"
#include "mpi/io/posix_file.h"
#include "mpi/io/representation.h"
#include "mpi/io/view.h"
#include "mpi/p2p/payload.h"

namespace ferry::mpi {

// The bytes that one call moves, once its arguments are understood.
struct Access {
  std::shared_ptr<const View> view;
  int64_t position = 0;  // of the first byte
  Payload payload;       // the program's memory
  bool is_write = false;
  int64_t file_bytes = 0;  // of the data in the file
  Conversion conversion;   // where converts()

  int64_t bytes() const { return file_bytes; }
  // Returns true if the data in memory are others than in the file.
  bool converts() const { return view->converts(); }
};

// How the file is accessed.
struct AccessWays {
  int64_t buffer_bytes = 0;  // of working memory, where data have to be copied
  int64_t gap_bytes = 0;     // reads may read over gaps of up to so many
};
AccessWays WaysOf(const Hints& hints, bool is_write, bool is_local);

// Moves the bytes, which must be as they are in the file. *moved: how many of them, from the first
// on; a read ends at the end of the file.
// Where it fails, *moved bytes were moved before, and perhaps some more were written.
// MPI_ERR_NO_MEM.
Failure Carry(const PosixFile& file, const AccessWays& ways, const Access& access, int64_t* moved);

// Moves the bytes at the place where the file stands: for files without offsets.
Failure CarryNext(const PosixFile& file, const AccessWays& ways, const Access& access,
                  int64_t* moved);

// Moves the bytes in the way that the file's mode asks for: by one of the above, in atomic mode
// under a lock.
Failure CarryIn(File& file, const Access& access, int64_t* moved);

// ---- Packed host memory, for this folder --------------------------------------------------------

// Moves `bytes` of the view's data from `position` on between the file and packed host memory.
Failure CarryPacked(const PosixFile& file, const AccessWays& ways, const View& view,
                    int64_t position, std::byte* packed, int64_t bytes, bool is_write,
                    int64_t* moved);

}  // namespace ferry::mpi

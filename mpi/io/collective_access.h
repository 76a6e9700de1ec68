// Collective reads and writes (MPI 5.0, sections 14.4.2 to 14.4.5): all ranks of a file call
// together, and the call fails on all of them if it does on one. Where the views of all ranks have
// long pieces only, the ranks have nothing to do for each other: then no rank waits for others,
// which costs more than a short access itself, and a call fails on the ranks that the system has
// refused it.
//
// Calling thread: that of the call, one at a time for one file. Blocks until all ranks have come,
// unless it says otherwise. `call`: the function of MPI, for messages.
#pragma once

#include <cstdint>
#include <memory>

#include "mpi/base/failure.h"
#include "mpi/io/access.h"
#include "mpi/io/file.h"
#include "mpi/io/meeting.h"

namespace ferry::mpi {

// One rank's part of a collective access. A rank that was refused (its arguments are wrong) takes
// part all the same, and moves nothing.
struct CollectivePart {
  Access access;
  Failure refused;
  // The file's view and hints when the call was made.
  std::shared_ptr<const View> view;
  std::shared_ptr<const Hints> hints;
  // Converted by a function of the program's, and moved, by the calling thread: how that went.
  bool is_carried = false;
  Failure carried;
};

// Moves the parts of all ranks. *moved: the bytes of this rank's own part, as Carry says.
Failure CarryTogether(const char* call, File& file, const CollectivePart& part, int64_t* moved);

// As that, for calls of either kind: with `meeting` in the background it suspends in place of
// blocking. *moved stays as it is where the part is carried.
Failure CarryTogether(Meeting& meeting, File& file, const CollectivePart& part, int64_t* moved);

// As CarryTogether, at the shared pointer and in the order of ranks; sets the parts' positions.
Failure CarryInOrder(const char* call, File& file, CollectivePart* part, int64_t* moved);

}  // namespace ferry::mpi

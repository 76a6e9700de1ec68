// Small collective operations in which the members of a communicator agree: on the number of a new
// one, on its members.
//
// A tree of log2(n) rounds, the same for all of them. Blocking; called by one thread of each
// member, in the same order by all. The parts of a Team must outlive the call.
//
// **No member is left waiting.** A member that meets a failure, of a message or of its own, goes
// through the rest of the operation with it: its messages carry the failure in place of data, and
// those that get them return it, too. Where a member is gone, only those below it in the tree may
// fail while others succeed; and since the tree is always the same, no others wait for them in what
// follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/base/failure.h"

namespace ferry::mpi {

// Blocking messages between members, which arrive in the order in which they were sent. Receive
// fails (MPI_ERR_INTERN) if the message has another size: then members have called different
// functions.
class Line {
 public:
  virtual ~Line() = default;
  virtual Failure Send(int rank, const void* data, size_t size_bytes) = 0;
  virtual Failure Receive(int rank, void* data, size_t size_bytes) = 0;
};

// The caller's place among the processes that agree.
struct Team {
  Line* line;
  int rank;
  int size;
};

// Sends rank 0's data to all, or why it has none: `met`, which rank 0 and all others then return. A
// member of which only others learn that it is gone is no failure of those that send to it.
Failure Broadcast(const Team& team, void* data, size_t size_bytes, Failure met = {});
// Sends `size_bytes` of each member to rank 0, in order of ranks; `all` has room for all of them
// there, and may be null elsewhere. If a member is gone or has `met` a failure, rank 0 fails.
Failure Gather(const Team& team, const void* data, size_t size_bytes, void* all, Failure met = {});
// Gathers as Gather does, and sends the result to all members. `all` has room for all of them
// everywhere. If a member is gone, all fail.
Failure GatherToAll(const Team& team, const void* data, size_t size_bytes, void* all);
// Gathers to all members data whose size each member chooses. The data come one after the other in
// order of ranks; the reader must be able to tell them apart. If a member is gone, all fail.
Failure JoinToAll(const Team& team, std::vector<char> data, std::vector<char>* all);
// Gathers to all members what they make of their data on the way: each calls `merge` with what the
// members of the next branch below it made, in order of ranks, and then `pack` for its own. If a
// member is gone, or one cannot merge, all fail.
Failure MergeToAll(const Team& team, const std::function<Failure(std::string_view below)>& merge,
                   const std::function<std::string()>& pack, std::string* all);
// Returns when all members have called it. If one is gone, all fail.
Failure Synchronise(const Team& team);
// Exchanges data with one other process, outside the tree: the one that is `lower` sends first. If
// either has `met` a failure, both return it.
Failure Exchange(Line* line, int rank, bool lower, const void* mine, size_t mine_bytes,
                 void* theirs, size_t theirs_bytes, Failure met = {});

// Returns the failure of a call after all ranks have told each other their error classes: `own` if
// `rank` has failed itself, else one of the class of the first rank that has, and success only if
// no rank has.
Failure FirstFailure(const std::vector<int32_t>& classes, int rank, const Failure& own);

}  // namespace ferry::mpi

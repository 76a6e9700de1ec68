// Small collective operations in which the members of a communicator agree: on the number of a new
// one, on its members.
//
// Trees of log2(n) rounds. Blocking; called by one thread of each member, in the same order by all.
// The parts of a Team must outlive the call.
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

// Sends rank 0's data to all.
Failure Broadcast(const Team& team, void* data, size_t size_bytes);
// Sends `size_bytes` of each member to rank 0, in order of ranks; `all` has room for all of them
// there, and may be null elsewhere.
Failure Gather(const Team& team, const void* data, size_t size_bytes, void* all);
// Gathers as Gather does, and sends the result to all members. `all` has room for all of them
// everywhere.
Failure GatherToAll(const Team& team, const void* data, size_t size_bytes, void* all);
// As Broadcast and GatherToAll, but members that are gone hold up none of the others: their data,
// and what would have come by way of them, are zeros. So whoever is left must take zeros for a no.
void BroadcastToThoseLeft(const Team& team, void* data, size_t size_bytes);
void GatherToThoseLeft(const Team& team, const void* data, size_t size_bytes, void* all);
// Gathers to all members data whose size each member chooses. The data come one after the other in
// order of ranks; the reader must be able to tell them apart.
Failure JoinToAll(const Team& team, std::vector<char> data, std::vector<char>* all);
// Gathers to all members what they make of their data on the way: each calls `merge` with what the
// members of the next branch below it made, in order of ranks, and then `pack` for its own.
Failure MergeToAll(const Team& team, const std::function<Failure(std::string_view below)>& merge,
                   const std::function<std::string()>& pack, std::string* all);
// Returns when all members have called it.
Failure Synchronise(const Team& team);

// Returns the failure of a call after all ranks have told each other their error classes: `own` if
// `rank` has failed itself, else one of the class of the first rank that has, and success only if
// no rank has.
Failure FirstFailure(const std::vector<int32_t>& classes, int rank, const Failure& own);

}  // namespace ferry::mpi

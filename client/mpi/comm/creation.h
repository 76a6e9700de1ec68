// How intracommunicators are made of others. MPI 5.0, section 7.4.2.
//
// The first member of a new communicator makes its number (context_ids.h), and a broadcast in a
// context of the parent's tells the others: one broadcast for dup, create and create_group, a
// gather before it for split.
//
// Collective over the parent, but for CreateGroup; block. Calling thread: any, one at a time for
// one parent (CreateGroup: for a parent and tag). A new communicator has no handle yet; it has the
// parent's error handler. A null reference stands for MPI_COMM_NULL.
#pragma once

#include "client/mpi/comm/comm.h"
#include "client/mpi/comm/context_ids.h"
#include "client/mpi/error/failure.h"
#include "client/mpi/group/rank_set.h"
#include "client/mpi/handle/object.h"

namespace ferry::mpi {

// The same group. Attributes, topology and info are for the caller to copy.
Result<Ref<Comm>> Duplicate(const Comm& parent);
// One communicator per color, ordered by key; none for MPI_UNDEFINED. MPI_ERR_ARG, everywhere, if a
// member's color is negative, but not MPI_UNDEFINED.
Result<Ref<Comm>> Split(const Comm& parent, int color, int key);
// The callers of one group get a communicator of it; groups are disjoint. A caller that is not in
// its own group gets none. MPI_ERR_GROUP if the group has processes that the parent has not.
Result<Ref<Comm>> Create(const Comm& parent, const RankSet& group);
// Collective over the group only. Groups that are made at the same time are told apart by the tag.
// MPI_ERR_GROUP as above.
Result<Ref<Comm>> CreateGroup(const Comm& parent, const RankSet& group, int tag,
                              Traffic traffic = Traffic::kGroupCreation);
// Returns when all members have called it.
Failure SynchroniseAll(const Comm& comm);

}  // namespace ferry::mpi

// How intercommunicators are made, and what is made of them. MPI 5.0, sections 7.4.2 and 7.6.
//
// Each side agrees within itself as an intracommunicator does, in the same contexts: no process is
// on both sides. The ranks 0, or leaders, exchange what the sides must know of each other. Numbers
// are made by the leader whose rank in the job is lower.
//
// Collective over both sides; block. Calling thread: any, one at a time for one communicator. A new
// communicator has no handle yet; it has the parent's error handler. A null reference stands for
// MPI_COMM_NULL.
#pragma once

#include "client/mpi/comm/comm.h"
#include "client/mpi/comm/context_ids.h"
#include "client/mpi/error/failure.h"
#include "client/mpi/group/rank_set.h"
#include "client/mpi/handle/object.h"

namespace ferry::mpi {

// The arguments of MPI_Intercomm_create, but for the local communicator. Those after the leader
// count at the leader only.
struct Bridge {
  int local_leader = 0;
  const Comm* peer = nullptr;
  int remote_leader = 0;
  int tag = 0;
  Traffic traffic = Traffic::kLeaders;
  // Set if the arguments are wrong: the leader tells its side instead of leaving it alone.
  Failure refused;
};

// The caller's side is `local`'s group. MPI_ERR_COMM if a process is on both sides.
Result<Ref<Comm>> CreateInter(const Comm& local, const Bridge& bridge);
// The same two groups. Attributes and info are for the caller to copy.
Result<Ref<Comm>> DuplicateInter(const Comm& inter);
// Those of both sides with the same color; a color that one side has alone makes none. Errors as in
// Split.
Result<Ref<Comm>> SplitInter(const Comm& inter, int color, int key);
// `group`, the same everywhere on a side, is what the new one has of it. MPI_ERR_GROUP if it has
// others.
Result<Ref<Comm>> CreateInter(const Comm& inter, const RankSet& group);
// Both groups in one. The side with `high` comes last; if both say the same, the one whose leader's
// rank in the job is lower comes first.
Result<Ref<Comm>> Merge(const Comm& inter, bool high);
// Returns when all processes of both sides have called it.
Failure SynchroniseInter(const Comm& inter);

}  // namespace ferry::mpi

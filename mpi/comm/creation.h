// Makes communicators out of others. MPI 5.0, sections 7.4.2 and 7.6.
//
// The first member of a new communicator makes its number (context_ids.h), and a broadcast in a
// context of the parent's tells the others: one broadcast for dup, create and create_group, a
// gather before it for split.
//
// Collective over the parent, but for CreateGroup; block. Calling thread: any, one at a time for
// one parent (CreateGroup: for a parent and tag). A new communicator has no handle yet; it has the
// parent's error handler. A null reference stands for MPI_COMM_NULL.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mpi/base/failure.h"
#include "mpi/base/object.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/context_ids.h"
#include "mpi/comm/rank_set.h"
#include "mpi/info/info.h"
#include "mpi/topology/topology.h"

namespace ferry::mpi {

// Makes a communicator of the parent's group. Attributes, topology and info are for the caller to
// copy.
Result<Ref<Comm>> Duplicate(const Comm& parent);
// Makes one communicator per color, ordered by key; none for MPI_UNDEFINED. MPI_ERR_ARG,
// everywhere, if a member's color is negative, but not MPI_UNDEFINED.
Result<Ref<Comm>> Split(const Comm& parent, int color, int key);
// Makes a communicator of the callers of each group; groups are disjoint. A caller that is not in
// its own group gets none. MPI_ERR_GROUP if the group has processes that the parent has not.
Result<Ref<Comm>> Create(const Comm& parent, const RankSet& group);
// Makes a communicator of the group; collective over the group only. Groups that are made at the
// same time are told apart by the tag. MPI_ERR_GROUP as for Create.
Result<Ref<Comm>> CreateGroup(const Comm& parent, const RankSet& group, int tag,
                              Traffic traffic = Traffic::kGroupCreation);
// Returns when all members have called it.
Failure SynchroniseAll(const Comm& comm);

// ---- Intercommunicators (MPI 5.0, section 7.6) --------------------------------------------------
//
// Each side agrees within itself as an intracommunicator does, in the same contexts: no process is
// on both sides. The ranks 0, or leaders, exchange what the sides must know of each other. The
// leader whose rank in the job is lower makes the numbers. Collective over both sides.

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

// Makes an intercommunicator; the caller's side is `local`'s group. MPI_ERR_COMM if a process is on
// both sides.
Result<Ref<Comm>> CreateInter(const Comm& local, const Bridge& bridge);
// Makes an intercommunicator of the same two groups. Attributes and info are for the caller to
// copy.
Result<Ref<Comm>> DuplicateInter(const Comm& inter);
// Makes an intercommunicator of the processes of both sides with one color; a color that one side
// has alone makes none. Errors as in Split.
Result<Ref<Comm>> SplitInter(const Comm& inter, int color, int key);
// Makes an intercommunicator in which `group`, alike everywhere on a side, is that side.
// MPI_ERR_GROUP if the group has processes that the side has not.
Result<Ref<Comm>> CreateInter(const Comm& inter, const RankSet& group);
// Makes an intracommunicator of both groups. The side with `high` comes last; if both say the same,
// the one whose leader's rank in the job is lower comes first.
Result<Ref<Comm>> Merge(const Comm& inter, bool high);
// Returns when all processes of both sides have called it.
Failure SynchroniseInter(const Comm& inter);

// ---- Of processes that are near each other (MPI_Comm_split_type) --------------------------------

bool HasSeveralNodes(const Comm& comm);
// Splits the communicator by type. MPI_COMM_TYPE_SHARED: the processes of a node, which share
// memory. MPI_COMM_TYPE_HW_GUIDED and MPI_COMM_TYPE_RESOURCE_GUIDED: the resource that the info key
// mpi_hw_resource_type names, of which Ferry knows mpi_shared_memory: a node, again; no
// communicator for others. MPI_COMM_TYPE_HW_UNGUIDED: a node where that is less than the parent
// has, and then `info`, which may be null, names it; else no communicator. MPI_UNDEFINED: none.
// MPI_ERR_ARG for any other type.
Result<Ref<Comm>> SplitByType(const Comm& parent, int split_type, int key, Info* info);

// ---- With a topology (MPI 5.0, section 8.5) -----------------------------------------------------
//
// Ranks keep their order unless a comment says otherwise.

// The grid's places, and the graph's nodes, are the first processes of the parent; `reorder`: in an
// order by which neighbours share nodes (cartesian.h).
Result<Ref<Comm>> CreateCartesian(const Comm& parent, Cartesian grid, bool reorder);
// Returns that order: by place, the rank in the parent. All processes compute the same order; does
// not block.
std::vector<int> OrderByNodes(const Comm& parent, const Cartesian& grid);
Result<Ref<Comm>> CreateGraph(const Comm& parent, Graph graph);
// Makes a communicator of the part of `parent`'s grid, `grid`, in which the caller is when the
// dimensions marked in `keep` are kept.
Result<Ref<Comm>> CutCartesian(const Comm& parent, const Cartesian& grid,
                               std::span<const int> keep);
// Makes one of all processes of the parent, each of which knows its neighbours. Returns when all
// have called it.
Result<Ref<Comm>> CreateAdjacent(const Comm& parent, Neighbourhood own);
// Makes one from edges, of which each process of the parent passes some.
Result<Ref<Comm>> CreateDistributed(const Comm& parent, const std::vector<GraphEdge>& edges,
                                    bool weighted);

// ---- Their numbers, as this process makes them and tells others of them -------------------------
//
// Does not block.

// Numbers as a message, which the process that made them sends to the other members.
struct NumberGrant {
  uint32_t first = 0;  // 0: there were none, so that all members fail alike
  uint32_t step = 0;

  uint32_t Number(int index) const { return first + static_cast<uint32_t>(index) * step; }
};

NumberGrant GrantNumbers(int count);
// MPI_ERR_INTERN for a grant of no numbers.
Failure Check(const NumberGrant& grant);

// This process' rank in the job.
int WorldRankOfSelf();

// Makes a communicator of that number in which the caller is; it has `parent`'s error handler, and
// belongs to its session.
Ref<Comm> MakeComm(const Comm& parent, uint32_t number, RankSet group);
Ref<Comm> MakeInterComm(const Comm& parent, uint32_t number, RankSet group, RankSet remote);

}  // namespace ferry::mpi

// The numbers of new communicators, as this process makes them and tells others of them.
//
// Calling thread: any, between MPI_Init and MPI_Finalize. Does not block.
#pragma once

#include <cstdint>

#include "client/mpi/base/failure.h"
#include "client/mpi/base/object.h"
#include "client/mpi/comm/comm.h"
#include "client/mpi/comm/context_ids.h"
#include "client/mpi/comm/rank_set.h"

namespace ferry::mpi {

// Numbers as a message: what the one who made them sends to the other members.
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

// A communicator of that number in which the caller is; it has `parent`'s error handler.
Ref<Comm> MakeComm(const Comm& parent, uint32_t number, RankSet group);
Ref<Comm> MakeInterComm(const Comm& parent, uint32_t number, RankSet group, RankSet remote);

}  // namespace ferry::mpi

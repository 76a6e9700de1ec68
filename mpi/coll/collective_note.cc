#include "mpi/coll/collective_note.h"

#include "mpi/comm/call_notes.h"

namespace ferry::mpi {

using collective::Collective;
using collective::Problem;

uint64_t PayloadBytes(const Problem& problem) {
  if (!problem.has_blocks) {
    return problem.block_bytes;
  }
  return collective::BytesOf(problem.send_blocks.empty() ? problem.receive_blocks
                                                         : problem.send_blocks);
}

void DescribeProblem(const Comm& comm, const Problem& problem, shm::CallDescription* description) {
  DescribeComm(comm, description);
  if (collective::HasRoot(problem.collective) && !problem.is_inter) {
    DescribePeer(comm, problem.root, description);
    description->flags |= shm::kCallPeerIsRoot;
  }
  if (problem.collective != Collective::kBarrier) {
    DescribeBytes(PayloadBytes(problem), description);
  }
}

void CollectiveNote::DescribeIt(const CallNote& note, shm::CallDescription* description) {
  const auto& call = static_cast<const CollectiveNote&>(note);
  DescribeProblem(call.comm, *call.problem, description);
  description->name = client::CallOf(call.function);
}

}  // namespace ferry::mpi

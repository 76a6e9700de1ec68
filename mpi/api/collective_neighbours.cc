// Collectives among neighbours: what their arguments mean (MPI 5.0, section 8.6).
#include <vector>

#include "mpi/api/collective_descriptions.h"
#include "mpi/topology/topology.h"

namespace ferry::mpi {
namespace {

using collective::Collective;
using collective::Problem;

// Begins the description of any of them.
Failure Describe(const Comm& comm, Collective collective, const void* sendbuf, const void* recvbuf,
                 Problem* problem) {
  problem->collective = collective;
  problem->has_blocks = true;
  Neighbours neighbours;
  FERRY_RETURN_FAILURE(FindNeighbours(comm, &neighbours));
  problem->sources = std::move(neighbours.sources);
  problem->destinations = std::move(neighbours.destinations);
  problem->is_cartesian = KindOf(*comm.topology()) == MPI_CART;
  FERRY_RETURN_FAILURE(CheckInPlace(false, sendbuf, "sendbuf"));
  return CheckInPlace(false, recvbuf, "recvbuf");
}

int CountOf(const std::vector<int>& ranks) { return static_cast<int>(ranks.size()); }

// Blocks for which there is no neighbour stay as they are, also where a copy stands in.
template <typename Data>
Failure BindReceived(const Data& receive, CollectiveOperation* operation) {
  const int sources = CountOf(operation->problem.sources);
  operation->output_read = PortionOf(receive, 0, sources);
  return BindBlocks(receive, sources, &operation->output, &operation->problem.receive_blocks);
}

}  // namespace

Failure FindNeighbours(const Comm& comm, Neighbours* neighbours) {
  if (comm.topology() == nullptr) [[unlikely]] {
    return {MPI_ERR_TOPOLOGY, "the communicator has no topology, hence no neighbours"};
  }
  *neighbours = NeighboursOf(*comm.topology(), comm.rank());
  return {};
}

template <typename Data>
Failure DescribeNeighbourAllgather(const Comm& comm, const Run& send, const Data& receive,
                                   CollectiveOperation* operation) {
  Problem& problem = operation->problem;
  FERRY_RETURN_FAILURE(
      Describe(comm, Collective::kNeighbourAllgather, send.buffer, receive.buffer, &problem));
  FERRY_RETURN_FAILURE(BindReceived(receive, operation));
  return problem.destinations.empty() ? Bind(send, 0, &operation->input, &problem.block_bytes)
                                      : BindOwnInput(send, operation, &problem.block_bytes);
}

template <typename Data>
Failure DescribeNeighbourAlltoall(const Comm& comm, const Data& send, const Data& receive,
                                  CollectiveOperation* operation) {
  Problem& problem = operation->problem;
  FERRY_RETURN_FAILURE(
      Describe(comm, Collective::kNeighbourAlltoall, send.buffer, receive.buffer, &problem));
  FERRY_RETURN_FAILURE(BindReceived(receive, operation));
  const int destinations = CountOf(problem.destinations);
  operation->input_read = PortionOf(send, 0, destinations);
  return BindBlocks(send, destinations, &operation->input, &problem.send_blocks);
}

// For other files of this folder.
template Failure DescribeNeighbourAllgather(const Comm&, const Run&, const Blocks&,
                                            CollectiveOperation*);
template Failure DescribeNeighbourAlltoall(const Comm&, const Blocks&, const Blocks&,
                                           CollectiveOperation*);

namespace {

template <typename Data>
int CallAllgather(const CollectiveCall& call, const Run& send, const Data& receive,
                  MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) {
    return DescribeNeighbourAllgather(comm, send, receive, &operation);
  });
}

template <typename Data>
int CallAlltoall(const CollectiveCall& call, const Data& send, const Data& receive,
                 MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) {
    return DescribeNeighbourAlltoall(comm, send, receive, &operation);
  });
}

}  // namespace

// ---- The functions ------------------------------------------------------------------------------

FERRY_COLLECTIVE(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, CallAllgather, FERRY_ALLGATHER,
                 FERRY_SENT_RUN, FERRY_RECEIVED_RUN, comm);
FERRY_COLLECTIVE(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, CallAllgather, FERRY_ALLGATHERV,
                 FERRY_SENT_RUN, FERRY_RECEIVED_BLOCKS(displs), comm);
FERRY_COLLECTIVE(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, CallAlltoall, FERRY_ALLGATHER,
                 FERRY_SENT_RUN, FERRY_RECEIVED_RUN, comm);
FERRY_COLLECTIVE(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, CallAlltoall, FERRY_ALLTOALLV,
                 FERRY_SENT_BLOCKS(sdispls), FERRY_RECEIVED_BLOCKS(rdispls), comm);

#define FERRY_NEIGHBOR_ALLTOALLW                                               \
  const void *sendbuf, const Count sendcounts[], const MPI_Aint sdispls[],     \
      const MPI_Datatype sendtypes[], void *recvbuf, const Count recvcounts[], \
      const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm
FERRY_COLLECTIVE(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, CallAlltoall,
                 FERRY_NEIGHBOR_ALLTOALLW, FERRY_SENT_TYPES, FERRY_RECEIVED_TYPES, comm);

}  // namespace ferry::mpi

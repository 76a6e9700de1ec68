// Collectives among neighbours: what their arguments mean (MPI 5.0, section 8.6).
#include <string>
#include <vector>

#include "client/mpi/api/collective_blocks.h"
#include "client/mpi/topology/topology.h"

namespace ferry::mpi {
namespace {

// Begins the description of any of them.
Failure Describe(const Comm& comm, Collective collective, const void* sendbuf, const void* recvbuf,
                 Problem* problem) {
  problem->collective = collective;
  problem->has_blocks = true;
  if (comm.topology() == nullptr) [[unlikely]] {
    return {MPI_ERR_TOPOLOGY, "the communicator has no topology, hence no neighbours"};
  }
  Neighbours neighbours = NeighboursOf(*comm.topology(), comm.rank());
  problem->sources = std::move(neighbours.sources);
  problem->destinations = std::move(neighbours.destinations);
  problem->is_cartesian = KindOf(*comm.topology()) == MPI_CART;
  FERRY_RETURN_FAILURE(CheckInPlace(false, sendbuf, "sendbuf"));
  return CheckInPlace(false, recvbuf, "recvbuf");
}

int64_t CountOf(const std::vector<int>& ranks) { return static_cast<int64_t>(ranks.size()); }

// Blocks for which there is no neighbour stay as they are, also where a copy stands in.
void ReadAllOfOutput(int64_t count, CollectiveOperation* operation) {
  operation->output_read = {0, count};
}

// Binds what all neighbours get.
Failure BindOwn(const Run& send, CollectiveOperation* operation, size_t* bytes) {
  operation->input_read = {0, send.count};
  return Bind(send, 1, &operation->input, bytes);
}

Failure BindReceived(const Run& receive, CollectiveOperation* operation) {
  const int64_t sources = CountOf(operation->problem.sources);
  size_t bytes = 0;
  FERRY_RETURN_FAILURE(Bind(receive, static_cast<int>(sources), &operation->output, &bytes));
  ReadAllOfOutput(sources * receive.count, operation);
  for (int64_t i = 0; i < sources; ++i) {
    operation->problem.receive_blocks.push_back({static_cast<size_t>(i) * bytes, bytes});
  }
  return {};
}

Failure BindReceived(const Blocks& receive, CollectiveOperation* operation) {
  Problem& problem = operation->problem;
  ReadAllOfOutput(CountOf(problem.sources), operation);
  return Bind(receive, static_cast<int>(CountOf(problem.sources)), &operation->output,
              &problem.receive_blocks);
}

int CallWithBlocks(const CollectiveCall& call, const Blocks& send, const Blocks& receive,
                   MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) -> Failure {
    Problem& problem = operation.problem;
    FERRY_RETURN_FAILURE(
        Describe(comm, Collective::kNeighbourAlltoall, send.buffer, receive.buffer, &problem));
    FERRY_RETURN_FAILURE(BindReceived(receive, &operation));
    operation.input_read = {0, CountOf(problem.destinations)};
    return Bind(send, static_cast<int>(CountOf(problem.destinations)), &operation.input,
                &problem.send_blocks);
  });
}

int CallNeighbor_allgather(const CollectiveCall& call, const void* sendbuf, int64_t sendcount,
                           MPI_Datatype sendtype, void* recvbuf, int64_t recvcount,
                           MPI_Datatype recvtype, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) -> Failure {
    Problem& problem = operation.problem;
    FERRY_RETURN_FAILURE(
        Describe(comm, Collective::kNeighbourAllgather, sendbuf, recvbuf, &problem));
    FERRY_RETURN_FAILURE(BindReceived(Run{recvbuf, recvcount, recvtype, "recvtype"}, &operation));
    return BindOwn({sendbuf, sendcount, sendtype, "sendtype"}, &operation, &problem.block_bytes);
  });
}

int CallNeighbor_allgatherv(const CollectiveCall& call, const void* sendbuf, int64_t sendcount,
                            MPI_Datatype sendtype, void* recvbuf, Numbers recvcounts,
                            Numbers displs, MPI_Datatype recvtype, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) -> Failure {
    Problem& problem = operation.problem;
    FERRY_RETURN_FAILURE(
        Describe(comm, Collective::kNeighbourAllgather, sendbuf, recvbuf, &problem));
    FERRY_RETURN_FAILURE(
        BindReceived(Blocks{recvbuf, recvcounts, displs, recvtype, nullptr, "recv"}, &operation));
    return BindOwn({sendbuf, sendcount, sendtype, "sendtype"}, &operation, &problem.block_bytes);
  });
}

int CallNeighbor_alltoall(const CollectiveCall& call, const void* sendbuf, int64_t sendcount,
                          MPI_Datatype sendtype, void* recvbuf, int64_t recvcount,
                          MPI_Datatype recvtype, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) -> Failure {
    Problem& problem = operation.problem;
    FERRY_RETURN_FAILURE(
        Describe(comm, Collective::kNeighbourAlltoall, sendbuf, recvbuf, &problem));
    FERRY_RETURN_FAILURE(BindReceived(Run{recvbuf, recvcount, recvtype, "recvtype"}, &operation));
    const int64_t count = CountOf(problem.destinations);
    size_t bytes = 0;
    FERRY_RETURN_FAILURE(Bind({sendbuf, sendcount, sendtype, "sendtype"}, static_cast<int>(count),
                              &operation.input, &bytes));
    operation.input_read = {0, count * sendcount};
    for (int64_t i = 0; i < count; ++i) {
      problem.send_blocks.push_back({static_cast<size_t>(i) * bytes, bytes});
    }
    return {};
  });
}

int CallNeighbor_alltoallv(const CollectiveCall& call, const void* sendbuf, Numbers sendcounts,
                           Numbers sdispls, MPI_Datatype sendtype, void* recvbuf,
                           Numbers recvcounts, Numbers rdispls, MPI_Datatype recvtype,
                           MPI_Comm comm) {
  return CallWithBlocks(call, {sendbuf, sendcounts, sdispls, sendtype, nullptr, "send"},
                        {recvbuf, recvcounts, rdispls, recvtype, nullptr, "recv"}, comm);
}

int CallNeighbor_alltoallw(const CollectiveCall& call, const void* sendbuf, Numbers sendcounts,
                           Numbers sdispls, const MPI_Datatype* sendtypes, void* recvbuf,
                           Numbers recvcounts, Numbers rdispls, const MPI_Datatype* recvtypes,
                           MPI_Comm comm) {
  return CallWithBlocks(call, {sendbuf, sendcounts, sdispls, MPI_DATATYPE_NULL, sendtypes, "send"},
                        {recvbuf, recvcounts, rdispls, MPI_DATATYPE_NULL, recvtypes, "recv"}, comm);
}

}  // namespace

// ---- The functions ------------------------------------------------------------------------------

FERRY_COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, FERRY_ALLGATHER, sendbuf, sendcount,
                 sendtype, recvbuf, recvcount, recvtype, comm);
FERRY_COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, FERRY_ALLGATHERV, sendbuf, sendcount,
                 sendtype, recvbuf, recvcounts, displs, recvtype, comm);
FERRY_COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, FERRY_ALLGATHER, sendbuf, sendcount,
                 sendtype, recvbuf, recvcount, recvtype, comm);
FERRY_COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, FERRY_ALLTOALLV, sendbuf, sendcounts,
                 sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);

#define FERRY_NEIGHBOR_ALLTOALLW                                               \
  const void *sendbuf, const Count sendcounts[], const MPI_Aint sdispls[],     \
      const MPI_Datatype sendtypes[], void *recvbuf, const Count recvcounts[], \
      const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm
FERRY_COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw, FERRY_NEIGHBOR_ALLTOALLW, sendbuf,
                 sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);

}  // namespace ferry::mpi

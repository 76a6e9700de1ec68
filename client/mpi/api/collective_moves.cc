// Collectives that only move data: what their arguments mean (MPI 5.0, sections 6.3 to 6.8).
#include <string>
#include <vector>

#include "client/mpi/api/collective_blocks.h"
#include "client/mpi/api/collective_inter.h"
#include "client/mpi/base/handle_table.h"

namespace ferry::mpi {
namespace {

// The blocks by rank of a gatherv or scatterv, at its root.
Failure CheckOwnBlock(const CollectiveOperation& operation, const std::vector<Block>& blocks,
                      int rank, size_t bytes) {
  return operation.problem.in_place ? Failure()
                                    : CheckOwn(bytes, blocks[static_cast<size_t>(rank)].size_bytes);
}

// ---- Barrier and broadcast ----------------------------------------------------------------------

int CallBarrier(const CollectiveCall& call, MPI_Comm handle) {
  return CarryOut(call, handle, [](Comm&, CollectiveOperation& operation) {
    operation.problem.collective = Collective::kBarrier;
    return Failure();
  });
}

int CallBcast(const CollectiveCall& call, void* buffer, int64_t count, MPI_Datatype datatype,
              int root, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) -> Failure {
    Problem& problem = operation.problem;
    problem.collective = Collective::kBcast;
    problem.root = root;
    if (comm.is_inter()) {
      return DescribeInterBcast(comm, {buffer, count, datatype, "datatype"}, root, &operation);
    }
    FERRY_RETURN_FAILURE(CheckRoot(comm, root));
    FERRY_RETURN_FAILURE(CheckInPlace(false, buffer, "buffer"));
    FERRY_RETURN_FAILURE(
        Bind({buffer, count, datatype, "datatype"}, 1, &operation.output, &problem.block_bytes));
    operation.delivers = comm.rank() != root;
    operation.output_read = {0, operation.delivers ? 0 : count};
    return {};
  });
}

// ---- Gather -------------------------------------------------------------------------------------

// Binds what a rank that is not the root, or not in place, puts into a gather.
Failure BindOwnInput(const Run& send, CollectiveOperation* operation, size_t* bytes) {
  operation->input_read = {0, send.count};
  return Bind(send, 1, &operation->input, bytes);
}

int CallGather(const CollectiveCall& call, const void* sendbuf, int64_t sendcount,
               MPI_Datatype sendtype, void* recvbuf, int64_t recvcount, MPI_Datatype recvtype,
               int root, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) -> Failure {
    Problem& problem = operation.problem;
    problem.collective = Collective::kGather;
    problem.root = root;
    const Run send{sendbuf, sendcount, sendtype, "sendtype"};
    if (comm.is_inter()) {
      return DescribeInterGather(
          comm, send, root,
          [&] {
            return Bind({recvbuf, recvcount, recvtype, "recvtype"}, comm.peers().size(),
                        &operation.output, &problem.block_bytes);
          },
          &operation);
    }
    FERRY_RETURN_FAILURE(CheckRoot(comm, root));
    operation.delivers = comm.rank() == root;
    FERRY_RETURN_FAILURE(CheckInPlace(operation.delivers, sendbuf, "sendbuf"));
    problem.in_place = IsInPlace(sendbuf);
    if (!operation.delivers) {
      return BindOwnInput(send, &operation, &problem.block_bytes);
    }
    FERRY_RETURN_FAILURE(CheckInPlace(false, recvbuf, "recvbuf"));
    FERRY_RETURN_FAILURE(Bind({recvbuf, recvcount, recvtype, "recvtype"}, comm.size(),
                              &operation.output, &problem.block_bytes));
    if (problem.in_place) {
      operation.output_read = {root * recvcount, recvcount};
      return {};
    }
    size_t sent = 0;
    FERRY_RETURN_FAILURE(BindOwnInput(send, &operation, &sent));
    FERRY_RETURN_FAILURE(CheckDistinct(sendbuf, recvbuf, sent));
    return CheckOwn(sent, problem.block_bytes);
  });
}

int CallGatherv(const CollectiveCall& call, const void* sendbuf, int64_t sendcount,
                MPI_Datatype sendtype, void* recvbuf, Numbers recvcounts, Numbers displs,
                MPI_Datatype recvtype, int root, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) -> Failure {
    Problem& problem = operation.problem;
    problem.collective = Collective::kGather;
    problem.root = root;
    problem.has_blocks = true;
    const Blocks receive{recvbuf, recvcounts, displs, recvtype, nullptr, "recv"};
    if (comm.is_inter()) {
      return DescribeInterGather(
          comm, {sendbuf, sendcount, sendtype, "sendtype"}, root,
          [&] {
            return Bind(receive, comm.peers().size(), &operation.output, &problem.receive_blocks);
          },
          &operation);
    }
    FERRY_RETURN_FAILURE(CheckRoot(comm, root));
    operation.delivers = comm.rank() == root;
    FERRY_RETURN_FAILURE(CheckInPlace(operation.delivers, sendbuf, "sendbuf"));
    problem.in_place = IsInPlace(sendbuf);
    if (!problem.in_place) {
      FERRY_RETURN_FAILURE(BindOwnInput({sendbuf, sendcount, sendtype, "sendtype"}, &operation,
                                        &problem.block_bytes));
    }
    if (!operation.delivers) {
      return {};
    }
    FERRY_RETURN_FAILURE(Bind(receive, comm.size(), &operation.output, &problem.receive_blocks));
    if (problem.in_place) {
      operation.output_read = {root, 1};
    } else {
      FERRY_RETURN_FAILURE(CheckDistinct(sendbuf, AddressOf(receive, root), problem.block_bytes));
    }
    return CheckOwnBlock(operation, problem.receive_blocks, root, problem.block_bytes);
  });
}

// ---- Scatter ------------------------------------------------------------------------------------

int CallScatter(const CollectiveCall& call, const void* sendbuf, int64_t sendcount,
                MPI_Datatype sendtype, void* recvbuf, int64_t recvcount, MPI_Datatype recvtype,
                int root, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) -> Failure {
    Problem& problem = operation.problem;
    problem.collective = Collective::kScatter;
    problem.root = root;
    if (comm.is_inter()) {
      return DescribeInterScatter(
          comm, {recvbuf, recvcount, recvtype, "recvtype"}, root,
          [&] {
            operation.input_read = {0, sendcount * comm.peers().size()};
            return Bind({sendbuf, sendcount, sendtype, "sendtype"}, comm.peers().size(),
                        &operation.input, &problem.block_bytes);
          },
          &operation);
    }
    FERRY_RETURN_FAILURE(CheckRoot(comm, root));
    const bool is_root = comm.rank() == root;
    FERRY_RETURN_FAILURE(CheckInPlace(is_root, recvbuf, "recvbuf"));
    problem.in_place = IsInPlace(recvbuf);
    size_t received = 0;
    if (!problem.in_place) {
      FERRY_RETURN_FAILURE(
          Bind({recvbuf, recvcount, recvtype, "recvtype"}, 1, &operation.output, &received));
    }
    problem.block_bytes = received;
    if (!is_root) {
      return {};
    }
    FERRY_RETURN_FAILURE(CheckInPlace(false, sendbuf, "sendbuf"));
    FERRY_RETURN_FAILURE(Bind({sendbuf, sendcount, sendtype, "sendtype"}, comm.size(),
                              &operation.input, &problem.block_bytes));
    operation.input_read = {0, sendcount * comm.size()};
    FERRY_RETURN_FAILURE(CheckDistinct(sendbuf, recvbuf, received));
    return problem.in_place ? Failure() : CheckOwn(problem.block_bytes, received);
  });
}

int CallScatterv(const CollectiveCall& call, const void* sendbuf, Numbers sendcounts,
                 Numbers displs, MPI_Datatype sendtype, void* recvbuf, int64_t recvcount,
                 MPI_Datatype recvtype, int root, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) -> Failure {
    Problem& problem = operation.problem;
    problem.collective = Collective::kScatter;
    problem.root = root;
    problem.has_blocks = true;
    const Blocks send{sendbuf, sendcounts, displs, sendtype, nullptr, "send"};
    if (comm.is_inter()) {
      return DescribeInterScatter(
          comm, {recvbuf, recvcount, recvtype, "recvtype"}, root,
          [&] {
            operation.input_read = {0, comm.peers().size()};
            return Bind(send, comm.peers().size(), &operation.input, &problem.send_blocks);
          },
          &operation);
    }
    FERRY_RETURN_FAILURE(CheckRoot(comm, root));
    const bool is_root = comm.rank() == root;
    FERRY_RETURN_FAILURE(CheckInPlace(is_root, recvbuf, "recvbuf"));
    problem.in_place = IsInPlace(recvbuf);
    if (!problem.in_place) {
      FERRY_RETURN_FAILURE(Bind({recvbuf, recvcount, recvtype, "recvtype"}, 1, &operation.output,
                                &problem.block_bytes));
    }
    if (!is_root) {
      return {};
    }
    FERRY_RETURN_FAILURE(Bind(send, comm.size(), &operation.input, &problem.send_blocks));
    operation.input_read = {0, comm.size()};
    if (!problem.in_place) {
      FERRY_RETURN_FAILURE(CheckDistinct(AddressOf(send, root), recvbuf, problem.block_bytes));
    }
    return CheckOwnBlock(operation, problem.send_blocks, root, problem.block_bytes);
  });
}

// ---- Allgather ----------------------------------------------------------------------------------

int CallAllgather(const CollectiveCall& call, const void* sendbuf, int64_t sendcount,
                  MPI_Datatype sendtype, void* recvbuf, int64_t recvcount, MPI_Datatype recvtype,
                  MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) -> Failure {
    Problem& problem = operation.problem;
    problem.collective = Collective::kAllgather;
    if (comm.is_inter()) {
      return DescribeInterAllgather(
          comm, {sendbuf, sendcount, sendtype, "sendtype"}, recvbuf,
          [&] {
            return Bind({recvbuf, recvcount, recvtype, "recvtype"}, comm.peers().size(),
                        &operation.output, &problem.block_bytes);
          },
          &operation);
    }
    problem.in_place = IsInPlace(sendbuf);
    FERRY_RETURN_FAILURE(CheckInPlace(false, recvbuf, "recvbuf"));
    FERRY_RETURN_FAILURE(Bind({recvbuf, recvcount, recvtype, "recvtype"}, comm.size(),
                              &operation.output, &problem.block_bytes));
    if (problem.in_place) {
      operation.output_read = {comm.rank() * recvcount, recvcount};
      return {};
    }
    size_t sent = 0;
    FERRY_RETURN_FAILURE(
        BindOwnInput({sendbuf, sendcount, sendtype, "sendtype"}, &operation, &sent));
    FERRY_RETURN_FAILURE(CheckDistinct(sendbuf, recvbuf, sent));
    const int64_t own = comm.rank() * recvcount * datatypes.Find(recvtype)->extent();
    FERRY_RETURN_FAILURE(CheckDistinct(sendbuf, static_cast<const char*>(recvbuf) + own, sent));
    return CheckOwn(sent, problem.block_bytes);
  });
}

int CallAllgatherv(const CollectiveCall& call, const void* sendbuf, int64_t sendcount,
                   MPI_Datatype sendtype, void* recvbuf, Numbers recvcounts, Numbers displs,
                   MPI_Datatype recvtype, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) -> Failure {
    Problem& problem = operation.problem;
    problem.collective = Collective::kAllgather;
    problem.has_blocks = true;
    const Blocks receive{recvbuf, recvcounts, displs, recvtype, nullptr, "recv"};
    if (comm.is_inter()) {
      return DescribeInterAllgather(
          comm, {sendbuf, sendcount, sendtype, "sendtype"}, recvbuf,
          [&] {
            return Bind(receive, comm.peers().size(), &operation.output, &problem.receive_blocks);
          },
          &operation);
    }
    problem.in_place = IsInPlace(sendbuf);
    FERRY_RETURN_FAILURE(CheckInPlace(false, recvbuf, "recvbuf"));
    FERRY_RETURN_FAILURE(Bind(receive, comm.size(), &operation.output, &problem.receive_blocks));
    if (problem.in_place) {
      operation.output_read = {comm.rank(), 1};
      return {};
    }
    FERRY_RETURN_FAILURE(
        BindOwnInput({sendbuf, sendcount, sendtype, "sendtype"}, &operation, &problem.block_bytes));
    FERRY_RETURN_FAILURE(
        CheckDistinct(sendbuf, AddressOf(receive, comm.rank()), problem.block_bytes));
    return CheckOwnBlock(operation, problem.receive_blocks, comm.rank(), problem.block_bytes);
  });
}

// ---- Alltoall -----------------------------------------------------------------------------------

int CallAlltoall(const CollectiveCall& call, const void* sendbuf, int64_t sendcount,
                 MPI_Datatype sendtype, void* recvbuf, int64_t recvcount, MPI_Datatype recvtype,
                 MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) -> Failure {
    Problem& problem = operation.problem;
    problem.collective = Collective::kAlltoall;
    if (comm.is_inter()) {
      return DescribeInterAlltoall(comm, Run{sendbuf, sendcount, sendtype, "sendtype"},
                                   Run{recvbuf, recvcount, recvtype, "recvtype"}, &operation);
    }
    problem.in_place = IsInPlace(sendbuf);
    FERRY_RETURN_FAILURE(CheckInPlace(false, recvbuf, "recvbuf"));
    FERRY_RETURN_FAILURE(Bind({recvbuf, recvcount, recvtype, "recvtype"}, comm.size(),
                              &operation.output, &problem.block_bytes));
    if (problem.in_place) {
      operation.output_read = {0, comm.size() * recvcount};
      return {};
    }
    size_t sent = 0;
    FERRY_RETURN_FAILURE(
        Bind({sendbuf, sendcount, sendtype, "sendtype"}, comm.size(), &operation.input, &sent));
    operation.input_read = {0, comm.size() * sendcount};
    FERRY_RETURN_FAILURE(CheckDistinct(sendbuf, recvbuf, sent));
    return CheckOwn(sent, problem.block_bytes);
  });
}

int CallWithBlocks(const CollectiveCall& call, const Blocks& send, const Blocks& receive,
                   MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) -> Failure {
    Problem& problem = operation.problem;
    problem.collective = Collective::kAlltoall;
    if (comm.is_inter()) {
      return DescribeInterAlltoall(comm, send, receive, &operation);
    }
    problem.has_blocks = true;
    problem.in_place = IsInPlace(send.buffer);
    FERRY_RETURN_FAILURE(CheckInPlace(false, receive.buffer, "recvbuf"));
    FERRY_RETURN_FAILURE(Bind(receive, comm.size(), &operation.output, &problem.receive_blocks));
    if (problem.in_place) {
      operation.output_read = {0, comm.size()};
      return {};
    }
    FERRY_RETURN_FAILURE(Bind(send, comm.size(), &operation.input, &problem.send_blocks));
    operation.input_read = {0, comm.size()};
    const int rank = comm.rank();
    const size_t own_bytes = problem.send_blocks[static_cast<size_t>(rank)].size_bytes;
    FERRY_RETURN_FAILURE(CheckDistinct(AddressOf(send, rank), AddressOf(receive, rank), own_bytes));
    return CheckOwnBlock(operation, problem.receive_blocks, rank, own_bytes);
  });
}

int CallAlltoallv(const CollectiveCall& call, const void* sendbuf, Numbers sendcounts,
                  Numbers sdispls, MPI_Datatype sendtype, void* recvbuf, Numbers recvcounts,
                  Numbers rdispls, MPI_Datatype recvtype, MPI_Comm handle) {
  return CallWithBlocks(call, {sendbuf, sendcounts, sdispls, sendtype, nullptr, "send"},
                        {recvbuf, recvcounts, rdispls, recvtype, nullptr, "recv"}, handle);
}

int CallAlltoallw(const CollectiveCall& call, const void* sendbuf, Numbers sendcounts,
                  Numbers sdispls, const MPI_Datatype* sendtypes, void* recvbuf, Numbers recvcounts,
                  Numbers rdispls, const MPI_Datatype* recvtypes, MPI_Comm handle) {
  return CallWithBlocks(call, {sendbuf, sendcounts, sdispls, MPI_DATATYPE_NULL, sendtypes, "send"},
                        {recvbuf, recvcounts, rdispls, MPI_DATATYPE_NULL, recvtypes, "recv"},
                        handle);
}

}  // namespace

// ---- The functions ------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Barrier, (MPI_Comm comm)) { return CallBarrier({FERRY_MPI_NAME}, comm); }

FERRY_MPI_CALL(int, Ibarrier, (MPI_Comm comm, MPI_Request* request)) {
  return CallBarrier({FERRY_MPI_NAME, CallMode::kNonblocking, request}, comm);
}

FERRY_MPI_CALL(int, Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request* request)) {
  return CallBarrier({FERRY_MPI_NAME, CallMode::kPersistent, request, info}, comm);
}

#define FERRY_BCAST void *buffer, Count count, MPI_Datatype datatype, int root, MPI_Comm comm
FERRY_COLLECTIVE(Bcast, Ibcast, FERRY_BCAST, buffer, count, datatype, root, comm);

#define FERRY_ROOTED FERRY_ONE_BLOCK_EACH, int root, MPI_Comm comm
FERRY_COLLECTIVE(Gather, Igather, FERRY_ROOTED, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                 recvtype, root, comm);
FERRY_COLLECTIVE(Scatter, Iscatter, FERRY_ROOTED, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                 recvtype, root, comm);

FERRY_COLLECTIVE(Allgather, Iallgather, FERRY_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf,
                 recvcount, recvtype, comm);
FERRY_COLLECTIVE(Alltoall, Ialltoall, FERRY_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf,
                 recvcount, recvtype, comm);

FERRY_COLLECTIVE(Allgatherv, Iallgatherv, FERRY_ALLGATHERV, sendbuf, sendcount, sendtype, recvbuf,
                 recvcounts, displs, recvtype, comm);

#define FERRY_GATHERV                                                                         \
  const void *sendbuf, Count sendcount, MPI_Datatype sendtype, void *recvbuf,                 \
      const Count recvcounts[], const Displacement displs[], MPI_Datatype recvtype, int root, \
      MPI_Comm comm
FERRY_COLLECTIVE(Gatherv, Igatherv, FERRY_GATHERV, sendbuf, sendcount, sendtype, recvbuf,
                 recvcounts, displs, recvtype, root, comm);

#define FERRY_SCATTERV                                                                        \
  const void *sendbuf, const Count sendcounts[], const Displacement displs[],                 \
      MPI_Datatype sendtype, void *recvbuf, Count recvcount, MPI_Datatype recvtype, int root, \
      MPI_Comm comm
FERRY_COLLECTIVE(Scatterv, Iscatterv, FERRY_SCATTERV, sendbuf, sendcounts, displs, sendtype,
                 recvbuf, recvcount, recvtype, root, comm);

FERRY_COLLECTIVE(Alltoallv, Ialltoallv, FERRY_ALLTOALLV, sendbuf, sendcounts, sdispls, sendtype,
                 recvbuf, recvcounts, rdispls, recvtype, comm);

#define FERRY_ALLTOALLW                                                        \
  const void *sendbuf, const Count sendcounts[], const Displacement sdispls[], \
      const MPI_Datatype sendtypes[], void *recvbuf, const Count recvcounts[], \
      const Displacement rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm
FERRY_COLLECTIVE(Alltoallw, Ialltoallw, FERRY_ALLTOALLW, sendbuf, sendcounts, sdispls, sendtypes,
                 recvbuf, recvcounts, rdispls, recvtypes, comm);

}  // namespace ferry::mpi

// Collectives that only move data: what their arguments mean (MPI 5.0, sections 6.3 to 6.8).
//
// Each is one function for both its forms.
#include <type_traits>
#include <vector>

#include "mpi/api/collective_descriptions.h"
#include "mpi/base/handle_table.h"

namespace ferry::mpi {
namespace {

using collective::Block;
using collective::Collective;
using collective::Problem;

template <typename Data>
constexpr bool kHasBlocks = std::is_same_v<Data, Blocks>;

// Begins the description of a collective.
template <typename Data>
Problem& Begin(Collective collective, int root, CollectiveOperation* operation) {
  operation->problem.collective = collective;
  operation->problem.root = root;
  operation->problem.has_blocks = kHasBlocks<Data>;
  return operation->problem;
}

// Binds a block for each of so many ranks.
template <typename Data>
Failure BindEach(const Data& data, int ranks, CollectiveBuffer* buffer, std::vector<Block>* blocks,
                 Problem* problem) {
  if constexpr (kHasBlocks<Data>) {
    return BindBlocks(data, ranks, buffer, blocks);
  } else {
    return Bind(data, ranks, buffer, &problem->block_bytes);
  }
}
template <typename Data>
Failure BindSent(const Data& send, int ranks, CollectiveOperation* operation) {
  operation->input_read = PortionOf(send, 0, ranks);
  return BindEach(send, ranks, &operation->input, &operation->problem.send_blocks,
                  &operation->problem);
}
template <typename Data>
Failure BindReceived(const Data& receive, int ranks, CollectiveOperation* operation) {
  return BindEach(receive, ranks, &operation->output, &operation->problem.receive_blocks,
                  &operation->problem);
}

// Bytes of the block of a rank.
template <typename Data>
size_t BytesOf(const Problem& problem, const std::vector<Block>& blocks, int rank) {
  return kHasBlocks<Data> ? blocks[static_cast<size_t>(rank)].size_bytes : problem.block_bytes;
}

// MPI_ERR_BUFFER: an intercommunicator's collectives know no MPI_IN_PLACE.
Failure RefuseInPlace(const void* sendbuf, const void* recvbuf) {
  FERRY_RETURN_FAILURE(CheckInPlace(false, sendbuf, "sendbuf"));
  return CheckInPlace(false, recvbuf, "recvbuf");
}

// ---- Broadcast ----------------------------------------------------------------------------------

Failure DescribeInterBcast(const Comm& comm, const Run& data, int root,
                           CollectiveOperation* operation) {
  FERRY_RETURN_FAILURE(DescribeInter(comm, root, operation));
  operation->delivers = root != MPI_ROOT && root != MPI_PROC_NULL;
  if (root == MPI_PROC_NULL) {
    return {};
  }
  FERRY_RETURN_FAILURE(CheckInPlace(false, data.buffer, "buffer"));
  operation->output_read = {0, root == MPI_ROOT ? data.count : 0};
  return Bind(data, 1, &operation->output, &operation->problem.block_bytes);
}

}  // namespace

Failure DescribeBcast(const Comm& comm, const Run& data, int root, CollectiveOperation* operation) {
  Problem& problem = Begin<Run>(Collective::kBcast, root, operation);
  if (comm.is_inter()) {
    return DescribeInterBcast(comm, data, root, operation);
  }
  FERRY_RETURN_FAILURE(CheckRoot(comm, root));
  FERRY_RETURN_FAILURE(CheckInPlace(false, data.buffer, "buffer"));
  FERRY_RETURN_FAILURE(Bind(data, 1, &operation->output, &problem.block_bytes));
  operation->delivers = comm.rank() != root;
  operation->output_read = {0, operation->delivers ? 0 : data.count};
  return {};
}

// ---- Gather -------------------------------------------------------------------------------------

namespace {

template <typename Data>
Failure DescribeInterGather(const Comm& comm, const Run& send, const Data& receive, int root,
                            CollectiveOperation* operation) {
  FERRY_RETURN_FAILURE(DescribeInter(comm, root, operation));
  operation->delivers = root == MPI_ROOT;
  if (root == MPI_PROC_NULL) {
    return {};
  }
  if (root == MPI_ROOT) {
    return BindReceived(receive, comm.peers().size(), operation);
  }
  FERRY_RETURN_FAILURE(CheckInPlace(false, send.buffer, "sendbuf"));
  return BindOwnInput(send, operation, &operation->problem.block_bytes);
}

}  // namespace

template <typename Data>
Failure DescribeGather(const Comm& comm, const Run& send, const Data& receive, int root,
                       CollectiveOperation* operation) {
  Problem& problem = Begin<Data>(Collective::kGather, root, operation);
  if (comm.is_inter()) {
    return DescribeInterGather(comm, send, receive, root, operation);
  }
  FERRY_RETURN_FAILURE(CheckRoot(comm, root));
  operation->delivers = comm.rank() == root;
  FERRY_RETURN_FAILURE(CheckInPlace(operation->delivers, send.buffer, "sendbuf"));
  problem.in_place = IsInPlace(send.buffer);
  if (!problem.in_place) {
    FERRY_RETURN_FAILURE(BindOwnInput(send, operation, &problem.block_bytes));
  }
  if (!operation->delivers) {
    return {};
  }
  const size_t sent = problem.block_bytes;
  if constexpr (!kHasBlocks<Data>) {
    FERRY_RETURN_FAILURE(CheckInPlace(false, receive.buffer, "recvbuf"));
  }
  FERRY_RETURN_FAILURE(BindReceived(receive, comm.size(), operation));
  if (problem.in_place) {
    operation->output_read = PortionOf(receive, root, 1);
    return {};
  }
  FERRY_RETURN_FAILURE(CheckDistinct(send.buffer, AddressOf(receive, root), sent));
  return CheckOwn(sent, BytesOf<Data>(problem, problem.receive_blocks, root));
}

// ---- Scatter ------------------------------------------------------------------------------------

namespace {

template <typename Data>
Failure DescribeInterScatter(const Comm& comm, const Data& send, const Run& receive, int root,
                             CollectiveOperation* operation) {
  FERRY_RETURN_FAILURE(DescribeInter(comm, root, operation));
  operation->delivers = root != MPI_ROOT && root != MPI_PROC_NULL;
  if (root == MPI_PROC_NULL) {
    return {};
  }
  if (root == MPI_ROOT) {
    return BindSent(send, comm.peers().size(), operation);
  }
  FERRY_RETURN_FAILURE(CheckInPlace(false, receive.buffer, "recvbuf"));
  return Bind(receive, 1, &operation->output, &operation->problem.block_bytes);
}

}  // namespace

template <typename Data>
Failure DescribeScatter(const Comm& comm, const Data& send, const Run& receive, int root,
                        CollectiveOperation* operation) {
  Problem& problem = Begin<Data>(Collective::kScatter, root, operation);
  if (comm.is_inter()) {
    return DescribeInterScatter(comm, send, receive, root, operation);
  }
  FERRY_RETURN_FAILURE(CheckRoot(comm, root));
  const bool is_root = comm.rank() == root;
  FERRY_RETURN_FAILURE(CheckInPlace(is_root, receive.buffer, "recvbuf"));
  problem.in_place = IsInPlace(receive.buffer);
  if (!problem.in_place) {
    FERRY_RETURN_FAILURE(Bind(receive, 1, &operation->output, &problem.block_bytes));
  }
  if (!is_root) {
    return {};
  }
  const size_t received = problem.block_bytes;
  if constexpr (!kHasBlocks<Data>) {
    FERRY_RETURN_FAILURE(CheckInPlace(false, send.buffer, "sendbuf"));
  }
  FERRY_RETURN_FAILURE(BindSent(send, comm.size(), operation));
  if (problem.in_place) {
    return {};
  }
  FERRY_RETURN_FAILURE(CheckDistinct(AddressOf(send, root), receive.buffer, received));
  return CheckOwn(BytesOf<Data>(problem, problem.send_blocks, root), received);
}

// ---- Allgather ----------------------------------------------------------------------------------

namespace {

template <typename Data>
Failure DescribeInterAllgather(const Comm& comm, const Run& send, const Data& receive,
                               CollectiveOperation* operation) {
  FERRY_RETURN_FAILURE(DescribeInter(comm, operation));
  FERRY_RETURN_FAILURE(RefuseInPlace(send.buffer, receive.buffer));
  FERRY_RETURN_FAILURE(BindReceived(receive, comm.peers().size(), operation));
  size_t sent = 0;
  FERRY_RETURN_FAILURE(BindOwnInput(send, operation, &sent));
  FERRY_RETURN_FAILURE(CheckDistinct(send.buffer, receive.buffer, sent));
  operation->problem.send_blocks = {{0, sent}};
  return {};
}

}  // namespace

template <typename Data>
Failure DescribeAllgather(const Comm& comm, const Run& send, const Data& receive,
                          CollectiveOperation* operation) {
  Problem& problem = Begin<Data>(Collective::kAllgather, 0, operation);
  if (comm.is_inter()) {
    return DescribeInterAllgather(comm, send, receive, operation);
  }
  problem.in_place = IsInPlace(send.buffer);
  FERRY_RETURN_FAILURE(CheckInPlace(false, receive.buffer, "recvbuf"));
  FERRY_RETURN_FAILURE(BindReceived(receive, comm.size(), operation));
  if (problem.in_place) {
    operation->output_read = PortionOf(receive, comm.rank(), 1);
    return {};
  }
  size_t sent = 0;
  FERRY_RETURN_FAILURE(BindOwnInput(send, operation, &sent));
  FERRY_RETURN_FAILURE(CheckDistinct(send.buffer, AddressOf(receive, comm.rank()), sent));
  if constexpr (kHasBlocks<Data>) {
    problem.block_bytes = sent;
  } else {
    const int64_t own = comm.rank() * receive.count * datatypes.Find(receive.datatype)->extent();
    FERRY_RETURN_FAILURE(
        CheckDistinct(send.buffer, static_cast<const char*>(receive.buffer) + own, sent));
  }
  return CheckOwn(sent, BytesOf<Data>(problem, problem.receive_blocks, comm.rank()));
}

// ---- Alltoall -----------------------------------------------------------------------------------

namespace {

template <typename Data>
Failure DescribeInterAlltoall(const Comm& comm, const Data& send, const Data& receive,
                              CollectiveOperation* operation) {
  Problem& problem = operation->problem;
  const int count = comm.peers().size();
  FERRY_RETURN_FAILURE(DescribeInter(comm, operation));
  FERRY_RETURN_FAILURE(RefuseInPlace(send.buffer, receive.buffer));
  problem.has_blocks = true;
  FERRY_RETURN_FAILURE(BindBlocks(send, count, &operation->input, &problem.send_blocks));
  FERRY_RETURN_FAILURE(BindBlocks(receive, count, &operation->output, &problem.receive_blocks));
  if constexpr (!kHasBlocks<Data>) {
    FERRY_RETURN_FAILURE(
        CheckDistinct(send.buffer, receive.buffer, problem.send_blocks.front().size_bytes));
  }
  operation->input_read = PortionOf(send, 0, count);
  return {};
}

}  // namespace

template <typename Data>
Failure DescribeAlltoall(const Comm& comm, const Data& send, const Data& receive,
                         CollectiveOperation* operation) {
  Problem& problem = Begin<Data>(Collective::kAlltoall, 0, operation);
  if (comm.is_inter()) {
    return DescribeInterAlltoall(comm, send, receive, operation);
  }
  const int rank = comm.rank();
  problem.in_place = IsInPlace(send.buffer);
  FERRY_RETURN_FAILURE(CheckInPlace(false, receive.buffer, "recvbuf"));
  FERRY_RETURN_FAILURE(BindReceived(receive, comm.size(), operation));
  if (problem.in_place) {
    operation->output_read = PortionOf(receive, 0, comm.size());
    return {};
  }
  const size_t received = BytesOf<Data>(problem, problem.receive_blocks, rank);
  FERRY_RETURN_FAILURE(BindSent(send, comm.size(), operation));
  const size_t sent = BytesOf<Data>(problem, problem.send_blocks, rank);
  FERRY_RETURN_FAILURE(CheckDistinct(AddressOf(send, rank), AddressOf(receive, rank), sent));
  return CheckOwn(sent, received);
}

// For other files of this folder.
template Failure DescribeGather(const Comm&, const Run&, const Run&, int, CollectiveOperation*);
template Failure DescribeGather(const Comm&, const Run&, const Blocks&, int, CollectiveOperation*);
template Failure DescribeScatter(const Comm&, const Run&, const Run&, int, CollectiveOperation*);
template Failure DescribeScatter(const Comm&, const Blocks&, const Run&, int, CollectiveOperation*);
template Failure DescribeAllgather(const Comm&, const Run&, const Run&, CollectiveOperation*);
template Failure DescribeAllgather(const Comm&, const Run&, const Blocks&, CollectiveOperation*);
template Failure DescribeAlltoall(const Comm&, const Run&, const Run&, CollectiveOperation*);
template Failure DescribeAlltoall(const Comm&, const Blocks&, const Blocks&, CollectiveOperation*);

// ---- The calls ---------------------------------------------------------------------------------

namespace {

int CallBarrier(const CollectiveCall& call, MPI_Comm handle) {
  return CarryOut(call, handle, [](Comm&, CollectiveOperation& operation) {
    operation.problem.collective = Collective::kBarrier;
    return Failure();
  });
}

int CallBcast(const CollectiveCall& call, const Run& data, int root, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) {
    return DescribeBcast(comm, data, root, &operation);
  });
}

template <typename Data>
int CallGather(const CollectiveCall& call, const Run& send, const Data& receive, int root,
               MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) {
    return DescribeGather(comm, send, receive, root, &operation);
  });
}

template <typename Data>
int CallScatter(const CollectiveCall& call, const Data& send, const Run& receive, int root,
                MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) {
    return DescribeScatter(comm, send, receive, root, &operation);
  });
}

template <typename Data>
int CallAllgather(const CollectiveCall& call, const Run& send, const Data& receive,
                  MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) {
    return DescribeAllgather(comm, send, receive, &operation);
  });
}

template <typename Data>
int CallAlltoall(const CollectiveCall& call, const Data& send, const Data& receive,
                 MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) {
    return DescribeAlltoall(comm, send, receive, &operation);
  });
}

}  // namespace

// ---- The functions ------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Barrier, (MPI_Comm comm)) { return CallBarrier({FERRY_MPI_NAME}, comm); }

FERRY_MPI_CALL(int, MPI_Ibarrier, (MPI_Comm comm, MPI_Request* request)) {
  return CallBarrier({FERRY_MPI_NAME, CallMode::kNonblocking, request}, comm);
}

FERRY_MPI_CALL(int, MPI_Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request* request)) {
  return CallBarrier({FERRY_MPI_NAME, CallMode::kPersistent, request, info}, comm);
}

#define FERRY_BCAST void *buffer, Count count, MPI_Datatype datatype, int root, MPI_Comm comm
FERRY_COLLECTIVE(MPI_Bcast, MPI_Ibcast, CallBcast, FERRY_BCAST,
                 {buffer, count, datatype, "datatype"}, root, comm);

#define FERRY_ROOTED FERRY_ONE_BLOCK_EACH, int root, MPI_Comm comm
FERRY_COLLECTIVE(MPI_Gather, MPI_Igather, CallGather, FERRY_ROOTED, FERRY_SENT_RUN,
                 FERRY_RECEIVED_RUN, root, comm);
FERRY_COLLECTIVE(MPI_Scatter, MPI_Iscatter, CallScatter, FERRY_ROOTED, FERRY_SENT_RUN,
                 FERRY_RECEIVED_RUN, root, comm);

FERRY_COLLECTIVE(MPI_Allgather, MPI_Iallgather, CallAllgather, FERRY_ALLGATHER, FERRY_SENT_RUN,
                 FERRY_RECEIVED_RUN, comm);
FERRY_COLLECTIVE(MPI_Alltoall, MPI_Ialltoall, CallAlltoall, FERRY_ALLGATHER, FERRY_SENT_RUN,
                 FERRY_RECEIVED_RUN, comm);

FERRY_COLLECTIVE(MPI_Allgatherv, MPI_Iallgatherv, CallAllgather, FERRY_ALLGATHERV, FERRY_SENT_RUN,
                 FERRY_RECEIVED_BLOCKS(displs), comm);

#define FERRY_GATHERV                                                                         \
  const void *sendbuf, Count sendcount, MPI_Datatype sendtype, void *recvbuf,                 \
      const Count recvcounts[], const Displacement displs[], MPI_Datatype recvtype, int root, \
      MPI_Comm comm
FERRY_COLLECTIVE(MPI_Gatherv, MPI_Igatherv, CallGather, FERRY_GATHERV, FERRY_SENT_RUN,
                 FERRY_RECEIVED_BLOCKS(displs), root, comm);

#define FERRY_SCATTERV                                                                        \
  const void *sendbuf, const Count sendcounts[], const Displacement displs[],                 \
      MPI_Datatype sendtype, void *recvbuf, Count recvcount, MPI_Datatype recvtype, int root, \
      MPI_Comm comm
FERRY_COLLECTIVE(MPI_Scatterv, MPI_Iscatterv, CallScatter, FERRY_SCATTERV,
                 FERRY_SENT_BLOCKS(displs), FERRY_RECEIVED_RUN, root, comm);

FERRY_COLLECTIVE(MPI_Alltoallv, MPI_Ialltoallv, CallAlltoall, FERRY_ALLTOALLV,
                 FERRY_SENT_BLOCKS(sdispls), FERRY_RECEIVED_BLOCKS(rdispls), comm);

#define FERRY_ALLTOALLW                                                        \
  const void *sendbuf, const Count sendcounts[], const Displacement sdispls[], \
      const MPI_Datatype sendtypes[], void *recvbuf, const Count recvcounts[], \
      const Displacement rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm
FERRY_COLLECTIVE(MPI_Alltoallw, MPI_Ialltoallw, CallAlltoall, FERRY_ALLTOALLW, FERRY_SENT_TYPES,
                 FERRY_RECEIVED_TYPES, comm);

}  // namespace ferry::mpi

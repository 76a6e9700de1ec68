// Partitioned collectives with blocks of their own sizes and places, and those among neighbours
// (ferry/mpi/ferry_mpi/mpix_partitioned.h).
//
// No rank knows all sizes of blocks, or who exchanges them: so how partitions are cut does not
// depend on sizes, and all goes by messages.
#include <mpix.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "mpi/api/collective_descriptions.h"
#include "mpi/api/partitioned_collective_call.h"
#include "mpi/base/handle_table.h"

namespace ferry::mpi {
namespace {

template <typename Describe>
int MakeUneven(const PartitionedCall& call, Describe&& describe, int contributor = kAllReady) {
  return MakeCollective(call, std::forward<Describe>(describe), contributor, Sizes::kOwn);
}

// Describes a slice of a collective by `describe(run, blocks)`, which has blocks of so many ranks
// on one side.
template <typename Describe>
Failure OnSlice(const Slice& slice, const Run& run, const Blocks& blocks, int ranks,
                Describe&& describe) {
  Run own{};
  Slice::Part part;
  FERRY_RETURN_FAILURE(slice.Of(run, &own));
  FERRY_RETURN_FAILURE(slice.Of(blocks, ranks, &part));
  return describe(own, part.blocks());
}

// One side's blocks, for OnSlice with `describe(send, receive)`, where both sides have blocks.
struct Numbered {
  const Blocks& blocks;
  int ranks;
};
template <typename Describe>
Failure OnSlice(const Slice& slice, const Numbered& send, const Numbered& receive,
                Describe&& describe) {
  Slice::Part sent;
  Slice::Part received;
  FERRY_RETURN_FAILURE(slice.Of(send.blocks, send.ranks, &sent));
  FERRY_RETURN_FAILURE(slice.Of(receive.blocks, receive.ranks, &received));
  return describe(sent.blocks(), received.blocks());
}

// ---- Of all ranks -------------------------------------------------------------------------------

int MakeGather(const PartitionedCall& call, const Run& send, const Blocks& receive, int root) {
  return MakeUneven(
      call, [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
        const int ranks = comm.rank() == root ? comm.size() : 0;
        return OnSlice(slice, send, receive, ranks, [&](const Run& own, const Blocks& blocks) {
          return DescribeGather(comm, own, blocks, root, operation);
        });
      });
}

int MakeScatter(const PartitionedCall& call, const Blocks& send, const Run& receive, int root) {
  return MakeUneven(
      call,
      [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
        const int ranks = comm.rank() == root ? comm.size() : 0;
        return OnSlice(slice, receive, send, ranks, [&](const Run& own, const Blocks& blocks) {
          return DescribeScatter(comm, blocks, own, root, operation);
        });
      },
      root);
}

int MakeAllgather(const PartitionedCall& call, const Run& send, const Blocks& receive) {
  return MakeUneven(call, [&](const Comm& comm, const Slice& slice,
                              CollectiveOperation* operation) {
    return OnSlice(slice, send, receive, comm.size(), [&](const Run& own, const Blocks& blocks) {
      return DescribeAllgather(comm, own, blocks, operation);
    });
  });
}

// In place what would be sent is not looked at.
int MakeAlltoall(const PartitionedCall& call, const Blocks& send, const Blocks& receive) {
  return MakeUneven(call,
                    [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
                      const int sent = IsInPlace(send.buffer) ? 0 : comm.size();
                      return OnSlice(slice, {send, sent}, {receive, comm.size()},
                                     [&](const Blocks& from, const Blocks& to) {
                                       return DescribeAlltoall(comm, from, to, operation);
                                     });
                    });
}

// ---- Of neighbours ------------------------------------------------------------------------------

int CountOf(const std::vector<int>& ranks) { return static_cast<int>(ranks.size()); }

// `describe(comm, slice, neighbours, operation)` describes it on a slice. Only neighbours need to
// have blocks of one size.
template <typename Describe>
int MakeAmongNeighbours(const PartitionedCall& call, Describe&& describe) {
  return MakeUneven(
      call, [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) -> Failure {
        Neighbours neighbours;
        FERRY_RETURN_FAILURE(FindNeighbours(comm, &neighbours));
        return describe(comm, slice, neighbours, operation);
      });
}

int MakeNeighbourAllgather(const PartitionedCall& call, const Run& send, const Blocks& receive) {
  return MakeAmongNeighbours(
      call, [&](const Comm& comm, const Slice& slice, const Neighbours& neighbours,
                CollectiveOperation* operation) {
        return OnSlice(slice, send, receive, CountOf(neighbours.sources),
                       [&](const Run& own, const Blocks& blocks) {
                         return DescribeNeighbourAllgather(comm, own, blocks, operation);
                       });
      });
}

int MakeNeighbourAlltoall(const PartitionedCall& call, const Blocks& send, const Blocks& receive) {
  return MakeAmongNeighbours(
      call, [&](const Comm& comm, const Slice& slice, const Neighbours& neighbours,
                CollectiveOperation* operation) {
        return OnSlice(slice, {send, CountOf(neighbours.destinations)},
                       {receive, CountOf(neighbours.sources)},
                       [&](const Blocks& from, const Blocks& to) {
                         return DescribeNeighbourAlltoall(comm, from, to, operation);
                       });
      });
}

// ---- Reduce_scatter -----------------------------------------------------------------------------

// Elements of the mean block: all ranks know it, and cut by it. Wrong numbers are found later.
MPI_Count MeanOf(const MPI_Count recvcounts[], MPI_Comm handle) {
  const Comm* const comm = comms.Find(handle);
  const int ranks = comm == nullptr || recvcounts == nullptr ? 0 : comm->size();
  MPI_Count sum = 0;
  for (int i = 0; i < ranks; ++i) {
    sum += std::clamp<MPI_Count>(recvcounts[i], 0, INT32_MAX);
  }
  return ranks == 0 ? 0 : (sum + ranks - 1) / ranks;
}

Failure CutReduceScatter(const Slice& slice, const Blocks& blocks, const Comm& comm,
                         PartOfReduceScatter* part) {
  int64_t begin = 0;
  for (int i = 0; i < comm.size(); ++i) {
    int64_t block = 0;
    FERRY_RETURN_FAILURE(slice.CheckBlock(blocks, i, &block));
    if (__builtin_add_overflow(begin, block, &block)) {
      return {MPI_ERR_COUNT, "the recvcounts add up to more than there are numbers for"};
    }
    part->firsts.push_back(begin + slice.first_partition() * blocks.counts[i]);
    part->counts.push_back(slice.partitions() * blocks.counts[i]);
    begin = block;
  }
  part->own_first = slice.first_partition() * blocks.counts[comm.rank()];
  return {};
}

int MakeReduceScatter(const PartitionedCall& call, const Vector& vector, const Blocks& blocks) {
  return MakeCollective(
      call,
      [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) -> Failure {
        PartOfReduceScatter part;
        FERRY_RETURN_FAILURE(CheckArray(blocks.counts, "recvcounts"));
        FERRY_RETURN_FAILURE(CutReduceScatter(slice, blocks, comm, &part));
        return slice.is_whole() ? DescribeReduceScatter(comm, vector, part.counts.data(), operation)
                                : DescribePartOfReduceScatter(comm, vector, part, operation);
      },
      kAllReady, Sizes::kAlike);
}

}  // namespace

// ---- The functions ------------------------------------------------------------------------------

#define FERRY_UNEVEN_CALL \
  PartitionedCall { __func__, partitions, 0, MPI_BYTE, comm, info, request }
#define FERRY_EQUAL_CALL \
  PartitionedCall { __func__, partitions, count, datatype, comm, info, request }

extern "C" {

FERRY_MPIX int MPIX_Pgatherv_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                                  MPI_Datatype sendtype, void* recvbuf,
                                  const MPI_Count recvcounts[], const MPI_Aint displs[],
                                  MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                                  MPI_Request* request) {
  return MakeGather(FERRY_UNEVEN_CALL, FERRY_SENT_RUN, FERRY_RECEIVED_BLOCKS(displs), root);
}

FERRY_MPIX int MPIX_Pscatterv_init(const void* sendbuf, int partitions,
                                   const MPI_Count sendcounts[], const MPI_Aint displs[],
                                   MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                   MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                                   MPI_Request* request) {
  return MakeScatter(FERRY_UNEVEN_CALL, FERRY_SENT_BLOCKS(displs), FERRY_RECEIVED_RUN, root);
}

FERRY_MPIX int MPIX_Pallgatherv_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                                     MPI_Datatype sendtype, void* recvbuf,
                                     const MPI_Count recvcounts[], const MPI_Aint displs[],
                                     MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                     MPI_Request* request) {
  return MakeAllgather(FERRY_UNEVEN_CALL, FERRY_SENT_RUN, FERRY_RECEIVED_BLOCKS(displs));
}

FERRY_MPIX int MPIX_Palltoallv_init(const void* sendbuf, int partitions,
                                    const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                                    MPI_Datatype sendtype, void* recvbuf,
                                    const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                                    MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                    MPI_Request* request) {
  return MakeAlltoall(FERRY_UNEVEN_CALL, FERRY_SENT_BLOCKS(sdispls),
                      FERRY_RECEIVED_BLOCKS(rdispls));
}

FERRY_MPIX int MPIX_Palltoallw_init(const void* sendbuf, int partitions,
                                    const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                                    const MPI_Datatype sendtypes[], void* recvbuf,
                                    const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                                    const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                                    MPI_Request* request) {
  return MakeAlltoall(FERRY_UNEVEN_CALL, FERRY_SENT_TYPES, FERRY_RECEIVED_TYPES);
}

FERRY_MPIX int MPIX_Preduce_scatter_init(const void* sendbuf, void* recvbuf, int partitions,
                                         const MPI_Count recvcounts[], MPI_Datatype datatype,
                                         MPI_Op op, MPI_Comm comm, MPI_Info info,
                                         MPI_Request* request) {
  const MPI_Count count = MeanOf(recvcounts, comm);
  return MakeReduceScatter(FERRY_EQUAL_CALL, {sendbuf, recvbuf, 0, datatype, op},
                           {recvbuf, recvcounts, recvcounts, datatype, nullptr, "recv"});
}

FERRY_MPIX int MPIX_Pneighbor_allgather_init(const void* sendbuf, void* recvbuf, int partitions,
                                             MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                                             MPI_Info info, MPI_Request* request) {
  return MakeAmongNeighbours(
      FERRY_EQUAL_CALL, [&](const Comm& among, const Slice& slice, const Neighbours& neighbours,
                            CollectiveOperation* operation) {
        const Slice::Part received = slice.InEach(recvbuf, CountOf(neighbours.sources), "recv");
        return DescribeNeighbourAllgather(among, slice.In(sendbuf), received.blocks(), operation);
      });
}

FERRY_MPIX int MPIX_Pneighbor_alltoall_init(const void* sendbuf, void* recvbuf, int partitions,
                                            MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                                            MPI_Info info, MPI_Request* request) {
  return MakeAmongNeighbours(
      FERRY_EQUAL_CALL, [&](const Comm& among, const Slice& slice, const Neighbours& neighbours,
                            CollectiveOperation* operation) {
        const Slice::Part sent = slice.InEach(sendbuf, CountOf(neighbours.destinations), "send");
        const Slice::Part received = slice.InEach(recvbuf, CountOf(neighbours.sources), "recv");
        return DescribeNeighbourAlltoall(among, sent.blocks(), received.blocks(), operation);
      });
}

FERRY_MPIX int MPIX_Pneighbor_allgatherv_init(const void* sendbuf, int partitions,
                                              MPI_Count sendcount, MPI_Datatype sendtype,
                                              void* recvbuf, const MPI_Count recvcounts[],
                                              const MPI_Aint displs[], MPI_Datatype recvtype,
                                              MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return MakeNeighbourAllgather(FERRY_UNEVEN_CALL, FERRY_SENT_RUN, FERRY_RECEIVED_BLOCKS(displs));
}

FERRY_MPIX int MPIX_Pneighbor_alltoallv_init(const void* sendbuf, int partitions,
                                             const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                                             MPI_Datatype sendtype, void* recvbuf,
                                             const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                                             MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                             MPI_Request* request) {
  return MakeNeighbourAlltoall(FERRY_UNEVEN_CALL, FERRY_SENT_BLOCKS(sdispls),
                               FERRY_RECEIVED_BLOCKS(rdispls));
}

FERRY_MPIX int MPIX_Pneighbor_alltoallw_init(const void* sendbuf, int partitions,
                                             const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                                             const MPI_Datatype sendtypes[], void* recvbuf,
                                             const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                                             const MPI_Datatype recvtypes[], MPI_Comm comm,
                                             MPI_Info info, MPI_Request* request) {
  return MakeNeighbourAlltoall(FERRY_UNEVEN_CALL, FERRY_SENT_TYPES, FERRY_RECEIVED_TYPES);
}

}  // extern "C"
}  // namespace ferry::mpi

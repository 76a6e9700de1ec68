// Partitioned collectives of equal partitions (ferry/mpi/ferry_mpi/mpix_partitioned.h).
#include <mpix.h>

#include "mpi/api/collective_descriptions.h"
#include "mpi/api/partitioned_collective_call.h"

namespace ferry::mpi {
namespace {

using collective::Collective;

Vector VectorIn(const Slice& slice, const Vector& whole) {
  return {slice.At(whole.sendbuf), slice.At(whole.recvbuf), slice.elements(), whole.datatype,
          whole.op};
}

// Some partitions of each of the equal blocks of a reduce_scatter; the count of `block` is of a
// whole one.
Failure DescribePartOfReduceScatterBlock(const Comm& comm, const Slice& slice, const Vector& block,
                                         CollectiveOperation* operation) {
  PartOfReduceScatter part;
  part.own_first = slice.first_elements();
  for (int64_t i = 0; i < comm.size(); ++i) {
    part.firsts.push_back(i * block.count + slice.first_elements());
    part.counts.push_back(slice.elements());
  }
  return DescribePartOfReduceScatter(comm, block, part, operation);
}

// Each rank's partitions meet those of the ranks before it only.
int MakePrefix(const PartitionedCall& call, Collective collective, const Vector& whole) {
  return MakeCollective(
      call,
      [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
        return DescribeWholeVector(comm, collective, VectorIn(slice, whole), 0, operation);
      },
      kAllReady, Sizes::kAlike);
}

}  // namespace

#define FERRY_CALL \
  PartitionedCall { __func__, partitions, count, datatype, comm_, info, request }

extern "C" {

FERRY_MPIX int MPIX_Pbcast_init(void* buffer, int partitions, MPI_Count count,
                                MPI_Datatype datatype, int root, MPI_Comm comm_, MPI_Info info,
                                MPI_Request* request) {
  return MakeCollective(
      FERRY_CALL,
      [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
        return DescribeBcast(comm, slice.In(buffer), root, operation);
      },
      root);
}

FERRY_MPIX int MPIX_Preduce_init(const void* sendbuf, void* recvbuf, int partitions,
                                 MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
                                 MPI_Comm comm_, MPI_Info info, MPI_Request* request) {
  return MakeCollective(
      FERRY_CALL, [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
        return DescribeWholeVector(comm, Collective::kReduce,
                                   VectorIn(slice, {sendbuf, recvbuf, count, datatype, op}), root,
                                   operation);
      });
}

FERRY_MPIX int MPIX_Pallreduce_init(const void* sendbuf, void* recvbuf, int partitions,
                                    MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                    MPI_Comm comm_, MPI_Info info, MPI_Request* request) {
  return MakeCollective(
      FERRY_CALL, [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
        return DescribeWholeVector(comm, Collective::kAllreduce,
                                   VectorIn(slice, {sendbuf, recvbuf, count, datatype, op}), 0,
                                   operation);
      });
}

FERRY_MPIX int MPIX_Preduce_scatter_block_init(const void* sendbuf, void* recvbuf, int partitions,
                                               MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                               MPI_Comm comm_, MPI_Info info,
                                               MPI_Request* request) {
  return MakeCollective(
      FERRY_CALL, [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
        const Vector vector{sendbuf, recvbuf, slice.stride(), datatype, op};
        return slice.is_whole() ? DescribeReduceScatterBlock(comm, vector, operation)
                                : DescribePartOfReduceScatterBlock(comm, slice, vector, operation);
      });
}

FERRY_MPIX int MPIX_Pallgather_init(const void* sendbuf, void* recvbuf, int partitions,
                                    MPI_Count count, MPI_Datatype datatype, MPI_Comm comm_,
                                    MPI_Info info, MPI_Request* request) {
  return MakeCollective(FERRY_CALL, [&](const Comm& comm, const Slice& slice,
                                        CollectiveOperation* operation) {
    const Run send = slice.In(sendbuf);
    return slice.is_whole()
               ? DescribeAllgather(comm, send, slice.In(recvbuf), operation)
               : DescribeAllgather(comm, send, slice.InEach(recvbuf, comm.size(), "recv").blocks(),
                                   operation);
  });
}

FERRY_MPIX int MPIX_Palltoall_init(const void* sendbuf, void* recvbuf, int partitions,
                                   MPI_Count count, MPI_Datatype datatype, MPI_Comm comm_,
                                   MPI_Info info, MPI_Request* request) {
  return MakeCollective(FERRY_CALL, [&](const Comm& comm, const Slice& slice,
                                        CollectiveOperation* operation) {
    return slice.is_whole()
               ? DescribeAlltoall(comm, slice.In(sendbuf), slice.In(recvbuf), operation)
               : DescribeAlltoall(comm, slice.InEach(sendbuf, comm.size(), "send").blocks(),
                                  slice.InEach(recvbuf, comm.size(), "recv").blocks(), operation);
  });
}

FERRY_MPIX int MPIX_Pgather_init(const void* sendbuf, void* recvbuf, int partitions,
                                 MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm_,
                                 MPI_Info info, MPI_Request* request) {
  return MakeCollective(
      FERRY_CALL, [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
        const Run send = slice.In(sendbuf);
        return slice.is_whole()
                   ? DescribeGather(comm, send, slice.In(recvbuf), root, operation)
                   : DescribeGather(comm, send, slice.InEach(recvbuf, comm.size(), "recv").blocks(),
                                    root, operation);
      });
}

FERRY_MPIX int MPIX_Pscatter_init(const void* sendbuf, void* recvbuf, int partitions,
                                  MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm_,
                                  MPI_Info info, MPI_Request* request) {
  return MakeCollective(
      FERRY_CALL,
      [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
        const Run receive = slice.In(recvbuf);
        return slice.is_whole()
                   ? DescribeScatter(comm, slice.In(sendbuf), receive, root, operation)
                   : DescribeScatter(comm, slice.InEach(sendbuf, comm.size(), "send").blocks(),
                                     receive, root, operation);
      },
      root);
}

FERRY_MPIX int MPIX_Pscan_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                               MPI_Datatype datatype, MPI_Op op, MPI_Comm comm_, MPI_Info info,
                               MPI_Request* request) {
  return MakePrefix(FERRY_CALL, Collective::kScan, {sendbuf, recvbuf, count, datatype, op});
}

FERRY_MPIX int MPIX_Pexscan_init(const void* sendbuf, void* recvbuf, int partitions,
                                 MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm_,
                                 MPI_Info info, MPI_Request* request) {
  return MakePrefix(FERRY_CALL, Collective::kExscan, {sendbuf, recvbuf, count, datatype, op});
}

FERRY_MPIX int MPIX_Pbarrier_init(int partitions, MPI_Comm comm_, MPI_Info info,
                                  MPI_Request* request) {
  return MakeCollective({__func__, partitions, 0, MPI_BYTE, comm_, info, request},
                        [](const Comm&, const Slice&, CollectiveOperation* operation) -> Failure {
                          operation->problem.collective = Collective::kBarrier;
                          return {};
                        });
}

}  // extern "C"
}  // namespace ferry::mpi

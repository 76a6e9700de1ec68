// Collectives of intercommunicators: what their arguments mean (MPI 5.0, sections 6.2.2 and 6.2.3).
//
// For the files of this folder that describe collectives; They fill in `operation` and ignore
// arguments that are not significant at the rank. Calling thread: the program's.
#pragma once

#include <functional>

#include "client/mpi/api/collective_blocks.h"

namespace ferry::mpi {

// Fills in who is on which side. Collectives without a root need no more of it.
Failure DescribeInter(const Comm& comm, CollectiveOperation* operation);
// The same with a root: MPI_ROOT at the root, MPI_PROC_NULL beside it, a rank of the root's group
// in the other one. MPI_ERR_ROOT.
Failure DescribeInter(const Comm& comm, int root, CollectiveOperation* operation);
// MPI_ERR_BUFFER: an intercommunicator's collectives know no MPI_IN_PLACE.
Failure RefuseInPlace(const void* sendbuf, const void* recvbuf);

Failure DescribeInterBcast(const Comm& comm, const Run& data, int root,
                           CollectiveOperation* operation);
// `bind_all`: binds the root's buffer, a block for each rank of the other group.
Failure DescribeInterGather(const Comm& comm, const Run& send, int root,
                            const std::function<Failure()>& bind_all,
                            CollectiveOperation* operation);
Failure DescribeInterScatter(const Comm& comm, const Run& receive, int root,
                             const std::function<Failure()>& bind_all,
                             CollectiveOperation* operation);
// `bind_all`: binds what comes.
Failure DescribeInterAllgather(const Comm& comm, const Run& send, const void* recvbuf,
                               const std::function<Failure()>& bind_all,
                               CollectiveOperation* operation);
Failure DescribeInterAlltoall(const Comm& comm, const Run& send, const Run& receive,
                              CollectiveOperation* operation);
Failure DescribeInterAlltoall(const Comm& comm, const Blocks& send, const Blocks& receive,
                              CollectiveOperation* operation);

}  // namespace ferry::mpi

#include "client/mpi/api/collective_inter.h"

#include <string>
#include <utility>

#include "client/mpi/channel/sides.h"

namespace ferry::mpi {
namespace {

// Binds what a rank sends to all, or to the root.
Failure BindOwnInput(const Run& send, CollectiveOperation* operation, size_t* bytes) {
  operation->input_read = {0, send.count};
  return Bind(send, 1, &operation->input, bytes);
}

std::vector<Block> InARow(int count, size_t bytes) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    blocks.push_back({i * bytes, bytes});
  }
  return blocks;
}

}  // namespace

Failure DescribeInter(const Comm& comm, CollectiveOperation* operation) {
  Sides sides = SidesOf(comm);
  operation->problem.is_inter = true;
  operation->problem.sources = std::move(sides.own);
  operation->problem.destinations = std::move(sides.remote);
  return {};
}

Failure DescribeInter(const Comm& comm, int root, CollectiveOperation* operation) {
  if (root != MPI_ROOT && root != MPI_PROC_NULL && !comm.IsPeer(root)) [[unlikely]] {
    return {MPI_ERR_ROOT, "the root " + std::to_string(root) +
                              " is neither MPI_ROOT nor MPI_PROC_NULL nor a rank of the remote "
                              "group, which has ranks 0 to " +
                              std::to_string(comm.peers().size() - 1)};
  }
  operation->problem.root = root == MPI_ROOT        ? kRootHere
                            : root == MPI_PROC_NULL ? kRootBeside
                                                    : root;
  return DescribeInter(comm, operation);
}

Failure RefuseInPlace(const void* sendbuf, const void* recvbuf) {
  FERRY_RETURN_FAILURE(CheckInPlace(false, sendbuf, "sendbuf"));
  return CheckInPlace(false, recvbuf, "recvbuf");
}

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

Failure DescribeInterGather(const Comm& comm, const Run& send, int root,
                            const std::function<Failure()>& bind_all,
                            CollectiveOperation* operation) {
  FERRY_RETURN_FAILURE(DescribeInter(comm, root, operation));
  operation->delivers = root == MPI_ROOT;
  if (root == MPI_PROC_NULL) {
    return {};
  }
  if (root == MPI_ROOT) {
    return bind_all();
  }
  FERRY_RETURN_FAILURE(CheckInPlace(false, send.buffer, "sendbuf"));
  return BindOwnInput(send, operation, &operation->problem.block_bytes);
}

Failure DescribeInterScatter(const Comm& comm, const Run& receive, int root,
                             const std::function<Failure()>& bind_all,
                             CollectiveOperation* operation) {
  FERRY_RETURN_FAILURE(DescribeInter(comm, root, operation));
  operation->delivers = root != MPI_ROOT && root != MPI_PROC_NULL;
  if (root == MPI_PROC_NULL) {
    return {};
  }
  if (root == MPI_ROOT) {
    return bind_all();
  }
  FERRY_RETURN_FAILURE(CheckInPlace(false, receive.buffer, "recvbuf"));
  return Bind(receive, 1, &operation->output, &operation->problem.block_bytes);
}

Failure DescribeInterAllgather(const Comm& comm, const Run& send, const void* recvbuf,
                               const std::function<Failure()>& bind_all,
                               CollectiveOperation* operation) {
  FERRY_RETURN_FAILURE(DescribeInter(comm, operation));
  FERRY_RETURN_FAILURE(RefuseInPlace(send.buffer, recvbuf));
  FERRY_RETURN_FAILURE(bind_all());
  size_t sent = 0;
  FERRY_RETURN_FAILURE(BindOwnInput(send, operation, &sent));
  FERRY_RETURN_FAILURE(CheckDistinct(send.buffer, recvbuf, sent));
  operation->problem.send_blocks = {{0, sent}};
  return {};
}

Failure DescribeInterAlltoall(const Comm& comm, const Run& send, const Run& receive,
                              CollectiveOperation* operation) {
  Problem& problem = operation->problem;
  const int count = comm.peers().size();
  FERRY_RETURN_FAILURE(DescribeInter(comm, operation));
  FERRY_RETURN_FAILURE(RefuseInPlace(send.buffer, receive.buffer));
  size_t sent = 0;
  size_t received = 0;
  FERRY_RETURN_FAILURE(Bind(send, count, &operation->input, &sent));
  FERRY_RETURN_FAILURE(Bind(receive, count, &operation->output, &received));
  FERRY_RETURN_FAILURE(CheckDistinct(send.buffer, receive.buffer, sent));
  operation->input_read = {0, count * send.count};
  problem.has_blocks = true;
  problem.send_blocks = InARow(count, sent);
  problem.receive_blocks = InARow(count, received);
  return {};
}

Failure DescribeInterAlltoall(const Comm& comm, const Blocks& send, const Blocks& receive,
                              CollectiveOperation* operation) {
  Problem& problem = operation->problem;
  const int count = comm.peers().size();
  FERRY_RETURN_FAILURE(DescribeInter(comm, operation));
  FERRY_RETURN_FAILURE(RefuseInPlace(send.buffer, receive.buffer));
  problem.has_blocks = true;
  FERRY_RETURN_FAILURE(Bind(send, count, &operation->input, &problem.send_blocks));
  FERRY_RETURN_FAILURE(Bind(receive, count, &operation->output, &problem.receive_blocks));
  operation->input_read = {0, count};
  return {};
}

}  // namespace ferry::mpi

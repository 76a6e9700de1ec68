// Collectives that reduce: what their arguments mean (MPI 5.0, sections 6.9 to 6.11).
#include <string>
#include <vector>

#include "client/mpi/api/collective_inter.h"
#include "client/mpi/api/message_arguments.h"
#include "client/mpi/op/op.h"

namespace ferry::mpi {
namespace {

// The arguments that all of them have. `count` is of the whole vector.
struct Vector {
  const void* sendbuf;
  void* recvbuf;
  int64_t count;
  MPI_Datatype datatype;
  MPI_Op op;
};

struct Resolved {
  const Datatype* type = nullptr;
  const Op* op = nullptr;
};

Failure Resolve(const Vector& vector, Resolved* resolved) {
  if (Failure failure = FindDatatype(vector.datatype, "datatype", &resolved->type); !failure.ok())
      [[unlikely]] {
    return failure;
  }
  resolved->op = ops.Find(vector.op);
  if (resolved->op == nullptr) [[unlikely]] {
    return {MPI_ERR_OP, "op is no operation: is it MPI_OP_NULL, or was it freed?"};
  }
  return resolved->op->Check(*resolved->type);
}

// This rank's part in it.
struct Part {
  bool takes = true;         // it has a vector
  bool gives = true;         // it gets a result, and may do so in place
  int64_t result_count = 0;  // elements of that
};

// Fills in what they all share.
Failure Describe(const Vector& vector, const Resolved& resolved, const Part& part,
                 CollectiveOperation* operation) {
  Problem& problem = operation->problem;
  const bool gives = part.gives;
  problem.in_place = part.takes && IsInPlace(vector.sendbuf);
  problem.element_bytes = static_cast<size_t>(std::max(resolved.type->size_bytes(), int64_t{1}));
  problem.commutative = resolved.op->IsCommutative();
  operation->reduces = true;
  operation->reducer = OpReducer(*resolved.op, *resolved.type);
  operation->delivers = gives;
  operation->device =
      operation->reducer.ChooseDevice({part.takes && !problem.in_place ? vector.sendbuf : nullptr,
                                       gives ? vector.recvbuf : nullptr},
                                      vector.count);
  const bool on_host = operation->device == kHostMemory;
  Failure failure = part.takes ? CheckInPlace(gives, vector.sendbuf, "sendbuf") : Failure();
  if (failure.ok() && part.takes && !problem.in_place) {
    failure = CheckData(vector.sendbuf, vector.count, *resolved.type);
    if (failure.ok()) {
      failure = operation->input.Set(const_cast<void*>(vector.sendbuf), vector.count,
                                     *resolved.type, on_host);
    }
    operation->input_read = {0, vector.count};
  }
  if (!failure.ok() || !gives) {
    return failure;
  }
  const int64_t output_count = problem.in_place ? vector.count : part.result_count;
  operation->output_read = {0, problem.in_place ? vector.count : 0};
  failure = CheckInPlace(false, vector.recvbuf, "recvbuf");
  if (failure.ok()) {
    failure = CheckData(vector.recvbuf, output_count, *resolved.type);
  }
  if (failure.ok() && part.takes) {
    failure = CheckDistinct(vector.sendbuf, vector.recvbuf,
                            static_cast<size_t>(output_count * resolved.type->size_bytes()));
  }
  return failure.ok() ? operation->output.Set(vector.recvbuf, output_count, *resolved.type, on_host)
                      : failure;
}

// Finds out whether this rank has a vector, and whether it gets the result. On an intercommunicator
// with a root these are different ranks.
Failure FindPart(const Comm& comm, Collective collective, const Vector& vector, int root,
                 CollectiveOperation* operation, Part* part) {
  const bool has_root = collective == Collective::kReduce;
  if (!comm.is_inter()) {
    part->gives = !has_root || comm.rank() == root;
    return has_root ? CheckRoot(comm, root) : Failure();
  }
  if (collective == Collective::kScan || collective == Collective::kExscan) {
    return {MPI_ERR_COMM, "an intercommunicator has no such collective"};
  }
  if (has_root) {
    part->gives = root == MPI_ROOT;
    part->takes = !part->gives && root != MPI_PROC_NULL;
    FERRY_RETURN_FAILURE(DescribeInter(comm, root, operation));
  } else {
    FERRY_RETURN_FAILURE(DescribeInter(comm, operation));
  }
  FERRY_RETURN_FAILURE(CheckInPlace(!part->takes, vector.sendbuf, "sendbuf"));
  return CheckInPlace(!part->gives, vector.recvbuf, "recvbuf");
}

// Calls any collective whose result is as long as the vector.
int CallWholeVector(const CollectiveCall& call, Collective collective, const Vector& vector,
                    int root, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) {
    operation.problem.collective = collective;
    operation.problem.root = root;
    Part part{.result_count = vector.count};
    Failure failure = FindPart(comm, collective, vector, root, &operation, &part);
    if (!failure.ok() || (!part.takes && !part.gives && comm.is_inter())) {
      return failure;  // beside the root nothing is looked at
    }
    Resolved resolved;
    failure = Resolve(vector, &resolved);
    if (failure.ok()) {
      failure = Describe(vector, resolved, part, &operation);
    }
    if (failure.ok()) {
      operation.problem.block_bytes =
          static_cast<size_t>(vector.count * resolved.type->size_bytes());
      if (collective == Collective::kExscan) {
        operation.output_read = {0, vector.count};  // rank 0's stays as it is
      }
    }
    return failure;
  });
}

// Divides it into blocks of one size for so many ranks: the channel of an intercommunicator counts
// more.
void DivideVector(int ranks, Problem* problem) {
  problem->has_blocks = true;
  for (size_t i = 0; i < static_cast<size_t>(ranks); ++i) {
    problem->receive_blocks.push_back({i * problem->block_bytes, problem->block_bytes});
  }
}

int CallReduce(const CollectiveCall& call, const void* sendbuf, void* recvbuf, int64_t count,
               MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm) {
  return CallWholeVector(call, Collective::kReduce, {sendbuf, recvbuf, count, datatype, op}, root,
                         comm);
}

int CallAllreduce(const CollectiveCall& call, const void* sendbuf, void* recvbuf, int64_t count,
                  MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return CallWholeVector(call, Collective::kAllreduce, {sendbuf, recvbuf, count, datatype, op}, 0,
                         comm);
}

int CallScan(const CollectiveCall& call, const void* sendbuf, void* recvbuf, int64_t count,
             MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return CallWholeVector(call, Collective::kScan, {sendbuf, recvbuf, count, datatype, op}, 0, comm);
}

int CallExscan(const CollectiveCall& call, const void* sendbuf, void* recvbuf, int64_t count,
               MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return CallWholeVector(call, Collective::kExscan, {sendbuf, recvbuf, count, datatype, op}, 0,
                         comm);
}

int CallReduce_scatter_block(const CollectiveCall& call, const void* sendbuf, void* recvbuf,
                             int64_t recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) {
    operation.problem.collective = Collective::kReduceScatter;
    if (recvcount < 0 || recvcount > INT64_MAX / comm.size()) [[unlikely]] {
      return Failure{MPI_ERR_COUNT, "recvcount is " + std::to_string(recvcount)};
    }
    const Vector vector{sendbuf, recvbuf, recvcount * comm.size(), datatype, op};
    Part part{.result_count = recvcount};
    Resolved resolved;
    Failure failure = FindPart(comm, Collective::kReduceScatter, vector, 0, &operation, &part);
    if (failure.ok()) {
      failure = Resolve(vector, &resolved);
    }
    if (failure.ok()) {
      failure = Describe(vector, resolved, part, &operation);
    }
    if (failure.ok()) {
      operation.problem.block_bytes = static_cast<size_t>(recvcount * resolved.type->size_bytes());
    }
    if (failure.ok() && comm.is_inter()) {
      DivideVector(comm.size(), &operation.problem);
    }
    return failure;
  });
}

int CallReduce_scatter(const CollectiveCall& call, const void* sendbuf, void* recvbuf,
                       Numbers recvcounts, MPI_Datatype datatype, MPI_Op op, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) {
    Problem& problem = operation.problem;
    problem.collective = Collective::kReduceScatter;
    problem.has_blocks = true;
    Vector vector{sendbuf, recvbuf, 0, datatype, op};
    Part part;
    Resolved resolved;
    Failure failure = CheckArray(recvcounts, "recvcounts");
    if (failure.ok()) {
      failure = FindPart(comm, Collective::kReduceScatter, vector, 0, &operation, &part);
    }
    if (failure.ok()) {
      failure = Resolve(vector, &resolved);
    }
    if (!failure.ok()) [[unlikely]] {
      return failure;
    }
    const auto size = static_cast<size_t>(resolved.type->size_bytes());
    for (int i = 0; i < comm.size(); ++i) {
      const int64_t count = recvcounts[i];
      if (count < 0 || count > INT64_MAX - vector.count) [[unlikely]] {
        return Failure{MPI_ERR_COUNT,
                       "recvcounts[" + std::to_string(i) + "] is " + std::to_string(count)};
      }
      problem.receive_blocks.push_back(
          {static_cast<size_t>(vector.count) * size, static_cast<size_t>(count) * size});
      vector.count += count;
    }
    part.result_count = recvcounts[comm.rank()];
    return Describe(vector, resolved, part, &operation);
  });
}

}  // namespace

// ---- The functions ------------------------------------------------------------------------------

#define FERRY_REDUCE                                                                           \
  const void *sendbuf, void *recvbuf, Count count, MPI_Datatype datatype, MPI_Op op, int root, \
      MPI_Comm comm
FERRY_COLLECTIVE(Reduce, Ireduce, FERRY_REDUCE, sendbuf, recvbuf, count, datatype, op, root, comm);

#define FERRY_REDUCE_TO_ALL \
  const void *sendbuf, void *recvbuf, Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm
FERRY_COLLECTIVE(Allreduce, Iallreduce, FERRY_REDUCE_TO_ALL, sendbuf, recvbuf, count, datatype, op,
                 comm);
FERRY_COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, FERRY_REDUCE_TO_ALL, sendbuf, recvbuf,
                 count, datatype, op, comm);
FERRY_COLLECTIVE(Scan, Iscan, FERRY_REDUCE_TO_ALL, sendbuf, recvbuf, count, datatype, op, comm);
FERRY_COLLECTIVE(Exscan, Iexscan, FERRY_REDUCE_TO_ALL, sendbuf, recvbuf, count, datatype, op, comm);

#define FERRY_REDUCE_SCATTER                                                                      \
  const void *sendbuf, void *recvbuf, const Count recvcounts[], MPI_Datatype datatype, MPI_Op op, \
      MPI_Comm comm
FERRY_COLLECTIVE(Reduce_scatter, Ireduce_scatter, FERRY_REDUCE_SCATTER, sendbuf, recvbuf,
                 recvcounts, datatype, op, comm);

}  // namespace ferry::mpi

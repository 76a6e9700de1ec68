// Collectives that reduce: what their arguments mean (MPI 5.0, sections 6.9 to 6.11).
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "mpi/api/collective_descriptions.h"
#include "mpi/api/message_arguments.h"
#include "mpi/op/op.h"

namespace ferry::mpi {
namespace {

using collective::Collective;
using collective::kHostMemory;
using collective::Problem;

struct Resolved {
  const Datatype* type = nullptr;
  const Op* op = nullptr;
};

Failure Resolve(const Vector& vector, Resolved* resolved) {
  FERRY_RETURN_FAILURE(FindDatatype(vector.datatype, "datatype", &resolved->type));
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

// Fills in how `count` elements of this rank are reduced. Returns the device that does so.
int DescribeReducing(const Vector& vector, const Resolved& resolved, const Part& part,
                     int64_t count, CollectiveOperation* operation) {
  Problem& problem = operation->problem;
  problem.in_place = part.takes && IsInPlace(vector.sendbuf);
  problem.element_bytes = static_cast<size_t>(std::max(resolved.type->size_bytes(), int64_t{1}));
  problem.commutative = resolved.op->IsCommutative();
  operation->reduces = true;
  operation->reducer = OpReducer(*resolved.op, *resolved.type);
  operation->delivers = part.gives;
  operation->device =
      operation->reducer.ChooseDevice({part.takes && !problem.in_place ? vector.sendbuf : nullptr,
                                       part.gives ? vector.recvbuf : nullptr},
                                      count);
  return operation->device;
}

// Fills in what they all share.
Failure Describe(const Vector& vector, const Resolved& resolved, const Part& part,
                 CollectiveOperation* operation) {
  Problem& problem = operation->problem;
  const bool gives = part.gives;
  const bool on_host =
      DescribeReducing(vector, resolved, part, vector.count, operation) == kHostMemory;
  if (part.takes) {
    FERRY_RETURN_FAILURE(CheckInPlace(gives, vector.sendbuf, "sendbuf"));
  }
  if (part.takes && !problem.in_place) {
    operation->input_read = {0, vector.count};
    FERRY_RETURN_FAILURE(CheckData(vector.sendbuf, vector.count, *resolved.type));
    FERRY_RETURN_FAILURE(operation->input.Set(const_cast<void*>(vector.sendbuf), vector.count,
                                              *resolved.type, on_host));
  }
  if (!gives) {
    return {};
  }
  const int64_t output_count = problem.in_place ? vector.count : part.result_count;
  operation->output_read = {0, problem.in_place ? vector.count : 0};
  FERRY_RETURN_FAILURE(CheckInPlace(false, vector.recvbuf, "recvbuf"));
  FERRY_RETURN_FAILURE(CheckData(vector.recvbuf, output_count, *resolved.type));
  if (part.takes) {
    FERRY_RETURN_FAILURE(
        CheckDistinct(vector.sendbuf, vector.recvbuf,
                      static_cast<size_t>(output_count * resolved.type->size_bytes())));
  }
  return operation->output.Set(vector.recvbuf, output_count, *resolved.type, on_host);
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

}  // namespace

Failure DescribeWholeVector(const Comm& comm, Collective collective, const Vector& vector, int root,
                            CollectiveOperation* operation) {
  operation->problem.collective = collective;
  operation->problem.root = root;
  Part part{.result_count = vector.count};
  FERRY_RETURN_FAILURE(FindPart(comm, collective, vector, root, operation, &part));
  if (!part.takes && !part.gives && comm.is_inter()) {
    return {};  // beside the root nothing is looked at
  }
  Resolved resolved;
  FERRY_RETURN_FAILURE(Resolve(vector, &resolved));
  FERRY_RETURN_FAILURE(Describe(vector, resolved, part, operation));
  operation->problem.block_bytes = static_cast<size_t>(vector.count * resolved.type->size_bytes());
  if (collective == Collective::kExscan) {
    operation->output_read = {0, vector.count};  // rank 0's stays as it is
  }
  return {};
}

Failure DescribeReduceScatterBlock(const Comm& comm, const Vector& block,
                                   CollectiveOperation* operation) {
  Problem& problem = operation->problem;
  problem.collective = Collective::kReduceScatter;
  if (block.count < 0 || block.count > INT64_MAX / comm.size()) [[unlikely]] {
    return {MPI_ERR_COUNT, "recvcount is " + std::to_string(block.count)};
  }
  Vector vector = block;
  vector.count *= comm.size();
  Part part{.result_count = block.count};
  Resolved resolved;
  FERRY_RETURN_FAILURE(FindPart(comm, Collective::kReduceScatter, vector, 0, operation, &part));
  FERRY_RETURN_FAILURE(Resolve(vector, &resolved));
  FERRY_RETURN_FAILURE(Describe(vector, resolved, part, operation));
  problem.block_bytes = static_cast<size_t>(block.count * resolved.type->size_bytes());
  if (comm.is_inter()) {  // whose channel counts more ranks than those that the blocks are for
    problem.has_blocks = true;
    problem.receive_blocks = InARow(comm.size(), problem.block_bytes);
  }
  return {};
}

// Returns true if, on all ranks, a part lies in the rank's result where its elements lie in the
// first block.
bool AreBlocksEqual(const PartOfReduceScatter& part) {
  return std::all_of(part.counts.begin(), part.counts.end(),
                     [&](int64_t count) { return count == part.counts.front(); });
}

// In place, results may lie where blocks are read: of equal blocks, where this part of the first
// one was; of others, where other parts are.
Failure DescribePartOfReduceScatter(const Comm& comm, const Vector& vector,
                                    const PartOfReduceScatter& part,
                                    CollectiveOperation* operation) {
  Problem& problem = operation->problem;
  problem.collective = Collective::kReduceScatter;
  problem.has_blocks = problem.are_parts_apart = true;
  Resolved resolved;
  FERRY_RETURN_FAILURE(Resolve(vector, &resolved));
  Vector read = vector;
  if (IsInPlace(vector.sendbuf) && !AreBlocksEqual(part)) {
    read.sendbuf = vector.recvbuf;
    operation->input.KeepApart();
    operation->output.KeepApart();
    operation->holds_result = true;
  }
  const int64_t elements = std::accumulate(part.counts.begin(), part.counts.end(), int64_t{0});
  const bool on_host = DescribeReducing(read, resolved, {}, elements, operation) == kHostMemory;
  const Datatype& type = *resolved.type;
  auto* const first =
      static_cast<char*>(problem.in_place ? read.recvbuf : const_cast<void*>(read.sendbuf));
  std::vector<BlockArguments> blocks;
  for (size_t i = 0; i < part.counts.size(); ++i) {
    blocks.push_back({first + part.firsts[i] * type.extent(), part.counts[i], &type});
  }
  Portion& portion = problem.in_place ? operation->output_read : operation->input_read;
  portion = {0, comm.size()};
  CollectiveBuffer& buffer = problem.in_place ? operation->output : operation->input;
  FERRY_RETURN_FAILURE(buffer.Set(blocks, &problem.receive_blocks, on_host));
  if (problem.in_place) {
    return {};
  }
  auto* const result = static_cast<char*>(vector.recvbuf) + part.own_first * type.extent();
  return operation->output.Set(result, part.counts[static_cast<size_t>(comm.rank())], type,
                               on_host);
}

Failure DescribeReduceScatter(const Comm& comm, Vector vector, Numbers recvcounts,
                              CollectiveOperation* operation) {
  Problem& problem = operation->problem;
  problem.collective = Collective::kReduceScatter;
  problem.has_blocks = true;
  Part part;
  Resolved resolved;
  FERRY_RETURN_FAILURE(CheckArray(recvcounts, "recvcounts"));
  FERRY_RETURN_FAILURE(FindPart(comm, Collective::kReduceScatter, vector, 0, operation, &part));
  FERRY_RETURN_FAILURE(Resolve(vector, &resolved));
  const auto size = static_cast<size_t>(resolved.type->size_bytes());
  vector.count = 0;
  for (int i = 0; i < comm.size(); ++i) {
    const int64_t count = recvcounts[i];
    if (count < 0 || count > INT64_MAX - vector.count) [[unlikely]] {
      return {MPI_ERR_COUNT, "recvcounts[" + std::to_string(i) + "] is " + std::to_string(count)};
    }
    problem.receive_blocks.push_back(
        {static_cast<size_t>(vector.count) * size, static_cast<size_t>(count) * size});
    vector.count += count;
  }
  part.result_count = recvcounts[comm.rank()];
  return Describe(vector, resolved, part, operation);
}

namespace {

// Calls any collective whose result is as long as the vector.
int CallWholeVector(const CollectiveCall& call, Collective collective, const Vector& vector,
                    int root, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) {
    return DescribeWholeVector(comm, collective, vector, root, &operation);
  });
}

int CallReduceScatterBlock(const CollectiveCall& call, const Vector& block, MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) {
    return DescribeReduceScatterBlock(comm, block, &operation);
  });
}

int CallReduceScatter(const CollectiveCall& call, const Vector& vector, Numbers recvcounts,
                      MPI_Comm handle) {
  return CarryOut(call, handle, [&](Comm& comm, CollectiveOperation& operation) {
    return DescribeReduceScatter(comm, vector, recvcounts, &operation);
  });
}

}  // namespace

// ---- The functions ------------------------------------------------------------------------------

#define FERRY_VECTOR \
  Vector { sendbuf, recvbuf, count, datatype, op }

#define FERRY_REDUCE                                                                           \
  const void *sendbuf, void *recvbuf, Count count, MPI_Datatype datatype, MPI_Op op, int root, \
      MPI_Comm comm
FERRY_COLLECTIVE(MPI_Reduce, MPI_Ireduce, CallWholeVector, FERRY_REDUCE, Collective::kReduce,
                 FERRY_VECTOR, root, comm);

#define FERRY_REDUCE_TO_ALL \
  const void *sendbuf, void *recvbuf, Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm
FERRY_COLLECTIVE(MPI_Allreduce, MPI_Iallreduce, CallWholeVector, FERRY_REDUCE_TO_ALL,
                 Collective::kAllreduce, FERRY_VECTOR, 0, comm);
FERRY_COLLECTIVE(MPI_Scan, MPI_Iscan, CallWholeVector, FERRY_REDUCE_TO_ALL, Collective::kScan,
                 FERRY_VECTOR, 0, comm);
FERRY_COLLECTIVE(MPI_Exscan, MPI_Iexscan, CallWholeVector, FERRY_REDUCE_TO_ALL, Collective::kExscan,
                 FERRY_VECTOR, 0, comm);
FERRY_COLLECTIVE(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, CallReduceScatterBlock,
                 FERRY_REDUCE_TO_ALL, FERRY_VECTOR, comm);

#define FERRY_REDUCE_SCATTER                                                                      \
  const void *sendbuf, void *recvbuf, const Count recvcounts[], MPI_Datatype datatype, MPI_Op op, \
      MPI_Comm comm
FERRY_COLLECTIVE(MPI_Reduce_scatter, MPI_Ireduce_scatter, CallReduceScatter, FERRY_REDUCE_SCATTER,
                 {sendbuf, recvbuf, 0, datatype, op}, recvcounts, comm);

}  // namespace ferry::mpi

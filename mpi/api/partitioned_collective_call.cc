#include "mpi/api/partitioned_collective_call.h"

#include <string>
#include <utility>

#include "mpi/api/partitioned_requests.h"
#include "mpi/base/handle_table.h"

namespace ferry::mpi {
namespace {

Failure FailCount(int64_t count, const std::string& name, int partitions) {
  return {MPI_ERR_COUNT, name + " is " + std::to_string(count) + " for each of " +
                             std::to_string(partitions) + " partitions"};
}

}  // namespace

// ---- Slices -------------------------------------------------------------------------------------

// MPI_IN_PLACE stays as it is: the buffer that it stands for is advanced on the other side.
void* Slice::Advance(const void* buffer, MPI_Datatype datatype, int64_t elements) {
  auto* const first = static_cast<char*>(const_cast<void*>(buffer));
  const Datatype* const type = datatypes.Find(datatype);
  return IsInPlace(buffer) || type == nullptr ? first : first + elements * type->extent();
}

Failure Slice::CheckBlock(const Blocks& blocks, int i, int64_t* elements) const {
  const int64_t count = blocks.counts[i];
  if (count < 0 || __builtin_mul_overflow(count, call_.partitions, elements)) {
    return FailCount(count, std::string(blocks.name) + "counts[" + std::to_string(i) + "]",
                     call_.partitions);
  }
  return {};
}

Failure Slice::Of(const Run& run, Run* part) const {
  *part = run;
  if (run.count < 0 || run.count > INT64_MAX / call_.partitions) {
    return FailCount(run.count, "a count", call_.partitions);
  }
  part->buffer = Advance(run.buffer, run.datatype, first_ * run.count);
  part->count = count_ * run.count;
  return {};
}

Failure Slice::Of(const Blocks& blocks, int ranks, Part* part) const {
  part->blocks_ = blocks;
  if (blocks.counts.is_null() || blocks.displacements.is_null()) {
    return {};  // which is an error where there are blocks
  }
  for (int i = 0; i < ranks; ++i) {
    int64_t elements = 0;
    FERRY_RETURN_FAILURE(CheckBlock(blocks, i, &elements));
    // Displacements of blocks with types of their own are in bytes.
    const Datatype* const type =
        blocks.datatypes == nullptr ? nullptr : datatypes.Find(blocks.datatypes[i]);
    int64_t first = first_ * blocks.counts[i];
    if (__builtin_mul_overflow(first, type == nullptr ? 1 : type->extent(), &first) ||
        __builtin_add_overflow(blocks.displacements[i], first, &first)) {
      return {MPI_ERR_COUNT,
              "block " + std::to_string(i) + " of " + blocks.name + "buf is larger than memory"};
    }
    part->counts_.push_back(count_ * blocks.counts[i]);
    part->displacements_.push_back(first);
  }
  part->blocks_.counts = part->counts_.data();
  part->blocks_.displacements = part->displacements_.data();
  return {};
}

Slice::Part Slice::InEach(const void* buffer, int ranks, const char* name) const {
  Part part;
  for (int64_t i = 0; i < ranks; ++i) {
    part.counts_.push_back(elements());
    part.displacements_.push_back(i * stride());
  }
  part.blocks_ = {
      At(buffer), part.counts_.data(), part.displacements_.data(), call_.datatype, nullptr, name};
  return part;
}

// ---- Requests -----------------------------------------------------------------------------------

// The checks that all partitioned collectives make before they look at the data.
Failure CheckPartitions(const PartitionedCall& call, const Comm& comm) {
  if (comm.is_inter()) {
    return {MPI_ERR_COMM, "an intercommunicator has no partitioned collectives"};
  }
  if (call.partitions < 1) {
    return {MPI_ERR_ARG, "partitions is " + std::to_string(call.partitions)};
  }
  if (call.count < 0 || call.count > INT64_MAX / call.partitions) {
    return FailCount(call.count, "count", call.partitions);
  }
  return {};
}

Failure CutPartitions(const PartitionedCall& call, uint64_t least_bytes, Units* units) {
  const int64_t bytes =
      least_bytes == 0 ? 0 : call.count * datatypes.Find(call.datatype)->size_bytes();
  UnitLimits limits;
  FERRY_RETURN_FAILURE(ReadUnitLimits(call.info, &limits));
  *units = CutCollective(call.partitions, static_cast<uint64_t>(bytes), least_bytes, limits);
  if (PartitionedCollective::NumbersFor(*units) > Channel::kUnitNumbers) {
    return {MPI_ERR_ARG, "partitions is " + std::to_string(call.partitions) +
                             ", and these are more units than a communicator has numbers for"};
  }
  return {};
}

int GiveRequest(const PartitionedCall& call, Comm& comm, const Units& units, bool readies,
                std::vector<UnitOfCollective> parts) {
  Result<Ref<PartitionedCollective>> result =
      PartitionedCollective::Make(comm, units, readies, std::move(parts));
  if (!result.ok()) {
    return Fail(call.name, &comm, result.failure());
  }
  Ref<PartitionedCollective> made = std::move(result).value();
  *call.request = made->Publish();
  if (*call.request == nullptr) {
    *call.request = MPI_REQUEST_NULL;
    return Fail(call.name, &comm, MPI_ERR_NO_MEM, "no memory for another request");
  }
  (void)made.Leave();
  return MPI_SUCCESS;
}

}  // namespace ferry::mpi

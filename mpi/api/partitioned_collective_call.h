// The common part of all partitioned collectives (ferry/mpi/ferry_mpi/mpix_partitioned.h).
//
// The arguments of the whole are those of the plain collective and are checked as such; then each
// unit of partitions is described as a collective on its part of the data.
//
// Calling thread: the program's.
#pragma once

#include <mpix.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mpi/api/collective_blocks.h"
#include "mpi/api/collective_call.h"
#include "mpi/partitioned/collective.h"
#include "mpi/partitioned/collective_units.h"

namespace ferry::mpi {

// The arguments that all partitioned collectives have.
struct PartitionedCall {
  const char* name;
  int partitions;
  MPI_Count count;  // of one partition, where that is equal everywhere
  MPI_Datatype datatype;
  MPI_Comm comm;
  MPI_Info info;
  MPI_Request* request;
};

// Neighbouring partitions of a call, and their part of its data: of a run of partitions x count
// elements some in a row; of several such blocks, as many elements of each.
class Slice {
 public:
  Slice(const PartitionedCall& call, int64_t first, int64_t count)
      : call_(call), first_(first), count_(count) {}

  int64_t first_partition() const { return first_; }
  int64_t partitions() const { return count_; }
  bool is_whole() const { return count_ == call_.partitions; }

  // Finds the slice's part of data that a program passes with the numbers of one partition.
  // MPI_ERR_COUNT: a number below zero, or too large.
  Failure Of(const Run& run, Run* part) const;
  // The blocks of a slice, and the arrays that hold their numbers.
  class Part {
   public:
    const Blocks& blocks() const { return blocks_; }

   private:
    friend class Slice;
    Blocks blocks_{nullptr, Null(), Null(), MPI_DATATYPE_NULL, nullptr, ""};
    std::vector<int64_t> counts_;
    std::vector<int64_t> displacements_;
  };
  Failure Of(const Blocks& blocks, int ranks, Part* part) const;
  // Stores how many elements the i-th of `blocks` has over all partitions.
  Failure CheckBlock(const Blocks& blocks, int i, int64_t* elements) const;

  // The slice's part where a partition of each block is the call's `count` elements. `buffer`
  // begins with the first element of the run, or of the first block.
  void* At(const void* buffer) const { return Advance(buffer, call_.datatype, first_elements()); }
  Run In(const void* buffer) const { return {At(buffer), elements(), call_.datatype, "datatype"}; }
  Part InEach(const void* buffer, int ranks, const char* name) const;
  int64_t elements() const { return count_ * call_.count; }
  int64_t first_elements() const { return first_ * call_.count; }
  // The elements of a whole block, or run.
  int64_t stride() const { return call_.partitions * call_.count; }

 private:
  static Numbers Null() { return static_cast<const int64_t*>(nullptr); }
  static void* Advance(const void* buffer, MPI_Datatype datatype, int64_t elements);

  const PartitionedCall& call_;
  const int64_t first_;
  const int64_t count_;
};

Failure CheckPartitions(const PartitionedCall& call, const Comm& comm);
// Cuts the call's partitions into units, of `least_bytes` where no hint says otherwise. 0: sizes do
// not count; each partition is a unit of its own as long as there are units enough.
Failure CutPartitions(const PartitionedCall& call, uint64_t least_bytes, Units* units);
// Makes the request. Returns the value that the call is to return.
int GiveRequest(const PartitionedCall& call, Comm& comm, const Units& units, bool readies,
                std::vector<UnitOfCollective> parts);

// In place of the one rank that has partitions to ready: all ranks have some.
inline constexpr int kAllReady = -1;

// Makes the request of a partitioned collective. `check(comm, operation)` checks the arguments that
// only this call has, and fills in the whole, for comparison; `add(comm, units, parts)` adds the
// units. `contributor`: the one rank that has partitions to ready, or kAllReady.
template <typename Check, typename Add>
int MakePartitioned(const PartitionedCall& call, uint64_t least_bytes, Check&& check, Add&& add,
                    int contributor) {
  const CollectiveCall plain{call.name, CallMode::kPersistent, call.request, call.info};
  Comm* comm = nullptr;
  FERRY_RETURN_ERROR(FindComm(plain, call.comm, &comm));
  Units units;
  CollectiveOperation whole;
  const auto find_out = [&]() -> Failure {
    FERRY_RETURN_FAILURE(CheckPartitions(call, *comm));
    FERRY_RETURN_FAILURE(check(*comm, &whole));
    return CutPartitions(call, least_bytes, &units);
  };
  Failure failure = find_out();
  if (ComparesCalls()) [[unlikely]] {
    whole.cut = std::to_string(units.partitions) + " partitions/" + std::to_string(units.count());
    failure = CompareInits(plain, *comm, whole, std::move(failure));
  }
  std::vector<UnitOfCollective> parts;
  if (failure.ok()) {
    failure = add(*comm, units, &parts);
  }
  if (!failure.ok()) {
    return FailCollective(plain, *comm, failure);
  }
  return GiveRequest(call, *comm, units, contributor < 0 || contributor == comm->rank(),
                     std::move(parts));
}

// How much the ranks know of the sizes of blocks.
enum class Sizes {
  kEven,   // all are equal, and exchanged by all: may go by the ranks' own memory
  kAlike,  // all ranks know the same
  kOwn,    // each knows its own
};

// Makes the request of a partitioned collective. `describe(comm, slice, operation)` describes the
// collective on a slice.
template <typename Describe>
int MakeCollective(const PartitionedCall& call, Describe&& describe, int contributor = kAllReady,
                   Sizes sizes = Sizes::kEven) {
  return MakePartitioned(
      call, sizes == Sizes::kOwn ? 0 : kUnitBytesOfCollectives,
      [&](const Comm& comm, CollectiveOperation* whole) {
        return describe(comm, Slice(call, 0, call.partitions), whole);
      },
      [&](const Comm& comm, const Units& units, std::vector<UnitOfCollective>* parts) -> Failure {
        for (uint32_t i = 0; i < units.count(); ++i) {
          UnitOfCollective& part = parts->emplace_back();
          part.operation = std::make_unique<CollectiveOperation>();
          part.operation->call_name = call.name;
          part.is_even = sizes == Sizes::kEven;
          const Slice slice(call, int64_t{i} * units.per_unit, units.PartitionsIn(i));
          FERRY_RETURN_FAILURE(describe(comm, slice, part.operation.get()));
        }
        return {};
      },
      contributor);
}

#define FERRY_MPIX __attribute__((visibility("default")))

}  // namespace ferry::mpi

// Partitioned collectives, and schedules of a program's own
// (ferry/mpi/ferry_mpi/mpix_partitioned.h): what their arguments mean.
//
// The arguments of the whole are those of the plain collective and are checked as such; then each
// unit of partitions is described as a collective on its part of the data.
#include <mpix.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/mpi/api/collective_call.h"
#include "client/mpi/api/collective_descriptions.h"
#include "client/mpi/api/message_arguments.h"
#include "client/mpi/api/partitioned_requests.h"
#include "client/mpi/base/handle_table.h"
#include "client/mpi/partitioned/collective.h"
#include "client/mpi/partitioned/collective_schedule.h"
#include "client/mpi/partitioned/collective_units.h"

namespace ferry::mpi {
namespace {

using collective::Collective;
using collective::kHostMemory;

// The arguments that all of them have.
struct PartitionedCall {
  const char* name;
  int partitions;
  MPI_Count count;
  MPI_Datatype datatype;
  MPI_Comm comm;
  MPI_Info info;
  MPI_Request* request;
};

void* Advance(const void* buffer, int64_t bytes) {
  auto* const first = static_cast<char*>(const_cast<void*>(buffer));
  return IsInPlace(buffer) ? first : first + bytes;
}

// Some of a rank's elements, or of each block's.
class Slice {
 public:
  // `ranks` blocks of `stride` elements each, of which `count` from `first` on belong to it.
  Slice(const PartitionedCall& call, int ranks, int64_t first, int64_t count)
      : datatype_(call.datatype), stride_(call.partitions * call.count), count_(count) {
    const Datatype* const type = datatypes.Find(call.datatype);
    first_bytes_ = type == nullptr ? 0 : first * type->extent();
    for (int64_t i = 0; i < ranks; ++i) {
      counts_.push_back(count);
      displacements_.push_back(i * stride_);
    }
  }

  bool is_whole() const { return count_ == stride_; }
  int64_t count() const { return count_; }
  int64_t stride() const { return stride_; }
  // The elements of a buffer with one block, or of the whole with many.
  Run In(const void* buffer) const { return {At(buffer), count_, datatype_, "datatype"}; }
  // Those of each block of a buffer. They live as long as the slice.
  Blocks InEach(const void* buffer, const char* name) const {
    return {At(buffer), counts_.data(), displacements_.data(), datatype_, nullptr, name};
  }
  Vector InVectors(const void* sendbuf, void* recvbuf, MPI_Op op) const {
    return {At(sendbuf), At(recvbuf), count_, datatype_, op};
  }
  void* At(const void* buffer) const { return Advance(buffer, first_bytes_); }

 private:
  const MPI_Datatype datatype_;
  const int64_t stride_;
  const int64_t count_;
  int64_t first_bytes_ = 0;
  std::vector<int64_t> counts_;
  std::vector<int64_t> displacements_;
};

// What all of them check before they look at the data.
Failure CheckPartitions(const PartitionedCall& call, const Comm& comm) {
  if (comm.is_inter()) {
    return {MPI_ERR_COMM, "an intercommunicator has no partitioned collectives"};
  }
  if (call.partitions < 1) {
    return {MPI_ERR_ARG, "partitions is " + std::to_string(call.partitions)};
  }
  if (call.count < 0 || call.count > INT64_MAX / call.partitions) {
    return {MPI_ERR_COUNT, "count is " + std::to_string(call.count) + " for each of " +
                               std::to_string(call.partitions) + " partitions"};
  }
  return {};
}

Failure Cut(const PartitionedCall& call, uint64_t least_bytes, Units* units) {
  const auto bytes =
      static_cast<uint64_t>(call.count * datatypes.Find(call.datatype)->size_bytes());
  UnitLimits limits;
  FERRY_RETURN_FAILURE(ReadUnitLimits(call.info, &limits));
  *units = CutCollective(call.partitions, bytes, least_bytes, limits);
  if (PartitionedCollective::NumbersFor(*units) > Channel::kUnitNumbers) {
    return {MPI_ERR_ARG, "partitions is " + std::to_string(call.partitions) +
                             ", and these are more units than a communicator has numbers for"};
  }
  return {};
}

int Give(const PartitionedCall& call, Comm& comm, const Units& units, bool readies,
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

// `check(comm, operation)` checks what only this call has, and fills in the whole, for comparison;
// `add(comm, units, parts)` adds the units.
template <typename Check, typename Add>
int MakeRequest(const PartitionedCall& call, uint64_t least_bytes, Check&& check, Add&& add,
                int contributor) {
  const CollectiveCall plain{call.name, CallMode::kPersistent, call.request, call.info};
  Comm* comm = nullptr;
  FERRY_RETURN_ERROR(FindComm(plain, call.comm, &comm));
  Units units;
  CollectiveOperation whole;
  const auto find_out = [&]() -> Failure {
    FERRY_RETURN_FAILURE(CheckPartitions(call, *comm));
    FERRY_RETURN_FAILURE(check(*comm, &whole));
    return Cut(call, least_bytes, &units);
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
  return Give(call, *comm, units, contributor < 0 || contributor == comm->rank(), std::move(parts));
}

// `describe(comm, slice, operation)` describes the collective on a slice. `contributor`: the one
// rank that has partitions to ready, or kAll.
constexpr int kAll = -1;
template <typename Describe>
int MakeCollective(const PartitionedCall& call, Describe&& describe, int contributor = kAll) {
  return MakeRequest(
      call, kUnitBytesOfCollectives,
      [&](const Comm& comm, CollectiveOperation* whole) {
        return describe(comm, Slice(call, comm.size(), 0, call.partitions * call.count), whole);
      },
      [&](const Comm& comm, const Units& units, std::vector<UnitOfCollective>* parts) -> Failure {
        for (uint32_t i = 0; i < units.count(); ++i) {
          UnitOfCollective& part = parts->emplace_back();
          part.operation = std::make_unique<CollectiveOperation>();
          part.operation->call_name = call.name;
          const Slice slice(call, comm.size(), int64_t{i} * units.per_unit * call.count,
                            units.PartitionsIn(i) * call.count);
          FERRY_RETURN_FAILURE(describe(comm, slice, part.operation.get()));
        }
        return {};
      },
      contributor);
}

// ---- Schedules ----------------------------------------------------------------------------------

struct ScheduleArguments {
  const void* sendbuf;
  void* recvbuf;
  int pieces;
  int steps;
  const MPIX_Pstep* given;
};

// `on_host`: CPUs have to combine pieces.
Failure DescribeSchedule(const ScheduleArguments& arguments, const Slice& slice,
                         const Datatype& type, bool on_host, CollectiveOperation* operation) {
  operation->problem.in_place = IsInPlace(arguments.sendbuf);
  if (operation->problem.in_place) {
    operation->output_read = {0, slice.count()};
  } else {
    operation->input_read = {0, slice.count()};
    FERRY_RETURN_FAILURE(
        operation->input.Set(slice.At(arguments.sendbuf), slice.count(), type, on_host));
  }
  return operation->output.Set(slice.At(arguments.recvbuf), slice.count(), type, on_host);
}

Failure CheckSchedule(const PartitionedCall& call, const ScheduleArguments& arguments,
                      const Comm& comm, PieceSchedule* schedule) {
  const Datatype* type = nullptr;
  FERRY_RETURN_FAILURE(FindDatatype(call.datatype, "datatype", &type));
  const int64_t count = call.partitions * call.count;
  FERRY_RETURN_FAILURE(CheckInPlace(false, arguments.recvbuf, "recvbuf"));
  FERRY_RETURN_FAILURE(CheckData(arguments.recvbuf, count, *type));
  if (!IsInPlace(arguments.sendbuf)) {
    FERRY_RETURN_FAILURE(CheckData(arguments.sendbuf, count, *type));
    FERRY_RETURN_FAILURE(CheckDistinct(arguments.sendbuf, arguments.recvbuf,
                                       static_cast<size_t>(count * type->size_bytes())));
  }
  return PieceSchedule::Read(comm, *type, arguments.pieces, arguments.steps, arguments.given,
                             schedule);
}

Failure MakeUnits(const PartitionedCall& call, const ScheduleArguments& arguments,
                  const PieceSchedule& schedule, const Comm& comm, const Units& units,
                  std::vector<UnitOfCollective>* parts) {
  if (schedule.MostMessages(comm.size()) * units.per_unit > kMostPieces) {
    return {MPI_ERR_ARG, "one rank sends another more than " + std::to_string(kMostPieces) +
                             " pieces of the " + std::to_string(units.per_unit) +
                             " partitions that travel together"};
  }
  const Datatype& type = *datatypes.Find(call.datatype);
  const bool in_place = IsInPlace(arguments.sendbuf);
  for (uint32_t i = 0; i < units.count(); ++i) {
    const uint32_t partitions = units.PartitionsIn(i);
    const Slice slice(call, 0, int64_t{i} * units.per_unit * call.count, partitions * call.count);
    UnitOfCollective& part = parts->emplace_back();
    auto reducer = std::make_unique<StepReducer>(schedule.operations, type);
    const int device = reducer->ChooseDevice(in_place ? nullptr : slice.At(arguments.sendbuf),
                                             slice.At(arguments.recvbuf), slice.count());
    part.reducer = std::move(reducer);
    part.operation = std::make_unique<CollectiveOperation>();
    part.operation->call_name = call.name;
    part.operation->device = device;
    const bool on_host = device == kHostMemory && !schedule.operations.empty();
    FERRY_RETURN_FAILURE(DescribeSchedule(arguments, slice, type, on_host, part.operation.get()));
    const bool is_alike = i > 0 && partitions == units.PartitionsIn(i - 1);
    part.schedule =
        is_alike ? (*parts)[i - 1].schedule
                 : std::make_shared<const collective::Schedule>(schedule.Make(
                       partitions, call.count, static_cast<size_t>(type.size_bytes()), in_place));
  }
  return {};
}

int MakeSchedule(const PartitionedCall& call, const ScheduleArguments& arguments) {
  PieceSchedule schedule;
  return MakeRequest(
      call, 1,  // partitions stay apart: their pieces do not lie together
      [&](const Comm& comm, CollectiveOperation*) {
        return CheckSchedule(call, arguments, comm, &schedule);
      },
      [&](const Comm& comm, const Units& units, std::vector<UnitOfCollective>* parts) {
        return MakeUnits(call, arguments, schedule, comm, units, parts);
      },
      kAll);
}

}  // namespace

// ---- The functions ------------------------------------------------------------------------------

#define FERRY_MPIX __attribute__((visibility("default")))
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
        return DescribeWholeVector(comm, Collective::kReduce, slice.InVectors(sendbuf, recvbuf, op),
                                   root, operation);
      });
}

FERRY_MPIX int MPIX_Pallreduce_init(const void* sendbuf, void* recvbuf, int partitions,
                                    MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                    MPI_Comm comm_, MPI_Info info, MPI_Request* request) {
  return MakeCollective(
      FERRY_CALL, [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
        return DescribeWholeVector(comm, Collective::kAllreduce,
                                   slice.InVectors(sendbuf, recvbuf, op), 0, operation);
      });
}

FERRY_MPIX int MPIX_Preduce_scatter_block_init(const void* sendbuf, void* recvbuf, int partitions,
                                               MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                               MPI_Comm comm_, MPI_Info info,
                                               MPI_Request* request) {
  return MakeCollective(
      FERRY_CALL, [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
        const Vector vector = slice.InVectors(sendbuf, recvbuf, op);
        return slice.is_whole()
                   ? DescribeReduceScatterBlock(comm, vector, operation)
                   : DescribePartOfReduceScatterBlock(comm, vector, slice.stride(), operation);
      });
}

FERRY_MPIX int MPIX_Pallgather_init(const void* sendbuf, void* recvbuf, int partitions,
                                    MPI_Count count, MPI_Datatype datatype, MPI_Comm comm_,
                                    MPI_Info info, MPI_Request* request) {
  return MakeCollective(
      FERRY_CALL, [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
        const Run send = slice.In(sendbuf);
        return slice.is_whole()
                   ? DescribeAllgather(comm, send, slice.In(recvbuf), operation)
                   : DescribeAllgather(comm, send, slice.InEach(recvbuf, "recv"), operation);
      });
}

FERRY_MPIX int MPIX_Palltoall_init(const void* sendbuf, void* recvbuf, int partitions,
                                   MPI_Count count, MPI_Datatype datatype, MPI_Comm comm_,
                                   MPI_Info info, MPI_Request* request) {
  return MakeCollective(
      FERRY_CALL, [&](const Comm& comm, const Slice& slice, CollectiveOperation* operation) {
        return slice.is_whole()
                   ? DescribeAlltoall(comm, slice.In(sendbuf), slice.In(recvbuf), operation)
                   : DescribeAlltoall(comm, slice.InEach(sendbuf, "send"),
                                      slice.InEach(recvbuf, "recv"), operation);
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
                   : DescribeGather(comm, send, slice.InEach(recvbuf, "recv"), root, operation);
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
                   : DescribeScatter(comm, slice.InEach(sendbuf, "send"), receive, root, operation);
      },
      root);
}

FERRY_MPIX int MPIX_Pschedule_init(const void* sendbuf, void* recvbuf, int partitions,
                                   MPI_Count count, MPI_Datatype datatype, int pieces, int steps,
                                   const MPIX_Pstep schedule[], MPI_Comm comm_, MPI_Info info,
                                   MPI_Request* request) {
  return MakeSchedule(FERRY_CALL, {sendbuf, recvbuf, pieces, steps, schedule});
}

}  // extern "C"
}  // namespace ferry::mpi

// Collectives that a program describes by steps (ferry/mpi/ferry_mpi/mpix_partitioned.h): what the
// arguments mean.
#include <mpix.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mpi/api/message_arguments.h"
#include "mpi/api/partitioned_collective_call.h"
#include "mpi/base/handle_table.h"
#include "mpi/partitioned/collective_schedule.h"

namespace ferry::mpi {
namespace {

using collective::kHostMemory;

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
    operation->output_read = {0, slice.elements()};
  } else {
    operation->input_read = {0, slice.elements()};
    FERRY_RETURN_FAILURE(
        operation->input.Set(slice.At(arguments.sendbuf), slice.elements(), type, on_host));
  }
  return operation->output.Set(slice.At(arguments.recvbuf), slice.elements(), type, on_host);
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
    const Slice slice(call, int64_t{i} * units.per_unit, partitions);
    UnitOfCollective& part = parts->emplace_back();
    auto reducer = std::make_unique<StepReducer>(schedule.operations, type);
    const int device = reducer->ChooseDevice(in_place ? nullptr : slice.At(arguments.sendbuf),
                                             slice.At(arguments.recvbuf), slice.elements());
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
  return MakePartitioned(
      call, 1,  // partitions stay apart: their pieces do not lie together
      [&](const Comm& comm, CollectiveOperation*) {
        return CheckSchedule(call, arguments, comm, &schedule);
      },
      [&](const Comm& comm, const Units& units, std::vector<UnitOfCollective>* parts) {
        return MakeUnits(call, arguments, schedule, comm, units, parts);
      },
      kAllReady);
}

}  // namespace

extern "C" {

FERRY_MPIX int MPIX_Pschedule_init(const void* sendbuf, void* recvbuf, int partitions,
                                   MPI_Count count, MPI_Datatype datatype, int pieces, int steps,
                                   const MPIX_Pstep schedule[], MPI_Comm comm_, MPI_Info info,
                                   MPI_Request* request) {
  return MakeSchedule({__func__, partitions, count, datatype, comm_, info, request},
                      {sendbuf, recvbuf, pieces, steps, schedule});
}

}  // extern "C"
}  // namespace ferry::mpi

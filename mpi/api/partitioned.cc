// Partitioned communication (MPI 5.0, chapter 4), and what Ferry adds to it for hosts
// (ferry/mpi/ferry_mpi/mpix_partitioned.h).
#include "mpi/p2p/partitioned.h"

#include <mpix.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "mpi/api/function.h"
#include "mpi/api/message_arguments.h"
#include "mpi/api/partitioned_requests.h"
#include "mpi/base/connection.h"
#include "mpi/base/handle_table.h"
#include "mpi/init/fail.h"
#include "mpi/p2p/request.h"
#include "mpi/partitioned/null_request.h"
#include "mpi/partitioned/orphans.h"
#include "mpi/partitioned/receive.h"
#include "mpi/partitioned/send.h"
#include "shm/vain_looks.h"

namespace ferry::mpi {

// ---- Inits --------------------------------------------------------------------------------------

namespace {

// Checks the arguments beyond those of a plain message, which have been found right.
Failure CheckPartitioned(const MessageArguments& arguments, int partitions,
                         const Envelope& envelope) {
  if (partitions <= 0) {
    return {MPI_ERR_ARG,
            "partitions is " + std::to_string(partitions) + ", but there is at least one"};
  }
  if (arguments.peer == MPI_ANY_SOURCE) {
    return {MPI_ERR_RANK, "the source is MPI_ANY_SOURCE, which a partitioned receive cannot name"};
  }
  if (arguments.tag == MPI_ANY_TAG && !envelope.is_null) {
    return {MPI_ERR_TAG, "the tag is MPI_ANY_TAG, which a partitioned receive cannot name"};
  }
  int64_t total = 0;
  if (__builtin_mul_overflow(arguments.count, int64_t{partitions}, &total)) {
    return {MPI_ERR_COUNT, std::to_string(partitions) + " partitions of " +
                               std::to_string(arguments.count) + " elements are too many"};
  }
  const Result<int64_t> bytes = envelope.type->PackedBytes(total);
  if (!bytes.ok()) {
    return bytes.failure();
  }
  if (arguments.buffer == MPI_BOTTOM && bytes.value() != 0 && !envelope.is_null) {
    return {MPI_ERR_BUFFER,
            "the buffer is null or MPI_BOTTOM, which partitioned communication does not have"};
  }
  return {};
}

// make(arguments of the side, hints) returns the Result of a side's Make.
template <typename Make>
int Init(const MessageArguments& arguments, bool is_send, int partitions, MPI_Info info,
         MPI_Request* request, Make&& make) {
  Threads::BeginCall();
  Envelope envelope;
  FERRY_RETURN_ERROR(Resolve(arguments, is_send, &envelope));
  Comm* const comm = envelope.comm;
  if (request == nullptr) {
    return Fail(arguments.call, comm, MPI_ERR_ARG, "the address for the request is null");
  }
  if (const Failure failure = CheckPartitioned(arguments, partitions, envelope); !failure.ok()) {
    return Fail(arguments.call, comm, failure);
  }
  UnitLimits limits;
  if (const Failure failure = ReadUnitLimits(info, &limits); !failure.ok()) {
    return Fail(arguments.call, comm, failure);
  }
  EndOrphans();
  if (envelope.is_null) {
    *request = MakeRef<NullPartitioned>(*comm, is_send, partitions).Leave()->Publish();
    return MPI_SUCCESS;
  }
  const SideArguments side{
      .comm = comm,
      .buffer = const_cast<void*>(arguments.buffer),
      .partitions = static_cast<uint32_t>(partitions),
      .count = arguments.count,
      .type = envelope.type,
      .peer = static_cast<uint32_t>(envelope.message.peer),
      .tag = arguments.tag,
  };
  Result<Ref<Request>> made = make(side, limits);
  if (!made.ok()) {
    return Fail(arguments.call, comm, made.failure());
  }
  const MPI_Request handle = made.value()->Publish();
  if (handle == nullptr) {
    return Fail(arguments.call, comm, MPI_ERR_NO_MEM, "no memory for another request");
  }
  (void)made.value().Leave();
  *request = handle;
  return MPI_SUCCESS;
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Psend_init,
               (const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest,
                int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request)) {
  const char* const call = FERRY_MPI_NAME;
  return Init({call, buf, count, datatype, dest, tag, comm}, true, partitions, info, request,
              PartitionedSend::Make);
}

FERRY_MPI_CALL(int, MPI_Precv_init,
               (void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest,
                int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request)) {
  const char* const call = FERRY_MPI_NAME;
  return Init(
      {call, buf, count, datatype, dest, tag, comm}, false, partitions, info, request,
      [](const SideArguments& side, const UnitLimits&) { return PartitionedReceive::Make(side); });
}

// ---- Partitions ---------------------------------------------------------------------------------

namespace {

// The partitioned part of a request; null: *error is what the call is to return.
Partitioned* FindPartitioned(const char* call, MPI_Request handle, Request** request, int* error) {
  *request = requests.Find(handle);
  if (*request == nullptr) [[unlikely]] {
    *error = FailHandle(call, nullptr, MPI_ERR_REQUEST, "MPI_Request", handle);
    return nullptr;
  }
  Partitioned* const partitioned = (*request)->partitioned();
  if (partitioned == nullptr) [[unlikely]] {
    *error = Fail(call, (*request)->comm(), MPI_ERR_REQUEST, "the request is not partitioned");
  }
  return partitioned;
}

Failure NoPartition(int partition, int count) {
  return {MPI_ERR_ARG, "partition " + std::to_string(partition) + " is not between 0 and " +
                           std::to_string(count - 1)};
}

Failure ReadyRange(Partitioned& partitioned, int first, int last) {
  const int count = partitioned.readied_partitions();
  if (count == 0) [[unlikely]] {
    return partitioned.Ready(0, 0);  // says why
  }
  if (first < 0 || first >= count || last < 0 || last >= count) [[unlikely]] {
    return NoPartition(first < 0 || first >= count ? first : last, count);
  }
  if (first > last) [[unlikely]] {
    return {MPI_ERR_ARG, "partition_low is " + std::to_string(first) +
                             ", more than partition_high, " + std::to_string(last)};
  }
  return partitioned.Ready(first, last);
}

int Ready(const char* call, int first, int last, MPI_Request handle) {
  Request* request = nullptr;
  int error = MPI_SUCCESS;
  Partitioned* const partitioned = FindPartitioned(call, handle, &request, &error);
  return partitioned == nullptr ? error
                                : Conclude(call, *request, ReadyRange(*partitioned, first, last));
}

Failure ReadyList(Partitioned& partitioned, int length, const int partitions[]) {
  const int count = partitioned.readied_partitions();
  if (length < 0) {
    return {MPI_ERR_ARG, "length is " + std::to_string(length)};
  }
  if (length > 0 && partitions == nullptr) {
    return {MPI_ERR_ARG, "array_of_partitions is a null pointer"};
  }
  for (int i = 0; i < length && count != 0; ++i) {
    if (partitions[i] < 0 || partitions[i] >= count) {
      return NoPartition(partitions[i], count);
    }
  }
  Failure first;
  for (int i = 0; i < length; ++i) {
    Failure failure = partitioned.Ready(partitions[i], partitions[i]);
    if (!failure.ok() && first.ok()) {
      first = std::move(failure);
    }
  }
  return first;
}

Failure CheckArriving(Partitioned& partitioned) {
  bool ignored = false;
  return partitioned.arriving_partitions() == 0 ? partitioned.HasArrived(0, &ignored) : Failure();
}

Failure FindArrived(Partitioned& partitioned, int partition, int* flag) {
  FERRY_RETURN_FAILURE(CheckArriving(partitioned));
  const int count = partitioned.arriving_partitions();
  if (partition < 0 || partition >= count) [[unlikely]] {
    return NoPartition(partition, count);
  }
  bool has_arrived = false;
  Failure failure = partitioned.HasArrived(partition, &has_arrived);
  *flag = has_arrived ? 1 : 0;
  if (!has_arrived) {
    shm::NoteVainLook();
  }
  return failure;
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Pready, (int partition, MPI_Request handle)) {
  Request* const request = requests.Find(handle);
  Partitioned* const partitioned = request == nullptr ? nullptr : request->partitioned();
  return partitioned != nullptr && partitioned->TryReady(partition)
             ? MPI_SUCCESS
             : Ready(FERRY_MPI_NAME, partition, partition, handle);
}

FERRY_MPI_CALL(int, MPI_Pready_range,
               (int partition_low, int partition_high, MPI_Request request)) {
  return Ready(FERRY_MPI_NAME, partition_low, partition_high, request);
}

FERRY_MPI_CALL(int, MPI_Pready_list,
               (int length, const int array_of_partitions[], MPI_Request handle)) {
  Request* request = nullptr;
  int error = MPI_SUCCESS;
  Partitioned* const partitioned = FindPartitioned(FERRY_MPI_NAME, handle, &request, &error);
  return partitioned == nullptr ? error
                                : Conclude(FERRY_MPI_NAME, *request,
                                           ReadyList(*partitioned, length, array_of_partitions));
}

FERRY_MPI_CALL(int, MPI_Parrived, (MPI_Request handle, int partition, int* flag)) {
  if (flag == nullptr) [[unlikely]] {
    return Fail(FERRY_MPI_NAME, nullptr, MPI_ERR_ARG, "the address for the flag is null");
  }
  if (handle == MPI_REQUEST_NULL) [[unlikely]] {
    *flag = 1;
    return CheckRunning(FERRY_MPI_NAME);
  }
  Request* request = nullptr;
  int error = MPI_SUCCESS;
  Partitioned* const partitioned = FindPartitioned(FERRY_MPI_NAME, handle, &request, &error);
  return partitioned == nullptr
             ? error
             : Conclude(FERRY_MPI_NAME, *request, FindArrived(*partitioned, partition, flag));
}

// ---- Ferry's own --------------------------------------------------------------------------------

// Names partitions that have arrived, each once in a round.
class ArrivalSearch {
 public:
  explicit ArrivalSearch(Partitioned* partitioned)
      : partitioned_(*partitioned), named_(partitioned->named()) {}

  // Up to `room` of them. Returns how many; MPI_UNDEFINED: all had been named.
  Failure Find(int room, int* found, int partitions[]) {
    std::lock_guard lock(named_.mutex_);
    named_.is_used_.store(true, std::memory_order_relaxed);
    const int count = partitioned_.arriving_partitions();
    named_.named_.resize(static_cast<size_t>(count));
    SkipNamed(count);
    *found = named_.first_unnamed_ == count ? MPI_UNDEFINED : 0;
    for (int i = named_.first_unnamed_; i < count && *found < room && *found >= 0; ++i) {
      bool has_arrived = false;
      if (!named_.named_[static_cast<size_t>(i)]) {
        FERRY_RETURN_FAILURE(partitioned_.HasArrived(i, &has_arrived));
      }
      if (has_arrived) {
        named_.named_[static_cast<size_t>(i)] = true;
        partitions[(*found)++] = i;
      }
    }
    return {};
  }

 private:
  void SkipNamed(int count) {
    while (named_.first_unnamed_ < count &&
           named_.named_[static_cast<size_t>(named_.first_unnamed_)]) {
      ++named_.first_unnamed_;
    }
  }

  Partitioned& partitioned_;
  Partitioned::Named& named_;
};

namespace {

static_assert(MPI_UNDEFINED < 0);

// `found` and `partitions` as ArrivalSearch fills them in.
int FindSome(const char* call, MPI_Request handle, int room, int* found, int partitions[]) {
  if (handle == MPI_REQUEST_NULL) {
    *found = MPI_UNDEFINED;
    return CheckRunning(call);
  }
  Request* request = nullptr;
  int error = MPI_SUCCESS;
  Partitioned* const partitioned = FindPartitioned(call, handle, &request, &error);
  if (partitioned == nullptr) {
    return error;
  }
  if (const Failure failure = CheckArriving(*partitioned); !failure.ok()) {
    return Fail(call, request->comm(), failure);
  }
  if (!request->is_active()) {
    *found = MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
  return Conclude(call, *request, ArrivalSearch(partitioned).Find(room, found, partitions));
}

int Prepare(const char* call, int count, const MPI_Request handles[]) {
  std::vector<Request*> all;
  FERRY_RETURN_ERROR(FindAllPartitioned(call, count, handles, &all));
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i]->is_active()) {
      return Fail(call, all[i]->comm(), MPI_ERR_REQUEST,
                  "request " + std::to_string(i) + " is not active; start it first");
    }
  }
  for (Request* const request : all) {
    FERRY_RETURN_ERROR(Conclude(call, *request, request->partitioned()->Prepare()));
  }
  return MPI_SUCCESS;
}

}  // namespace

#define FERRY_MPIX __attribute__((visibility("default")))

extern "C" {

FERRY_MPIX int MPIX_Pbuf_prepare(MPI_Request request) { return Prepare(__func__, 1, &request); }

FERRY_MPIX int MPIX_Pbuf_prepare_all(int count, MPI_Request requests_[]) {
  return Prepare(__func__, count, requests_);
}

FERRY_MPIX int MPIX_Parrived_any(MPI_Request request, int* partition, int* flag) {
  if (partition == nullptr || flag == nullptr) {
    return Fail(__func__, nullptr, MPI_ERR_ARG, "the address for a result is null");
  }
  int found = 0;
  *partition = MPI_UNDEFINED;
  *flag = 0;
  FERRY_RETURN_ERROR(FindSome(__func__, request, 1, &found, partition));
  *flag = found != 0 ? 1 : 0;
  return MPI_SUCCESS;
}

FERRY_MPIX int MPIX_Parrived_some(MPI_Request request, int incount, int* outcount,
                                  int partitions[]) {
  if (outcount == nullptr || incount < 0 || (incount > 0 && partitions == nullptr)) {
    return Fail(
        __func__, nullptr, MPI_ERR_ARG,
        incount < 0 ? "incount is " + std::to_string(incount) : "the address for a result is null");
  }
  return FindSome(__func__, request, incount, outcount, partitions);
}

}  // extern "C"
}  // namespace ferry::mpi

// Calls on partitioned requests that queues make (ferry/mpi/ferry_mpi/mpix_partitioned.h). Start
// and wait: matching.cc.
#include <mpix.h>

#include <atomic>
#include <string>
#include <vector>

#include "mpi/api/partitioned_requests.h"
#include "mpi/init/fail.h"
#include "mpi/p2p/partitioned.h"
#include "mpi/partitioned/queued_calls.h"

namespace ferry::mpi {
namespace {

Failure CheckRange(Partitioned& partitioned, int low, int high) {
  const int count = partitioned.readied_partitions();
  if (count == 0) {
    return partitioned.Ready(0, 0);  // says why
  }
  if (low < 0 || high >= count || low > high) {
    return {MPI_ERR_ARG, "partitions " + std::to_string(low) + " to " + std::to_string(high) +
                             " are not a range between 0 and " + std::to_string(count - 1)};
  }
  return {};
}

int EnqueuePrepare(const char* call, MPIX_Queue queue, int count, const MPI_Request handles[]) {
  std::vector<Request*> found;
  FERRY_RETURN_ERROR(FindAllPartitioned(call, count, handles, &found));
  Comm* const comm = found.empty() ? nullptr : found.front()->comm();
  return Conclude(
      call, comm,
      EnqueueOn(queue, found, [](Request& request, const std::atomic<bool>& is_cancelled) {
        return request.partitioned()->PrepareUnless(&is_cancelled);
      }));
}

}  // namespace

#define FERRY_MPIX __attribute__((visibility("default")))

extern "C" {

FERRY_MPIX int MPIX_Enqueue_pready(MPIX_Queue queue, int partition_low, int partition_high,
                                   MPI_Request handle) {
  std::vector<Request*> found;
  FERRY_RETURN_ERROR(FindAllPartitioned(__func__, 1, &handle, &found));
  Request& request = *found.front();
  if (const Failure failure = CheckRange(*request.partitioned(), partition_low, partition_high);
      !failure.ok()) {
    return Fail(__func__, request.comm(), failure);
  }
  return Conclude(
      __func__, request,
      EnqueueOn(queue, found,
                [partition_low, partition_high](Request& readied, const std::atomic<bool>&) {
                  return readied.partitioned()->Ready(partition_low, partition_high);
                }));
}

FERRY_MPIX int MPIX_Enqueue_pbuf_prepare(MPIX_Queue queue, MPI_Request* request) {
  return EnqueuePrepare(__func__, queue, 1, request);
}

FERRY_MPIX int MPIX_Enqueue_pbuf_prepare_all(MPIX_Queue queue, int count, MPI_Request requests_[]) {
  return EnqueuePrepare(__func__, queue, count, requests_);
}

}  // extern "C"
}  // namespace ferry::mpi

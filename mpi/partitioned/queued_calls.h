// Partitioned requests on queues (ferry/mpi/mpix.h): a thread of libferry's makes the calls when
// the queue's stream gets there.
//
// Calling thread: any. Nothing blocks.
#pragma once

#include <atomic>
#include <functional>
#include <span>

#include "client/api/front_end.h"
#include "mpi/base/failure.h"
#include "mpi/p2p/request.h"

namespace ferry::mpi {

enum class QueuedStep { kStart, kWait };

// Enqueues the start of the requests, or the wait for them, as one call; then calls `others`. If
// `others` fails, the enqueued call does nothing. MPI_ERR_REQUEST, and nothing is enqueued: one of
// the requests is active without having been started by a queue, or (kStart) was started already,
// or (kWait) was not; errors of StreamQueues::EnqueueCall and of `others`.
Failure EnqueuePartitioned(client::QueueHandle queue, QueuedStep step,
                           std::span<Request* const> requests,
                           const std::function<Failure()>& others);
// Enqueues call(request, is_cancelled) for each of them, which may be active or not by then. A call
// that waits ends once is_cancelled is true, since the queue no longer waits for it.
Failure EnqueueOn(client::QueueHandle queue, std::span<Request* const> requests,
                  std::function<Failure(Request&, const std::atomic<bool>&)> call);

}  // namespace ferry::mpi

#include "client/mpi/channel/failed_run.h"

#include <string>

#include "client/mpi/base/connection.h"
#include "client/mpi/collective/problem.h"

namespace ferry::mpi {

Failure DescribeFailedRun(const RunFailure& failure) {
  const std::string peer = "rank " + std::to_string(failure.peer);
  switch (failure.mismatch) {
    case RunFailure::Mismatch::kNone: {
      if (failure.code == ErrorCode::kCancelled && failure.peer >= 0) {
        return {MPI_ERR_OTHER, peer + " could not go through with it, or left it for another one"};
      }
      Failure described = FailureOf(failure.code);
      if (failure.peer >= 0) {
        described.text = "a message with " + peer + " failed: " + described.text;
      }
      return described;
    }
    case RunFailure::Mismatch::kCollective:
      return {MPI_ERR_OTHER, peer + " called another collective at the same time: " +
                                 CollectiveName(static_cast<Collective>(failure.other - 1))};
    case RunFailure::Mismatch::kRoot:
      return {MPI_ERR_ROOT, peer + " passed the root " + std::to_string(failure.other) +
                                ", not this rank's (or MPI_IN_PLACE, unlike this one)"};
    case RunFailure::Mismatch::kSize:
      break;
  }
  // A notice of a run that failed (runner.h).
  if ((failure.received_bytes == 0) != (failure.expected_bytes == 0)) {
    return {MPI_ERR_OTHER, peer + " could not go through with it, or it passed a count of 0"};
  }
  const std::string expected = std::to_string(failure.expected_bytes) + " bytes";
  if (failure.received_bytes == failure.expected_bytes) {
    return {MPI_ERR_TRUNCATE, peer + " sent more than the " + expected +
                                  " expected: it passed another count or datatype, or called "
                                  "another collective"};
  }
  return {MPI_ERR_COUNT, peer + " sent " + std::to_string(failure.received_bytes) +
                             " bytes in place of " + expected +
                             ": it passed another count or datatype, or called another collective"};
}

}  // namespace ferry::mpi

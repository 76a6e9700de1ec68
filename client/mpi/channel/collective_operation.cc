#include "client/mpi/channel/collective_operation.h"

#include "client/mpi/channel/failed_run.h"

namespace ferry::mpi {

Failure CollectiveOperation::FetchCopies() {
  Failure failure = input.Fetch(input_read.first, input_read.count);
  return failure.ok() ? output.Fetch(output_read.first, output_read.count) : failure;
}

Failure CollectiveOperation::FinishCopies(const RunFailure& failure) {
  if (failure.code != ErrorCode::kOk) [[unlikely]] {
    return DescribeFailedRun(failure);
  }
  return delivers ? output.Deliver() : Failure();
}

}  // namespace ferry::mpi

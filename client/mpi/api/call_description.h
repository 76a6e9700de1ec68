// Describes a rank's call of a collective, for the others to compare (channel/comparison.h).
//
// Calling thread: the program's; nothing blocks.
#pragma once

#include "client/mpi/base/failure.h"
#include "client/mpi/channel/collective_operation.h"
#include "client/mpi/comm/comm.h"

namespace ferry::mpi {

// `failure`: what was wrong with the call's arguments; then the operation is not looked at.
CallDescription DescribeCall(const char* call, const Comm& comm,
                             const CollectiveOperation& operation, const Failure& failure);

}  // namespace ferry::mpi

// The failure that a program sees of a collective that failed.
//
// Any thread; nothing blocks.
#pragma once

#include "client/mpi/base/failure.h"
#include "client/mpi/collective/binding.h"

namespace ferry::mpi {

// The failure of a run with another code than kOk: class and sentence.
Failure DescribeFailedRun(const RunFailure& failure);

}  // namespace ferry::mpi

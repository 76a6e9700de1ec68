// The elements of accumulates (MPI 5.0, section 12.3.4): which operations they take, and how they
// are combined.
//
// Calling thread: any. Blocks: never.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/mpi/base/failure.h"
#include "client/mpi/datatype/datatype.h"
#include "client/mpi/op/op.h"

namespace ferry::mpi {

// The predefined datatype that `type` is made of, if MPI_Accumulate and its like take the operation
// for it. MPI_ERR_OP: it is a program's own, or not for such elements; MPI_ERR_TYPE: the datatype
// is not made of one predefined one.
Failure FindElements(const Op& op, const Datatype& type, const Datatype** elements);

// target = target op data, for packed elements of the predefined `type`, `bytes` in sum. Whether
// others see it at once is the caller's affair.
void CombineElements(const Op& op, const Datatype& type, const std::byte* data, std::byte* target,
                     int64_t bytes);

}  // namespace ferry::mpi

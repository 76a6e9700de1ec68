// MPI_Dims_create: extents of a grid for so many processes. MPI 5.0, section 8.5.2.
//
// Pure; any thread; does not block.
#pragma once

#include <span>
#include <vector>

#include "client/mpi/error/failure.h"

namespace ferry::mpi {

// `count` factors of `product` (at least 1), largest first, as close to each other as there are:
// the difference between the largest and the smallest is least, and among those the largest, then
// the second one, and so on. `count` is at least 1.
std::vector<int> BalancedFactors(int product, int count);

// Gives the extents that are 0 values whose product with the others is `process_count`.
// MPI_ERR_DIMS when there are none, or an extent is negative; MPI_ERR_ARG for fewer than one
// process. `dims` is unchanged after an error.
Failure CreateDims(int process_count, std::span<int> dims);

}  // namespace ferry::mpi

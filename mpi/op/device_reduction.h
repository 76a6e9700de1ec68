// Which of Ferry's kernels for devices computes a reduction of MPI.
//
// Pure functions: any thread, nothing blocks.
#pragma once

#include <optional>

#include "gpu_backends/api/reduction.h"
#include "mpi/datatype/datatype.h"
#include "mpi/op/op.h"

namespace ferry::mpi {

struct DeviceReduction {
  gpu::ReductionType type = gpu::ReductionType::kI32;
  gpu::ReductionOp op = gpu::ReductionOp::kSum;
};

// The operation has passed Check with the datatype. None: it is a program's own, or the numbers are
// no device's (half and extended precision, 128 bits), or elements have gaps.
std::optional<DeviceReduction> FindDeviceReduction(const Op& op, const Datatype& type);

}  // namespace ferry::mpi

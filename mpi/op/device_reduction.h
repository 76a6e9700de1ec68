// Finds the kernel of Ferry's for devices that computes a reduction of MPI.
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

// Finds the kernel for an operation that has passed Check with the datatype. None: the operation is
// a program's own, or devices have no such numbers (half and extended precision, 128 bits), or
// elements have gaps.
std::optional<DeviceReduction> FindDeviceReduction(const Op& op, const Datatype& type);

}  // namespace ferry::mpi

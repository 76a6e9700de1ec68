// Accumulates (MPI 5.0, sections 12.3.4 and 12.3.5): operations that change elements of a target's
// memory, each element atomically with respect to other accumulates.
//
// Elements are changed on the target's node, by the core's accumulates (OneSided::Accumulate),
// which say which operations are atomic with each other (shm/accumulate.h). In private memory, and
// in device memory that only streams reach, they change under a lock (private_memory.h).
//
// Calling thread: that of the call. Blocks where there is a result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/base/failure.h"
#include "mpi/op/op.h"
#include "mpi/rma/access.h"
#include "mpi/rma/window.h"

namespace ferry::mpi {

// Changes target = target op data, element by element. `data`: the origin's, packed; may be null
// for MPI_NO_OP. `found`: gets the old values, packed; null: the caller does not want them.
// MPI_ERR_OP, MPI_ERR_TYPE too.
Failure AccumulatePacked(Win& win, const WindowAddress& window_address, const Elements& there,
                         const Op& op, const std::byte* data, std::byte* found);
// Sets the element to `value` if it equals `compare`; `found` gets the old value.
// MPI_ERR_UNSUPPORTED_OPERATION: it is longer than 8 bytes, or lies elsewhere than at a multiple of
// its size, in memory that others map.
Failure CompareSwapElement(Win& win, const WindowAddress& window_address, const Datatype& type,
                           const void* compare, const void* value, void* found);

}  // namespace ferry::mpi

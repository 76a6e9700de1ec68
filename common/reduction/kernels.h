// The loops of the predefined reductions (MPI 5.0, sections 6.9.2 and 6.9.4; OpenSHMEM 1.5, section
// 9.9.8): element by element, out = a op b.
//
// `out` may be `a` or `b`, but must not overlap them otherwise. No buffer needs to be aligned.
// Integers wrap; a product of complex numbers is computed by its definition. The result of
// comparisons with a NaN is not specified, as in C.
//
// Calling thread: any. Blocks: never.
#pragma once

#include <cstdint>

#include "common/reduction/number_kind.h"

namespace ferry::reduction {

// The numbers travel between nodes (shm/accumulate.h): bump kProtocolVersion with any change.
enum class OpKind : uint8_t {
  kSum = 0,
  kProd = 1,
  kMin = 2,
  kMax = 3,
  kBand = 4,
  kBor = 5,
  kBxor = 6,
  kLand = 7,
  kLor = 8,
  kLxor = 9,
  kMinloc = 10,
  kMaxloc = 11,
  kReplace = 12,  // out = a
  kNoOp = 13,     // out = b
  kUser = 14,
};

using ReduceKernel = void (*)(const void* a, const void* b, void* out, int64_t count);

// For the kinds up to kLxor. Null: the operation is not defined for such numbers, or this build
// cannot compute with them.
ReduceKernel FindKernel(OpKind op, NumberKind kind);

// MPI_MINLOC and MPI_MAXLOC of pairs, as C lays out a structure of the two: the extreme value, and
// of equal ones the lowest index. Gaps between and behind the numbers are left alone. Null: such
// values have no order, such an index is not one, or this build cannot compute with them.
ReduceKernel FindPairKernel(OpKind op, NumberKind value, NumberKind index);

}  // namespace ferry::reduction

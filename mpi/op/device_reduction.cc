#include "mpi/op/device_reduction.h"

namespace ferry::mpi {
namespace {

using gpu::ReductionOp;
using gpu::ReductionType;

// The two count alike, up to the last that devices know.
static_assert(static_cast<int>(OpKind::kSum) == static_cast<int>(ReductionOp::kSum));
static_assert(static_cast<int>(OpKind::kBand) == static_cast<int>(ReductionOp::kBand));
static_assert(static_cast<int>(OpKind::kLxor) == static_cast<int>(ReductionOp::kLxor));
static_assert(static_cast<int>(OpKind::kMaxloc) == static_cast<int>(ReductionOp::kMaxloc));

std::optional<ReductionOp> OperationOf(OpKind kind) {
  return kind <= OpKind::kMaxloc ? std::optional(static_cast<ReductionOp>(kind)) : std::nullopt;
}

std::optional<ReductionType> TypeOf(NumberKind kind) {
  switch (kind) {
    case NumberKind::kInt8:
      return ReductionType::kI8;
    case NumberKind::kInt16:
      return ReductionType::kI16;
    case NumberKind::kInt32:
      return ReductionType::kI32;
    case NumberKind::kInt64:
      return ReductionType::kI64;
    case NumberKind::kUint8:
      return ReductionType::kU8;
    case NumberKind::kUint16:
      return ReductionType::kU16;
    case NumberKind::kUint32:
      return ReductionType::kU32;
    case NumberKind::kUint64:
      return ReductionType::kU64;
    case NumberKind::kFloat32:
      return ReductionType::kF32;
    case NumberKind::kFloat64:
      return ReductionType::kF64;
    case NumberKind::kComplex32:
      return ReductionType::kC32;
    case NumberKind::kComplex64:
      return ReductionType::kC64;
    default:
      return std::nullopt;
  }
}

// Takes only pairs without gaps: collectives pack others, and kernels know no packed pairs.
std::optional<ReductionType> TypeOfPair(NumberKind value, NumberKind index) {
  if (value == NumberKind::kInt32 && index == NumberKind::kInt32) {
    return ReductionType::kI32I32;
  }
  if (value == NumberKind::kFloat32 && index == NumberKind::kInt32) {
    return ReductionType::kF32I32;
  }
  if (value == NumberKind::kFloat32 && index == NumberKind::kFloat32) {
    return ReductionType::kF32F32;
  }
  if (value == NumberKind::kFloat64 && index == NumberKind::kFloat64) {
    return ReductionType::kF64F64;
  }
  return std::nullopt;
}

}  // namespace

std::optional<DeviceReduction> FindDeviceReduction(const Op& op, const Datatype& type) {
  const std::optional<ReductionOp> operation = OperationOf(op.kind());
  const BasicType* const basic = type.predefined();
  if (!operation.has_value() || basic == nullptr) {
    return std::nullopt;
  }
  const std::optional<ReductionType> found =
      basic->IsPair() ? TypeOfPair(basic->kind, basic->index_kind) : TypeOf(basic->kind);
  if (!found.has_value() || !gpu::IsReducible(*found, *operation)) {
    return std::nullopt;
  }
  return DeviceReduction{*found, *operation};
}

}  // namespace ferry::mpi

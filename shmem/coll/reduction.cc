#include "shmem/coll/reduction.h"

namespace ferry::shmem {
namespace {

using reduction::NumberKind;
using reduction::OpKind;

NumberKind KindOf(ReduceType type) {
  switch (type) {
    case ReduceType::kInt8:
      return NumberKind::kInt8;
    case ReduceType::kInt16:
      return NumberKind::kInt16;
    case ReduceType::kInt32:
      return NumberKind::kInt32;
    case ReduceType::kInt64:
      return NumberKind::kInt64;
    case ReduceType::kUint8:
      return NumberKind::kUint8;
    case ReduceType::kUint16:
      return NumberKind::kUint16;
    case ReduceType::kUint32:
      return NumberKind::kUint32;
    case ReduceType::kUint64:
      return NumberKind::kUint64;
    case ReduceType::kFloat:
      return NumberKind::kFloat32;
    case ReduceType::kDouble:
      return NumberKind::kFloat64;
    case ReduceType::kLongDouble:
      return NumberKind::kLongDouble;
    case ReduceType::kComplexFloat:
      return NumberKind::kComplex32;
    case ReduceType::kComplexDouble:
      break;
  }
  return NumberKind::kComplex64;
}

OpKind KindOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kAnd:
      return OpKind::kBand;
    case ReduceOp::kOr:
      return OpKind::kBor;
    case ReduceOp::kXor:
      return OpKind::kBxor;
    case ReduceOp::kMax:
      return OpKind::kMax;
    case ReduceOp::kMin:
      return OpKind::kMin;
    case ReduceOp::kSum:
      return OpKind::kSum;
    case ReduceOp::kProd:
      break;
  }
  return OpKind::kProd;
}

}  // namespace

size_t BytesOf(ReduceType type) { return static_cast<size_t>(reduction::SizeOf(KindOf(type))); }

ElementReducer::ElementReducer(ReduceType type, ReduceOp op)
    : kernel_(reduction::FindKernel(KindOf(op), KindOf(type))) {}

ErrorCode ElementReducer::Reduce(const void* left, const void* right, void* to, size_t count) {
  if (kernel_ == nullptr) {
    return ErrorCode::kUnsupported;
  }
  kernel_(left, right, to, static_cast<int64_t>(count));
  return ErrorCode::kOk;
}

}  // namespace ferry::shmem

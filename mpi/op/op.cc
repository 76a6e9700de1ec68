#include "mpi/op/op.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace ferry::mpi {
namespace {

using reduction::kNumberKinds;
using reduction::ReduceKernel;

constexpr int kKernelOps = static_cast<int>(OpKind::kLxor) + 1;

// The kernels by operation and kind of number, looked up once: a reduction is cut into many calls.
class Kernels {
 public:
  Kernels() {
    for (int op = 0; op < kKernelOps; ++op) {
      for (int kind = 0; kind < kNumberKinds; ++kind) {
        table_[op][kind] = FindKernel(static_cast<OpKind>(op), static_cast<NumberKind>(kind));
      }
    }
  }
  ReduceKernel Find(OpKind op, NumberKind kind) const {
    return table_[static_cast<int>(op)][static_cast<int>(kind)];
  }

 private:
  std::array<std::array<ReduceKernel, kNumberKinds>, kKernelOps> table_;
};

// Null: none.
ReduceKernel KernelFor(OpKind op, const BasicType& type) {
  static const Kernels kernels;
  if (op == OpKind::kMinloc || op == OpKind::kMaxloc) {
    return type.IsPair() ? FindPairKernel(op, type.kind, type.index_kind) : nullptr;
  }
  return type.IsPair() || static_cast<int>(op) >= kKernelOps ? nullptr
                                                             : kernels.Find(op, type.kind);
}

// MPI 5.0, section 6.9.2: which operations take which types; and, beyond it, what all other
// libraries take: logical operations on MPI_AINT, MPI_COUNT and MPI_OFFSET.
bool Permits(OpKind op, TypeClass type_class) {
  const bool integer =
      type_class == TypeClass::kCInteger || type_class == TypeClass::kFortranInteger;
  const bool multi_language = type_class == TypeClass::kMultiLanguage;
  switch (op) {
    case OpKind::kMin:
    case OpKind::kMax:
      return integer || multi_language || type_class == TypeClass::kFloatingPoint;
    case OpKind::kSum:
    case OpKind::kProd:
      return integer || multi_language || type_class == TypeClass::kFloatingPoint ||
             type_class == TypeClass::kComplex;
    case OpKind::kLand:
    case OpKind::kLor:
    case OpKind::kLxor:
      return type_class == TypeClass::kCInteger || multi_language ||
             type_class == TypeClass::kLogical;
    case OpKind::kBand:
    case OpKind::kBor:
    case OpKind::kBxor:
      return integer || multi_language || type_class == TypeClass::kByte;
    case OpKind::kMinloc:
    case OpKind::kMaxloc:
      return type_class == TypeClass::kPair;
    case OpKind::kReplace:
    case OpKind::kNoOp:
      return false;
    case OpKind::kUser:
      return true;
  }
  return false;
}

std::string Describe(const Datatype& type) {
  return type.name().empty() ? "a datatype without a name" : std::string(type.name());
}

}  // namespace

std::span<const PredefinedOp> PredefinedOps() {
  static const std::array<PredefinedOp, 14> ops = {{
      {OpKind::kSum, MPI_SUM, "MPI_SUM"},
      {OpKind::kProd, MPI_PROD, "MPI_PROD"},
      {OpKind::kMin, MPI_MIN, "MPI_MIN"},
      {OpKind::kMax, MPI_MAX, "MPI_MAX"},
      {OpKind::kBand, MPI_BAND, "MPI_BAND"},
      {OpKind::kBor, MPI_BOR, "MPI_BOR"},
      {OpKind::kBxor, MPI_BXOR, "MPI_BXOR"},
      {OpKind::kLand, MPI_LAND, "MPI_LAND"},
      {OpKind::kLor, MPI_LOR, "MPI_LOR"},
      {OpKind::kLxor, MPI_LXOR, "MPI_LXOR"},
      {OpKind::kMinloc, MPI_MINLOC, "MPI_MINLOC"},
      {OpKind::kMaxloc, MPI_MAXLOC, "MPI_MAXLOC"},
      {OpKind::kReplace, MPI_REPLACE, "MPI_REPLACE"},
      {OpKind::kNoOp, MPI_NO_OP, "MPI_NO_OP"},
  }};
  return ops;
}

Op::Op(OpKind kind, MPI_Op handle, std::string_view name)
    : kind_(kind),
      commutes_(kind != OpKind::kReplace && kind != OpKind::kNoOp),
      name_(name),
      handle_(handle) {}

Op::Op(MPI_User_function* function, bool commutes, HandleLender lender)
    : kind_(OpKind::kUser), commutes_(commutes), function_(function), lender_(lender) {}

Op::Op(MPI_User_function_c* function, bool commutes, HandleLender lender)
    : kind_(OpKind::kUser), commutes_(commutes), large_function_(function), lender_(lender) {}

Failure Op::Check(const Datatype& type) const {
  if (kind_ == OpKind::kUser) {
    return {};
  }
  if (kind_ == OpKind::kReplace || kind_ == OpKind::kNoOp) {
    return {MPI_ERR_OP, "op is " + std::string(name_) + ", which is for MPI_Accumulate only"};
  }
  const BasicType* const basic = type.predefined();
  if (basic == nullptr) {
    return {MPI_ERR_OP, "op " + std::string(name_) + " takes predefined datatypes only, not " +
                            Describe(type) + " (make an operation of your own for it)"};
  }
  if (!Permits(kind_, basic->type_class)) {
    return {MPI_ERR_OP, "op " + std::string(name_) + " is not defined for " + Describe(type)};
  }
  if (KernelFor(kind_, *basic) == nullptr) {
    return {MPI_ERR_OP,
            "op " + std::string(name_) + " cannot be computed for " + Describe(type) + " here"};
  }
  return {};
}

void Op::Combine(const void* a, const void* b, void* out, int64_t count,
                 const Datatype& type) const {
  if (const BasicType* const basic = type.predefined(); basic != nullptr) {
    if (const ReduceKernel kernel = KernelFor(kind_, *basic); kernel != nullptr) {
      kernel(a, b, out, count);
      return;
    }
  }
  const void* const chosen = kind_ == OpKind::kReplace ? a : b;
  if (chosen != out) {
    CopyElements(chosen, count, type, out, count, type);
  }
  if (kind_ == OpKind::kUser && count > 0) {
    CallWithHandle(a, out, count, type);
  }
}

void Op::CallWithHandle(const void* in, void* inout, int64_t count, const Datatype& type) const {
  const MPI_Datatype handle = type.handle();
  if (handle != nullptr || lender_.lend == nullptr) {
    CallFunction(in, inout, count, type.extent(), handle);
    return;
  }
  const MPI_Datatype lent = lender_.lend(type);
  CallFunction(in, inout, count, type.extent(), lent);
  lender_.take_back(lent);
}

// A function may write to the handle and the length, so it gets copies. MPI says that it must not
// change `in`, though the interface is older than const.
void Op::CallFunction(const void* in, void* inout, int64_t count, int64_t extent,
                      MPI_Datatype handle) const {
  MPI_Datatype type = handle;
  if (large_function_ != nullptr) {
    MPI_Count length = count;
    large_function_(const_cast<void*>(in), inout, &length, &type);
    return;
  }
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  for (int64_t done = 0; done < count; done += kMost) {
    int length = static_cast<int>(std::min(kMost, count - done));
    type = handle;
    function_(const_cast<char*>(static_cast<const char*>(in)) + done * extent,
              static_cast<char*>(inout) + done * extent, &length, &type);
  }
}

}  // namespace ferry::mpi

// Reductions that devices compute: to = left (operation) right, element by element; or of up to
// eight operands, from left to right, to up to eight places.
//
// Plain data: any thread, nothing blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ferry::gpu {

// The predefined reductions of MPI 5.0, section 6.9.2; the numbers are the kernels'
// (gpu_backends/device/reduction_macros.h).
enum class ReductionOp : uint8_t {
  kSum,
  kProd,
  kMin,
  kMax,
  kBand,
  kBor,
  kBxor,
  kLand,
  kLor,
  kLxor,
  kMinloc,
  kMaxloc,
};

// The numbers that devices compute with. A complex number is two numbers of its kind; a pair is a
// value and an index, as in a structure of C.
enum class ReductionType : uint8_t {
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kF32,
  kC32,
  kI16I32,
  kI32I32,
  kI64I32,
  kF32I32,
  kF32F32,
  kF64,
  kC64,
  kF64I32,
  kF64F64,
};

// Returns true if the operation is defined for numbers of this type.
constexpr bool IsReducible(ReductionType type, ReductionOp op) {
  const bool is_pair = (type >= ReductionType::kI16I32 && type <= ReductionType::kF32F32) ||
                       type >= ReductionType::kF64I32;
  if (is_pair || op >= ReductionOp::kMinloc) {
    return is_pair && op >= ReductionOp::kMinloc;
  }
  if (type <= ReductionType::kU64) {
    return true;
  }
  const bool is_complex = type == ReductionType::kC32 || type == ReductionType::kC64;
  return op <= (is_complex ? ReductionOp::kProd : ReductionOp::kMax);
}

// The bytes from one element to the next, gaps included, and an element's alignment.
struct ElementLayout {
  uint64_t size_bytes = 0;
  uint64_t alignment = 0;
};

constexpr ElementLayout LayoutOf(ReductionType type) {
  switch (type) {
    case ReductionType::kI8:
    case ReductionType::kU8:
      return {1, 1};
    case ReductionType::kI16:
    case ReductionType::kU16:
      return {2, 2};
    case ReductionType::kI32:
    case ReductionType::kU32:
    case ReductionType::kF32:
      return {4, 4};
    case ReductionType::kC32:
    case ReductionType::kI16I32:
    case ReductionType::kI32I32:
    case ReductionType::kF32I32:
    case ReductionType::kF32F32:
      return {8, 4};
    case ReductionType::kI64:
    case ReductionType::kU64:
    case ReductionType::kF64:
      return {8, 8};
    case ReductionType::kI64I32:
    case ReductionType::kC64:
    case ReductionType::kF64I32:
    case ReductionType::kF64F64:
      break;
  }
  return {16, 8};
}

// to = (left op right) op more_operands[0] op ..., which each of `more_results` gets, too.
struct Reduction {
  static constexpr size_t kMost = 8;  // operands, and results: a kernel takes them as arguments

  void* to = nullptr;  // each result may be an operand
  const void* left = nullptr;
  const void* right = nullptr;
  uint64_t count = 0;  // elements
  ReductionType type = ReductionType::kI32;
  ReductionOp op = ReductionOp::kSum;
  // The caller has let the device reach all of the memory, wherever it lies
  // (GpuBackend::LetKernelsReach).
  bool is_reached = false;
  uint8_t more_operand_count = 0;
  uint8_t more_result_count = 0;
  std::array<const void*, kMost - 2> more_operands{};
  std::array<void*, kMost - 1> more_results{};

  uint64_t size_bytes() const { return count * LayoutOf(type).size_bytes; }
  size_t operand_count() const { return size_t{2} + more_operand_count; }
  const void*& operand(size_t i) { return i < 2 ? (i == 0 ? left : right) : more_operands[i - 2]; }
  const void* operand(size_t i) const {
    return i < 2 ? (i == 0 ? left : right) : more_operands[i - 2];
  }
  size_t result_count() const { return size_t{1} + more_result_count; }
  void*& result(size_t i) { return i == 0 ? to : more_results[i - 1]; }
  void* result(size_t i) const { return i == 0 ? to : more_results[i - 1]; }
};

}  // namespace ferry::gpu

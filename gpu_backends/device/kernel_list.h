// Ferry's own kernels, as the host names and launches them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "gpu_backends/api/reduction.h"

namespace ferry::gpu {

// FERRY_KERNELS(X): X(enumerator, name in the image without "ferry_", number of arguments).
// kernels.h, ring_kernels.h, reductions.h and reductions_double.h tell what they do, and their
// arguments.
#define FERRY_KERNELS(X)                   \
  X(WriteWord, write_word, 3)              \
  X(WaitWord, wait_word, 4)                \
  X(BeginMove, begin_move, 5)              \
  X(CopyMove, copy_move, 4)                \
  X(CompleteMove, complete_move, 3)        \
  X(MoveSmall, move_small, 8)              \
  X(CloseFailedPair, close_failed_pair, 5) \
  X(Copy, copy, 4)                         \
  X(Pack, pack, 6)                         \
  X(Unpack, unpack, 6)                     \
  X(Spread, spread, 20)                    \
  X(RingAsk, ring_ask, 8)                  \
  X(ReduceI8, reduce_i8, 19)               \
  X(ReduceU8, reduce_u8, 19)               \
  X(ReduceI16, reduce_i16, 19)             \
  X(ReduceU16, reduce_u16, 19)             \
  X(ReduceI32, reduce_i32, 19)             \
  X(ReduceU32, reduce_u32, 19)             \
  X(ReduceI64, reduce_i64, 19)             \
  X(ReduceU64, reduce_u64, 19)             \
  X(ReduceF32, reduce_f32, 19)             \
  X(ReduceC32, reduce_c32, 19)             \
  X(ReduceI16I32, reduce_i16_i32, 19)      \
  X(ReduceI32I32, reduce_i32_i32, 19)      \
  X(ReduceI64I32, reduce_i64_i32, 19)      \
  X(ReduceF32I32, reduce_f32_i32, 19)      \
  X(ReduceF32F32, reduce_f32_f32, 19)
#define FERRY_DOUBLE_KERNELS(X)       \
  X(ReduceF64, reduce_f64, 19)        \
  X(ReduceC64, reduce_c64, 19)        \
  X(ReduceF64I32, reduce_f64_i32, 19) \
  X(ReduceF64F64, reduce_f64_f64, 19)

enum class Kernel : uint8_t {
#define FERRY_KERNEL(enumerator, name, arguments) k##enumerator,
  FERRY_KERNELS(FERRY_KERNEL) FERRY_DOUBLE_KERNELS(FERRY_KERNEL)
#undef FERRY_KERNEL
};

struct KernelDescription {
  const char* name;
  size_t argument_count;  // of eight bytes each
};

#define FERRY_KERNEL(enumerator, name, arguments) KernelDescription{"ferry_" #name, arguments},
inline constexpr std::array kKernels = {FERRY_KERNELS(FERRY_KERNEL)
                                            FERRY_DOUBLE_KERNELS(FERRY_KERNEL)};
#undef FERRY_KERNEL

inline constexpr size_t kMostKernelArguments = 20;
static_assert(std::all_of(kKernels.begin(), kKernels.end(), [](const KernelDescription& kernel) {
  return kernel.argument_count <= kMostKernelArguments;
}));

inline constexpr const KernelDescription& Describe(Kernel kernel) {
  return kKernels[static_cast<size_t>(kernel)];
}
// Returns true if the kernel is in DoubleKernelImages.
inline constexpr bool IsDouble(Kernel kernel) { return kernel >= Kernel::kReduceF64; }

// Returns the kernel of a reduction, whose arguments are: control, to, left, right, count, the
// operation's number and HowToReduce's bytes, the places of six more operands, and of seven more
// results. None: the operation is not defined for such numbers.
constexpr std::optional<Kernel> ReductionKernel(ReductionType type, ReductionOp op) {
  if (!IsReducible(type, op)) {
    return std::nullopt;
  }
  return static_cast<Kernel>(static_cast<size_t>(Kernel::kReduceI8) + static_cast<size_t>(type));
}
// Returns the argument that tells the operation, and how many more operands and results there are.
constexpr uint64_t HowToReduce(const Reduction& reduction) {
  return static_cast<uint64_t>(reduction.op) | uint64_t{reduction.more_operand_count} << 8 |
         uint64_t{reduction.more_result_count} << 16;
}
static_assert(static_cast<size_t>(Kernel::kReduceI8) + static_cast<size_t>(ReductionType::kF64F64) +
                  1 ==
              kKernels.size());

}  // namespace ferry::gpu

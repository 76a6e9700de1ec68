#include "gpu_backends/host/host_reduction.h"

#include <algorithm>
#include <cstddef>

#include "gpu_backends/device/kernel_list.h"
#include "gpu_backends/device/reductions.h"
#include "gpu_backends/device/reductions_double.h"

namespace ferry::gpu {
namespace {

constexpr ferry_device_word kControl[FERRY_DEVICE_CONTROL_MOVES + 1] =
    {};  // of a stream that goes on

template <typename Element>
using Kernel = void(const ferry_device_word*, Element*, const Element*, const Element*,
                    ferry_device_u64, ferry_device_u64, const Element*, const Element*,
                    const Element*, const Element*, const Element*, const Element*, Element*,
                    Element*, Element*, Element*, Element*, Element*, Element*);

// Of more than two operands, or to several places: so much at a time stays in the first-level
// cache.
constexpr uint64_t kChunkBytes = 4096;

template <typename Element>
void RunPlain(Kernel<Element>* kernel, ReductionOp op, Element* to, const Element* left,
              const Element* right, uint64_t count) {
  kernel(kControl, to, left, right, count, static_cast<ferry_device_u64>(op), nullptr, nullptr,
         nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
         nullptr);
}

// CPUs reduce long runs of two operands faster than single elements of many. All operands of a
// chunk are read before a result is stored, since that may lie where they do.
template <typename Element>
void RunChunks(Kernel<Element>* kernel, const Reduction& reduction) {
  constexpr uint64_t kChunk = kChunkBytes / sizeof(Element);
  Element partial[kChunk];
  for (uint64_t at = 0; at < reduction.count; at += kChunk) {
    const uint64_t count = std::min(kChunk, reduction.count - at);
    const Element* sum = static_cast<const Element*>(reduction.left) + at;
    for (size_t i = 1; i < reduction.operand_count(); ++i) {
      RunPlain(kernel, reduction.op, partial, sum,
               static_cast<const Element*>(reduction.operand(i)) + at, count);
      sum = partial;
    }
    for (size_t i = 0; i < reduction.result_count(); ++i) {
      std::copy_n(partial, count, static_cast<Element*>(reduction.result(i)) + at);
    }
  }
}

template <typename Element>
void Run(Kernel<Element>* kernel, const Reduction& reduction) {
  if (reduction.operand_count() == 2 && reduction.result_count() == 1) {
    RunPlain(kernel, reduction.op, static_cast<Element*>(reduction.to),
             static_cast<const Element*>(reduction.left),
             static_cast<const Element*>(reduction.right), reduction.count);
  } else {
    RunChunks(kernel, reduction);
  }
}

// Of elements with gaps, which a copy of chunks would not leave alone.
template <typename Pair>
void RunPairs(Kernel<Pair>* kernel, const Reduction& reduction) {
  const auto operand = [&](size_t i) { return static_cast<const Pair*>(reduction.operand(i)); };
  const auto result = [&](size_t i) { return static_cast<Pair*>(reduction.result(i)); };
  kernel(kControl, result(0), operand(0), operand(1), reduction.count, HowToReduce(reduction),
         operand(2), operand(3), operand(4), operand(5), operand(6), operand(7), result(1),
         result(2), result(3), result(4), result(5), result(6), result(7));
}

}  // namespace

void ReduceOnHost(const Reduction& reduction) {
  switch (reduction.type) {
    case ReductionType::kI8:
      return Run(ferry_reduce_i8, reduction);
    case ReductionType::kU8:
      return Run(ferry_reduce_u8, reduction);
    case ReductionType::kI16:
      return Run(ferry_reduce_i16, reduction);
    case ReductionType::kU16:
      return Run(ferry_reduce_u16, reduction);
    case ReductionType::kI32:
      return Run(ferry_reduce_i32, reduction);
    case ReductionType::kU32:
      return Run(ferry_reduce_u32, reduction);
    case ReductionType::kI64:
      return Run(ferry_reduce_i64, reduction);
    case ReductionType::kU64:
      return Run(ferry_reduce_u64, reduction);
    case ReductionType::kF32:
      return Run(ferry_reduce_f32, reduction);
    case ReductionType::kC32:
      return Run(ferry_reduce_c32, reduction);
    case ReductionType::kI16I32:
      return RunPairs(ferry_reduce_i16_i32, reduction);
    case ReductionType::kI32I32:
      return RunPairs(ferry_reduce_i32_i32, reduction);
    case ReductionType::kI64I32:
      return RunPairs(ferry_reduce_i64_i32, reduction);
    case ReductionType::kF32I32:
      return RunPairs(ferry_reduce_f32_i32, reduction);
    case ReductionType::kF32F32:
      return RunPairs(ferry_reduce_f32_f32, reduction);
    case ReductionType::kF64:
      return Run(ferry_reduce_f64, reduction);
    case ReductionType::kC64:
      return Run(ferry_reduce_c64, reduction);
    case ReductionType::kF64I32:
      return RunPairs(ferry_reduce_f64_i32, reduction);
    case ReductionType::kF64F64:
      return RunPairs(ferry_reduce_f64_f64, reduction);
  }
}

}  // namespace ferry::gpu

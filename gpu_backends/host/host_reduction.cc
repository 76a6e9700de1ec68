#include "gpu_backends/host/host_reduction.h"

#include "gpu_backends/device/reductions.h"
#include "gpu_backends/device/reductions_double.h"

namespace ferry::gpu {
namespace {

constexpr ferry_device_word kControl[FERRY_DEVICE_CONTROL_MOVES + 1] =
    {};  // of a stream that goes on

template <typename Element>
using Kernel = void(const ferry_device_word*, Element*, const Element*, const Element*,
                    ferry_device_u64, ferry_device_u64);

template <typename Element>
void Run(Kernel<Element>* kernel, const Reduction& reduction) {
  kernel(kControl, static_cast<Element*>(reduction.to), static_cast<const Element*>(reduction.left),
         static_cast<const Element*>(reduction.right), reduction.count,
         static_cast<ferry_device_u64>(reduction.op));
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
      return Run(ferry_reduce_i16_i32, reduction);
    case ReductionType::kI32I32:
      return Run(ferry_reduce_i32_i32, reduction);
    case ReductionType::kI64I32:
      return Run(ferry_reduce_i64_i32, reduction);
    case ReductionType::kF32I32:
      return Run(ferry_reduce_f32_i32, reduction);
    case ReductionType::kF32F32:
      return Run(ferry_reduce_f32_f32, reduction);
    case ReductionType::kF64:
      return Run(ferry_reduce_f64, reduction);
    case ReductionType::kC64:
      return Run(ferry_reduce_c64, reduction);
    case ReductionType::kF64I32:
      return Run(ferry_reduce_f64_i32, reduction);
    case ReductionType::kF64F64:
      return Run(ferry_reduce_f64_f64, reduction);
  }
}

}  // namespace ferry::gpu

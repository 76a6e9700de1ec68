// Conformance: reductions by the device.
#include <algorithm>
#include <complex>
#include <type_traits>
#include <vector>

#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {
namespace {

struct FloatInt {
  float value;
  int32_t index;
  bool operator==(const FloatInt&) const = default;
};

// Small enough for exact sums and products, and with equal values among pairs.
template <typename T>
std::vector<T> Numbers(size_t count, unsigned seed) {
  std::vector<T> numbers(count);
  for (T& number : numbers) {
    seed = seed * 1103515245 + 12345;
    const int small = static_cast<int>(seed >> 16) % 64 - 32;
    if constexpr (std::is_same_v<T, FloatInt>) {
      number = {static_cast<float>(small / 16), static_cast<int32_t>(seed >> 24)};
    } else if constexpr (std::is_arithmetic_v<T>) {
      number = static_cast<T>(small);
    } else {
      number = T(static_cast<typename T::value_type>(small), 3);
    }
  }
  return numbers;
}

template <typename T>
T Expect(ReductionOp op, T a, T b) {
  if constexpr (std::is_same_v<T, FloatInt>) {
    if (a.value == b.value) {
      return {a.value, std::min(a.index, b.index)};
    }
    return (op == ReductionOp::kMaxloc) == (a.value > b.value) ? a : b;
  } else {
    switch (op) {
      case ReductionOp::kSum:
        return a + b;
      case ReductionOp::kProd:
        return a * b;
      default:
        break;
    }
    if constexpr (std::is_arithmetic_v<T>) {
      return op == ReductionOp::kMin ? std::min(a, b) : std::max(a, b);
    }
    return {};
  }
}

class ReduceConformance : public GpuBackendConformance {
 protected:
  void SetUp() override {
    GpuBackendConformance::SetUp();
    if (IsSkipped()) {
      return;
    }
    ExpectKernels(stream().Reduce({}));
  }

  enum class To { kApart, kLeft, kRight };

  // From device memory and pinned memory, into either or apart from both.
  template <typename T>
  void ExpectReduces(ReductionType type, ReductionOp op, size_t count, To where) {
    SCOPED_TRACE("type " + std::to_string(static_cast<int>(type)) + ", operation " +
                 std::to_string(static_cast<int>(op)) + ", " + std::to_string(count) +
                 " elements, result " + std::to_string(static_cast<int>(where)));
    const std::vector<T> a = Numbers<T>(count, 1);
    const std::vector<T> b = Numbers<T>(count, 2);
    std::vector<T> expected(count);
    for (size_t i = 0; i < count; ++i) {
      expected[i] = Expect(op, a[i], b[i]);
    }
    const uint64_t bytes = count * sizeof(T);
    ASSERT_EQ(bytes, (Reduction{.count = count, .type = type}.size_bytes()));
    const Memory left = Device(bytes);
    const Memory right = Pinned(bytes);
    const Memory apart = Device(bytes);
    void* const to = where == To::kApart  ? apart.data()
                     : where == To::kLeft ? left.data()
                                          : right.data();
    std::vector<T> got(count);
    FERRY_EXPECT_OK(stream().CopyAsync(left.data(), a.data(), bytes));
    FERRY_EXPECT_OK(stream().CopyAsync(right.data(), b.data(), bytes));
    FERRY_EXPECT_OK(stream().Reduce({to, left.data(), right.data(), count, type, op}));
    FERRY_EXPECT_OK(stream().CopyAsync(got.data(), to, bytes));
    FERRY_EXPECT_OK(stream().Synchronize());
    EXPECT_TRUE(got == expected);
  }

  template <typename T>
  void ExpectReducesAll(ReductionType type, const std::vector<ReductionOp>& ops) {
    for (const ReductionOp op : ops) {
      ExpectReduces<T>(type, op, 1, To::kApart);
      ExpectReduces<T>(type, op, 1000, To::kLeft);
      ExpectReduces<T>(type, op, 1000, To::kRight);
      ExpectReduces<T>(type, op, 40'001, To::kApart);
    }
  }
};

constexpr auto kSum = ReductionOp::kSum;
constexpr auto kProd = ReductionOp::kProd;
constexpr auto kMin = ReductionOp::kMin;
constexpr auto kMax = ReductionOp::kMax;

// Every kernel by itself is device_kernels_test's; here are one or two of each shape.
TEST_P(ReduceConformance, Integers) {
  ExpectReducesAll<uint8_t>(ReductionType::kU8, {kSum, kMax});
  ExpectReducesAll<int32_t>(ReductionType::kI32, {kSum, kProd, kMin, kMax});
  ExpectReducesAll<int64_t>(ReductionType::kI64, {kSum, kMin});
}

TEST_P(ReduceConformance, FloatingPointNumbers) {
  ExpectReducesAll<float>(ReductionType::kF32, {kSum, kProd, kMin, kMax});
  ExpectReducesAll<std::complex<float>>(ReductionType::kC32, {kSum, kProd});
}

TEST_P(ReduceConformance, DoublePrecision) {
  const Status known = stream().Reduce({.type = ReductionType::kF64});
  if (known.code() == ErrorCode::kUnsupported) {
    GTEST_SKIP() << known.message();
  }
  ExpectReducesAll<double>(ReductionType::kF64, {kSum, kMax});
  ExpectReducesAll<std::complex<double>>(ReductionType::kC64, {kProd});
}

TEST_P(ReduceConformance, Pairs) {
  ExpectReducesAll<FloatInt>(ReductionType::kF32I32, {ReductionOp::kMinloc, ReductionOp::kMaxloc});
}

// The order counts: sums of floating-point numbers of different size differ by it. The last operand
// is a result, too.
TEST_P(ReduceConformance, ManyOperandsAreReducedFromLeftToRight) {
  for (const size_t operands : {2, 3, 8}) {
    for (const size_t results : {1, 2, 8}) {
      for (const size_t count : {1, 1000, 40'001}) {
        SCOPED_TRACE(std::to_string(operands) + " operands, " + std::to_string(results) +
                     " results of " + std::to_string(count) + " elements");
        Reduction reduction{.count = count,
                            .type = ReductionType::kF32,
                            .more_operand_count = static_cast<uint8_t>(operands - 2),
                            .more_result_count = static_cast<uint8_t>(results - 1)};
        const uint64_t bytes = reduction.size_bytes();
        std::vector<Memory> memory;
        std::vector<float> expected;
        for (size_t i = 0; i < operands; ++i) {
          std::vector<float> values = Numbers<float>(count, static_cast<unsigned>(i + 1));
          for (float& value : values) {
            value *= i % 2 == 0 ? 1e7F : 0.7F;
          }
          memory.push_back(i == 1 ? Pinned(bytes) : Device(bytes));
          reduction.operand(i) = memory.back().data();
          FERRY_EXPECT_OK(stream().CopyAsync(memory.back().data(), values.data(), bytes));
          FERRY_EXPECT_OK(stream().Synchronize());
          for (size_t at = 0; i > 0 && at < count; ++at) {
            values[at] = expected[at] + values[at];
          }
          expected = values;
        }
        for (size_t i = 0; i < results; ++i) {
          if (i + 1 < results) {
            memory.push_back(Device(bytes));
          }
          reduction.result(i) = i + 1 < results
                                    ? memory.back().data()
                                    : const_cast<void*>(reduction.operand(operands - 1));
        }
        FERRY_EXPECT_OK(stream().Reduce(reduction));
        for (size_t i = 0; i < results; ++i) {
          std::vector<float> got(count);
          FERRY_EXPECT_OK(stream().CopyAsync(got.data(), reduction.result(i), bytes));
          FERRY_EXPECT_OK(stream().Synchronize());
          EXPECT_TRUE(got == expected) << i;
        }
      }
    }
  }
}

TEST_P(ReduceConformance, RejectsMoreThanItTakes) {
  const Memory memory = Device(4096);
  const auto at = [&](size_t i) { return memory.bytes() + i * 256; };
  Reduction reduction{at(0), at(1), at(2), 8, ReductionType::kI64};
  reduction.more_operand_count = 1;
  FERRY_EXPECT_CODE(kInvalidArgument, stream().Reduce(reduction));  // null
  reduction.more_operands[0] = at(0) + 8;
  FERRY_EXPECT_CODE(kInvalidArgument, stream().Reduce(reduction));  // overlaps the result
  reduction.more_operands[0] = at(3);
  reduction.more_result_count = 1;
  FERRY_EXPECT_CODE(kInvalidArgument, stream().Reduce(reduction));  // null
  for (uint8_t* const place : {at(0), at(0) + 8, at(3) + 8}) {
    reduction.more_results[0] = place;
    FERRY_EXPECT_CODE(kInvalidArgument, stream().Reduce(reduction));
  }
  Bytes ordinary(4096);
  reduction.more_results[0] =
      ordinary.data() + 8 - reinterpret_cast<uintptr_t>(ordinary.data()) % 8;
  FERRY_EXPECT_CODE(kInvalidBuffer, stream().Reduce(reduction));
  reduction.more_results[0] = at(4);
  reduction.more_operand_count = Reduction::kMost - 1;
  FERRY_EXPECT_CODE(kInvalidArgument, stream().Reduce(reduction));
  reduction.more_operand_count = 1;
  reduction.more_result_count = Reduction::kMost;
  FERRY_EXPECT_CODE(kInvalidArgument, stream().Reduce(reduction));
  reduction.more_result_count = 1;
  FERRY_EXPECT_OK(stream().Reduce(reduction));
  FERRY_EXPECT_OK(stream().Synchronize());
}

TEST_P(ReduceConformance, RejectsWhatIsNoReduction) {
  const Memory left = Device(4096);
  const Memory right = Device(4096);
  const Memory to = Pinned(4096);
  Bytes ordinary(4096 + 8);
  constexpr auto kType = ReductionType::kI64;
  Stream& on = stream();
  FERRY_EXPECT_CODE(kInvalidArgument, on.Reduce({nullptr, left.data(), right.data(), 8, kType}));
  FERRY_EXPECT_CODE(kInvalidArgument, on.Reduce({to.data(), nullptr, right.data(), 8, kType}));
  FERRY_EXPECT_CODE(kInvalidArgument, on.Reduce({to.data(), left.data(), nullptr, 8, kType}));
  FERRY_EXPECT_CODE(kInvalidArgument,  // too many
                    on.Reduce({to.data(), left.data(), right.data(), UINT64_MAX / 8, kType}));
  FERRY_EXPECT_CODE(kInvalidArgument,  // not aligned
                    on.Reduce({to.data(), left.bytes() + 4, right.data(), 8, kType}));
  FERRY_EXPECT_CODE(kInvalidArgument,  // overlap
                    on.Reduce({to.data(), to.bytes() + 8, right.data(), 8, kType}));
  FERRY_EXPECT_CODE(kInvalidArgument, on.Reduce({to.data(), left.data(), right.data(), 8,
                                                 ReductionType::kF32, ReductionOp::kBand}));
  FERRY_EXPECT_CODE(kInvalidArgument, on.Reduce({to.data(), left.data(), right.data(), 8,
                                                 ReductionType::kI64, ReductionOp::kMaxloc}));
  FERRY_EXPECT_CODE(kInvalidArgument,
                    on.Reduce({.type = ReductionType::kF32I32, .op = ReductionOp::kSum}));
  FERRY_EXPECT_CODE(kInvalidBuffer,
                    on.Reduce({to.data(), left.bytes() + 8, right.data(), 512, kType}));
  FERRY_EXPECT_CODE(kInvalidBuffer, on.Reduce({ordinary.data() + 8 -
                                                   reinterpret_cast<uintptr_t>(ordinary.data()) % 8,
                                               left.data(), right.data(), 8, kType}));
  // None of that poisoned the stream, and nothing is fine.
  FERRY_EXPECT_OK(on.Reduce({nullptr, nullptr, nullptr, 0, kType}));
  FERRY_EXPECT_OK(on.Reduce({to.data(), left.data(), right.data(), 512, kType}));
  FERRY_EXPECT_OK(on.Synchronize());
}

INSTANTIATE_TEST_SUITE_P(Backends, ReduceConformance, testing::ValuesIn(ConformanceBackends()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace ferry::gpu

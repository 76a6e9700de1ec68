// Accumulates: what every operation makes of every kind of element, by one CPU operation and alone,
// and that elements of up to 16 bytes change whole.
#include "shm/accumulate.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "shm/atomic_operation.h"
#include "tests/support/machine_floats.h"

namespace ferry::shm {
namespace {

using reduction::NumberKind;
using reduction::OpKind;

constexpr int kOperations = static_cast<int>(OpKind::kUser);

// std::is_integral and std::numeric_limits leave out __int128.
template <typename T>
constexpr bool kIsInteger = std::is_integral_v<T> || std::is_same_v<T, __int128>;

template <typename T>
T Largest() {
  if constexpr (std::is_same_v<T, __int128>) {
    return static_cast<T>(~(static_cast<unsigned __int128>(1) << 127));
  } else if constexpr (std::is_same_v<T, tests::Float128>) {
    return T(std::numeric_limits<double>::max()) * T(std::numeric_limits<double>::max());
  } else {
    return std::numeric_limits<T>::max();
  }
}

// The result of C for one number; nothing: there is no such operation on such numbers. `target`
// first.
template <typename T>
std::optional<T> Expected(OpKind operation, T target, T operand) {
  using Wide = unsigned __int128;
  const auto of_integers = [&](auto compute) -> std::optional<T> {
    if constexpr (kIsInteger<T>) {
      return static_cast<T>(compute(target, operand));
    } else {
      return std::nullopt;
    }
  };
  switch (operation) {
    case OpKind::kSum:
      if constexpr (kIsInteger<T>) {
        return static_cast<T>(static_cast<Wide>(target) + static_cast<Wide>(operand));
      } else {
        return target + operand;
      }
    case OpKind::kProd:
      if constexpr (kIsInteger<T>) {
        return static_cast<T>(static_cast<Wide>(target) * static_cast<Wide>(operand));
      } else {
        return target * operand;
      }
    case OpKind::kMin:
      return operand < target ? operand : target;
    case OpKind::kMax:
      return target < operand ? operand : target;
    case OpKind::kBand:
      return of_integers([](auto a, auto b) { return a & b; });
    case OpKind::kBor:
      return of_integers([](auto a, auto b) { return a | b; });
    case OpKind::kBxor:
      return of_integers([](auto a, auto b) { return a ^ b; });
    case OpKind::kLand:
      return of_integers([](auto a, auto b) { return a != 0 && b != 0; });
    case OpKind::kLor:
      return of_integers([](auto a, auto b) { return a != 0 || b != 0; });
    case OpKind::kLxor:
      return of_integers([](auto a, auto b) { return (a != 0) != (b != 0); });
    case OpKind::kReplace:
      return operand;
    case OpKind::kNoOp:
      return target;
    default:
      return std::nullopt;
  }
}

using ApplyIt = void (Accumulation::*)(std::byte*, const void*, void*, uint64_t) const;
constexpr ApplyIt kWays[] = {&Accumulation::Apply, &Accumulation::ApplyAlone};

template <typename T>
struct Row {
  // Of the same bits as what they are compared with, where nothing is between.
  alignas(16) T target[3];
};

template <typename T>
void ExpectAllOperations(NumberKind kind) {
  const T targets[] = {T(5), T(0), Largest<T>()};
  const T operands[] = {T(3), T(7), T(2)};
  for (int number = 0; number < kOperations; ++number) {
    const auto operation = static_cast<OpKind>(number);
    const std::optional<Accumulation> made = Accumulation::Of(operation, kind);
    ASSERT_EQ(made.has_value(), Expected(operation, targets[0], operands[0]).has_value())
        << "operation " << number << " on kind " << static_cast<int>(kind);
    if (!made) {
      continue;
    }
    EXPECT_EQ(made->element_bytes(), sizeof(T));
    const std::optional<Accumulation> again = Accumulation::Unpack(made->packed());
    ASSERT_TRUE(again);
    for (const ApplyIt apply : kWays) {
      for (const bool is_asked : {true, false}) {
        Row<T> row;
        std::memcpy(row.target, targets, sizeof(targets));
        T found[3] = {T(1), T(1), T(1)};
        const void* const from = made->takes_operands() ? operands : nullptr;
        (*again.*apply)(reinterpret_cast<std::byte*>(row.target), from, is_asked ? found : nullptr,
                        3);
        for (int i = 0; i < 3; ++i) {
          EXPECT_TRUE(row.target[i] == *Expected(operation, targets[i], operands[i]))
              << "operation " << number << " on kind " << static_cast<int>(kind) << ", element "
              << i;
          EXPECT_TRUE(found[i] == (is_asked ? targets[i] : T(1)));
        }
      }
    }
  }
}

TEST(AccumulateTest, AllOperationsOnAllNumbers) {
  ExpectAllOperations<int8_t>(NumberKind::kInt8);
  ExpectAllOperations<int16_t>(NumberKind::kInt16);
  ExpectAllOperations<int32_t>(NumberKind::kInt32);
  ExpectAllOperations<int64_t>(NumberKind::kInt64);
  ExpectAllOperations<uint8_t>(NumberKind::kUint8);
  ExpectAllOperations<uint16_t>(NumberKind::kUint16);
  ExpectAllOperations<uint32_t>(NumberKind::kUint32);
  ExpectAllOperations<uint64_t>(NumberKind::kUint64);
  ExpectAllOperations<float>(NumberKind::kFloat32);
  ExpectAllOperations<double>(NumberKind::kFloat64);
  ExpectAllOperations<long double>(NumberKind::kLongDouble);
  ExpectAllOperations<__int128>(NumberKind::kInt128);
  ExpectAllOperations<tests::Float128>(NumberKind::kFloat128);
}

// Numbers that a compiler may not know can be moved in any case: as words of their size.
template <typename Word>
void ExpectMoves(NumberKind kind) {
  for (const ApplyIt apply : kWays) {
    for (const OpKind operation : {OpKind::kReplace, OpKind::kNoOp}) {
      const std::optional<Accumulation> made = Accumulation::Of(operation, kind);
      ASSERT_TRUE(made);
      EXPECT_EQ(made->element_bytes(), sizeof(Word));
      const Word before[3] = {0x3c00, 0x4000, 0x4200};
      const Word operands[3] = {0x4400, 0x4500, 0x4600};
      Word target[3] = {before[0], before[1], before[2]};
      Word found[3] = {};
      (*made.*apply)(reinterpret_cast<std::byte*>(target), operands, found, 3);
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(found[i], before[i]);
        EXPECT_EQ(target[i], operation == OpKind::kReplace ? operands[i] : before[i]);
      }
    }
  }
}

TEST(AccumulateTest, HalvesAreMovedAndCombinedIfTheCompilerKnowsThem) {
  ExpectMoves<uint16_t>(NumberKind::kFloat16);
  ExpectMoves<uint32_t>(NumberKind::kComplex16);
#ifdef FERRY_TEST_HAS_FLOAT16
  const std::optional<Accumulation> sum = Accumulation::Of(OpKind::kSum, NumberKind::kFloat16);
  ASSERT_TRUE(sum);
  uint16_t target = 0x3c00;  // 1
  const uint16_t operand = 0x4000;
  sum->Apply(reinterpret_cast<std::byte*>(&target), &operand, nullptr, 1);
  EXPECT_EQ(target, 0x4200);
#else
  for (int number = 0; number < static_cast<int>(OpKind::kReplace); ++number) {
    EXPECT_FALSE(Accumulation::Of(static_cast<OpKind>(number), NumberKind::kFloat16)) << number;
    EXPECT_FALSE(Accumulation::Of(static_cast<OpKind>(number), NumberKind::kComplex16)) << number;
  }
#endif
}

// Sums, products, replacing and looking; complex numbers have no order and no bits.
template <typename T>
void ExpectComplex(NumberKind kind) {
  struct Number {
    T real, imaginary;
    bool operator==(const Number&) const = default;
  };
  constexpr Number kTarget{1, 2};
  constexpr Number kOperand{3, 4};
  for (int number = 0; number < kOperations; ++number) {
    const auto operation = static_cast<OpKind>(number);
    std::optional<Number> expected;
    switch (operation) {
      case OpKind::kSum:
        expected = {4, 6};
        break;
      case OpKind::kProd:
        expected = {-5, 10};
        break;
      case OpKind::kReplace:
        expected = kOperand;
        break;
      case OpKind::kNoOp:
        expected = kTarget;
        break;
      default:
        break;
    }
    const std::optional<Accumulation> made = Accumulation::Of(operation, kind);
    ASSERT_EQ(made.has_value(), expected.has_value()) << "operation " << number;
    for (const ApplyIt apply : kWays) {
      alignas(16) Number target = kTarget;
      Number found{};
      const bool can = made && (apply == &Accumulation::ApplyAlone ||
                                made->IsAtomicAt(reinterpret_cast<uint64_t>(&target)));
      if (can) {
        (*made.*apply)(reinterpret_cast<std::byte*>(&target), &kOperand, &found, 1);
        EXPECT_EQ(target, *expected) << "operation " << number << " on " << sizeof(Number);
        EXPECT_EQ(found, kTarget);
      }
    }
  }
}

TEST(AccumulateTest, ComplexNumbers) {
  ExpectComplex<float>(NumberKind::kComplex32);
  ExpectComplex<double>(NumberKind::kComplex64);
  ExpectComplex<long double>(NumberKind::kComplexLongDouble);
  ExpectComplex<tests::Float128>(NumberKind::kComplex128);
}

template <typename Value, typename Index>
void ExpectPairs(NumberKind value, NumberKind index) {
  struct Pair {
    Value value;
    Index index;
  };
  struct Case {
    OpKind operation;
    Value value;
    Index index;
    Value then_value;
    Index then_index;
  };
  const Case cases[] = {
      {OpKind::kMinloc, 4, 1, 4, 1},  {OpKind::kMinloc, 6, 1, 5, 7}, {OpKind::kMinloc, 5, 1, 5, 1},
      {OpKind::kMaxloc, 4, 1, 5, 7},  {OpKind::kMaxloc, 6, 1, 6, 1}, {OpKind::kMaxloc, 5, 9, 5, 7},
      {OpKind::kReplace, 8, 9, 8, 9}, {OpKind::kNoOp, 8, 9, 5, 7},
  };
  constexpr int kGap = 0x5c;
  for (const Case& one : cases) {
    const std::optional<Accumulation> made = Accumulation::Of(one.operation, value, index);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->element_bytes(), sizeof(Pair));
    ASSERT_EQ(Accumulation::Unpack(made->packed())->packed(), made->packed());
    for (const ApplyIt apply : kWays) {
      alignas(32) std::byte target[sizeof(Pair)];
      if (apply == &Accumulation::Apply && !made->IsAtomicAt(reinterpret_cast<uint64_t>(target))) {
        continue;
      }
      std::byte expected[sizeof(Pair)];
      std::byte operand[sizeof(Pair)];
      const auto fill = [](std::byte* bytes, int gap, Value its_value, Index its_index) {
        std::memset(bytes, gap, sizeof(Pair));
        // Gaps inside a number are copied with it.
        std::memset(bytes, 0, sizeof(Value));
        std::memset(bytes + offsetof(Pair, index), 0, sizeof(Index));
        // A long double of x86 has 10 bytes, and a gap.
        const bool has_gap = std::is_same_v<Value, long double> && LDBL_MANT_DIG == 64;
        const size_t bytes_of_value = has_gap ? 10 : sizeof(Value);
        std::memcpy(bytes, &its_value, bytes_of_value);
        std::memcpy(bytes + offsetof(Pair, index), &its_index, sizeof(Index));
      };
      fill(target, kGap, 5, 7);
      fill(expected, kGap, one.then_value, one.then_index);
      fill(operand, 0, one.value, one.index);
      (*made.*apply)(target, operand, nullptr, 1);
      Pair now;
      std::memcpy(&now, target, sizeof(now));
      EXPECT_EQ(now.value, one.then_value);
      EXPECT_EQ(now.index, one.then_index);
      if (sizeof(Value) < 16) {
        EXPECT_EQ(std::memcmp(target, expected, sizeof(Pair)), 0) << "a gap has changed";
      }
    }
  }
  EXPECT_FALSE(Accumulation::Of(OpKind::kSum, value, index));
}

TEST(AccumulateTest, Pairs) {
  ExpectPairs<float, int>(NumberKind::kFloat32, NumberKind::kInt32);
  ExpectPairs<double, int>(NumberKind::kFloat64, NumberKind::kInt32);
  ExpectPairs<long, int>(NumberKind::kInt64, NumberKind::kInt32);
  ExpectPairs<int, int>(NumberKind::kInt32, NumberKind::kInt32);
  ExpectPairs<short, int>(NumberKind::kInt16, NumberKind::kInt32);
  ExpectPairs<long double, int>(NumberKind::kLongDouble, NumberKind::kInt32);
  ExpectPairs<float, float>(NumberKind::kFloat32, NumberKind::kFloat32);
  EXPECT_FALSE(Accumulation::Of(OpKind::kMinloc, NumberKind::kInt32));
  EXPECT_FALSE(Accumulation::Of(OpKind::kMinloc, NumberKind::kComplex32, NumberKind::kInt32));
}

// The last pair ends with a gap, and the memory before it: whoever looks further dies.
TEST(AccumulateTest, AloneNobodyTouchesWhatLiesBehindTheLastPair) {
  struct Pair {
    long value;
    int index;
  };
  constexpr size_t kNumbers = offsetof(Pair, index) + sizeof(int);
  constexpr size_t kPairs = 3;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const pages =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  auto* const end = static_cast<std::byte*>(pages) + page;
  ASSERT_EQ(mprotect(end, page, PROT_NONE), 0);
  std::byte* const target = end - (kPairs - 1) * sizeof(Pair) - kNumbers;
  for (const OpKind operation : {OpKind::kMaxloc, OpKind::kReplace, OpKind::kNoOp}) {
    const Accumulation what = *Accumulation::Of(operation, NumberKind::kInt64, NumberKind::kInt32);
    EXPECT_TRUE(what.has_gaps());
    EXPECT_EQ(what.stretches().value.size_bytes, kNumbers);
    EXPECT_EQ(what.stretches().index.size_bytes, 0U);
    Pair before[kPairs];
    Pair operands[kPairs];
    Pair found[kPairs];
    std::memset(static_cast<void*>(before), 0x5c, sizeof(before));
    std::memset(static_cast<void*>(operands), 0x5c, sizeof(operands));
    for (size_t i = 0; i < kPairs; ++i) {
      before[i].value = 5;
      before[i].index = 1;
      operands[i].value = 7;
      operands[i].index = static_cast<int>(i);
    }
    std::memcpy(target, before, static_cast<size_t>(end - target));
    what.ApplyAlone(target, operands, found, kPairs);
    for (size_t i = 0; i < kPairs; ++i) {
      Pair now{};
      std::memcpy(&now, target + i * sizeof(Pair), kNumbers);
      EXPECT_EQ(now.value, operation == OpKind::kNoOp ? 5 : 7);
      EXPECT_EQ(now.index, operation == OpKind::kNoOp ? 1 : static_cast<int>(i));
      EXPECT_EQ(found[i].value, 5);
      EXPECT_EQ(found[i].index, 1);
      // Nothing of the one who changes it comes back in gaps.
      int gap = 1;
      std::memcpy(&gap, reinterpret_cast<const std::byte*>(&found[i]) + kNumbers, sizeof(gap));
      EXPECT_EQ(gap, 0);
    }
  }
  EXPECT_EQ(munmap(pages, 2 * page), 0);
}

// The numbers are what nodes tell each other: "bump kProtocolVersion".
TEST(AccumulateTest, PackedWordsAreCheckedAndNeverChange) {
  EXPECT_EQ(Accumulation::Of(OpKind::kSum, NumberKind::kInt8)->packed(), 0x7f0000U);
  EXPECT_EQ(Accumulation::Of(OpKind::kMaxloc, NumberKind::kFloat64, NumberKind::kInt32)->packed(),
            0x020b0bU);
  EXPECT_EQ(Accumulation::Of(OpKind::kNoOp, NumberKind::kComplex128)->packed(), 0x7f120dU);
  EXPECT_EQ(Accumulation::Of(OpKind::kReplace, NumberKind::kFloat16)->packed(), 0x7f090cU);
  uint32_t known = 0;
  for (uint32_t packed = 0; packed < 1U << 24; ++packed) {
    const std::optional<Accumulation> made = Accumulation::Unpack(packed);
    if (made) {
      ++known;
      ASSERT_EQ(made->packed(), packed);
      ASSERT_LE(made->element_bytes(), Accumulation::kMostElementBytes);
    }
    if ((packed & 0xffff) == 0x1fff) {
      packed |= 0xffff;  // no kind has such a number
    }
  }
  EXPECT_GT(known, 19U * 4);
  for (const uint32_t packed : {UINT32_MAX, 1U << 24, 0x7f0000U | 14, 0x7f1300U, 0x130000U | 10}) {
    EXPECT_FALSE(Accumulation::Unpack(packed)) << packed;
  }
}

TEST(AccumulateTest, SaysWhereItIsAtomic) {
  const auto at = [](NumberKind kind, uint64_t address) {
    return Accumulation::Of(OpKind::kReplace, kind)->IsAtomicAt(address);
  };
  EXPECT_TRUE(at(NumberKind::kInt8, 1));
  EXPECT_TRUE(at(NumberKind::kInt16, 2));
  EXPECT_FALSE(at(NumberKind::kInt16, 1));
  EXPECT_TRUE(at(NumberKind::kFloat64, 8));
  EXPECT_FALSE(at(NumberKind::kFloat64, 4));
  EXPECT_FALSE(at(NumberKind::kComplex32, 4));
  EXPECT_EQ(at(NumberKind::kComplex64, 16), kHasWideWords);
  EXPECT_FALSE(at(NumberKind::kComplex64, 8));
  EXPECT_EQ(at(NumberKind::kInt128, 32), kHasWideWords);
  EXPECT_EQ(at(NumberKind::kFloat128, 48), kHasWideWords);
  EXPECT_FALSE(at(NumberKind::kFloat128, 24));
  EXPECT_FALSE(at(NumberKind::kComplex128, 32));
  EXPECT_FALSE(at(NumberKind::kComplexLongDouble, 32));
}

constexpr int kThreads = 4;
constexpr int kRounds = 20'000;

void OnThreads(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back(work, thread);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

template <typename T>
void ExpectSum(NumberKind kind) {
  const Accumulation sum = *Accumulation::Of(OpKind::kSum, kind);
  alignas(16) T words[2] = {T(0), T(0)};
  OnThreads([&](int) {
    const T ones[2] = {T(1), T(2)};
    for (int i = 0; i < kRounds; ++i) {
      sum.Apply(reinterpret_cast<std::byte*>(words), ones, nullptr, 2);
    }
  });
  EXPECT_TRUE(words[0] == T(kThreads * kRounds));
  EXPECT_TRUE(words[1] == T(2 * kThreads * kRounds));
}

TEST(AccumulateTest, ThreadsLoseNoSum) {
  ExpectSum<int32_t>(NumberKind::kInt32);
  ExpectSum<uint64_t>(NumberKind::kUint64);
  ExpectSum<float>(NumberKind::kFloat32);
  ExpectSum<double>(NumberKind::kFloat64);
  ExpectSum<long double>(NumberKind::kLongDouble);
  ExpectSum<__int128>(NumberKind::kInt128);
  ExpectSum<tests::Float128>(NumberKind::kFloat128);
}

TEST(AccumulateTest, AgreesWithAtomicOperations) {
  const Accumulation sum = *Accumulation::Of(OpKind::kSum, NumberKind::kInt64);
  const Accumulation twice = *Accumulation::Of(OpKind::kBxor, NumberKind::kInt64);
  alignas(8) uint64_t word = 0;
  OnThreads([&](int thread) {
    const uint64_t one = 1;
    const uint64_t high = uint64_t{1} << 63;
    for (int i = 0; i < kRounds; ++i) {
      if (thread % 2 == 0) {
        sum.Apply(reinterpret_cast<std::byte*>(&word), &one, nullptr, 1);
      } else {
        ApplyAtomic(word, OneSidedOperation::kAdd, uint64_t{1}, uint64_t{0});
      }
      twice.Apply(reinterpret_cast<std::byte*>(&word), &high, nullptr, 1);
    }
  });
  EXPECT_EQ(word,
            uint64_t{kThreads} * kRounds);  // the high bit has changed an even number of times
}

// Rows share words of 16 bytes; they neither begin nor end with one here.
template <typename T>
void ExpectRowsAsSingles(NumberKind kind) {
  constexpr uint64_t kCount = 37;
  for (int number = 0; number < kOperations; ++number) {
    const auto what = Accumulation::Of(static_cast<OpKind>(number), kind);
    if (!what) {
      continue;
    }
    alignas(16) T row[kCount + 2];
    T single[kCount + 2];
    T operands[kCount];
    T found[kCount] = {};
    for (uint64_t i = 0; i < kCount + 2; ++i) {
      row[i] = single[i] = T(i % 5 + 1);
    }
    for (uint64_t i = 0; i < kCount; ++i) {
      operands[i] = T(i % 3);
    }
    what->Apply(reinterpret_cast<std::byte*>(row + 1), operands, found, kCount);
    for (uint64_t i = 0; i < kCount; ++i) {
      T before{};
      what->Apply(reinterpret_cast<std::byte*>(single + 1 + i), operands + i, &before, 1);
      EXPECT_EQ(found[i], before) << "operation " << number << ", element " << i;
    }
    for (uint64_t i = 0; i < kCount + 2; ++i) {
      EXPECT_EQ(row[i], single[i]) << "operation " << number << ", element " << i;
    }
  }
}

TEST(AccumulateTest, RowsAreAsTheirElements) {
  ExpectRowsAsSingles<uint8_t>(NumberKind::kUint8);
  ExpectRowsAsSingles<int16_t>(NumberKind::kInt16);
  ExpectRowsAsSingles<float>(NumberKind::kFloat32);
  ExpectRowsAsSingles<uint32_t>(NumberKind::kUint32);
  ExpectRowsAsSingles<double>(NumberKind::kFloat64);
}

TEST(AccumulateTest, RowsAgreeWithSingleElements) {
  constexpr uint64_t kCount = 11;
  const Accumulation sum = *Accumulation::Of(OpKind::kSum, NumberKind::kFloat32);
  alignas(16) float row[kCount + 1] = {};
  const std::vector<float> ones(kCount, 1);
  OnThreads([&](int thread) {
    for (int i = 0; i < kRounds / 4; ++i) {
      for (uint64_t each = 0; thread % 2 == 1 && each < kCount; ++each) {
        sum.Apply(reinterpret_cast<std::byte*>(row + 1 + each), ones.data(), nullptr, 1);
      }
      if (thread % 2 == 0) {
        sum.Apply(reinterpret_cast<std::byte*>(row + 1), ones.data(), nullptr, kCount);
      }
    }
  });
  EXPECT_EQ(row[0], 0);
  for (uint64_t each = 0; each < kCount; ++each) {
    EXPECT_EQ(row[1 + each], kThreads * (kRounds / 4)) << each;
  }
}

// Each thread writes both halves alike, so whoever finds two that differ has seen a torn one.
TEST(AccumulateTest, WideElementsAreFoundWhole) {
  const Accumulation replace = *Accumulation::Of(OpKind::kReplace, NumberKind::kComplex64);
  struct Number {
    double real, imaginary;
  };
  alignas(16) Number word{0, 0};
  OnThreads([&](int thread) {
    for (int i = 0; i < kRounds; ++i) {
      const double value = thread * kRounds + i;
      const Number mine{value, value};
      Number found{};
      replace.Apply(reinterpret_cast<std::byte*>(&word), &mine, &found, 1);
      ASSERT_EQ(found.real, found.imaginary);
    }
  });
}

}  // namespace
}  // namespace ferry::shm

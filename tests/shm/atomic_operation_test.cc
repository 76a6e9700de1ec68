// The atomic operations of one_sided_layout.h, optimised, and called in the ways that compilers
// treat differently: with the old value wanted, not wanted, and wanted by some callers only.
#include "shm/atomic_operation.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace ferry::shm {
namespace {

template <typename T>
constexpr T kBefore = static_cast<T>(0xf0f0'f0f0'1234'5678);
template <typename T>
constexpr T kOperand = static_cast<T>(0x0ff0'3c3c'00ff'4321);

template <typename T>
T After(OneSidedOperation operation) {
  const T before = kBefore<T>;
  const T operand = kOperand<T>;
  switch (operation) {
    case OneSidedOperation::kSet:
    case OneSidedOperation::kSwap:
    case OneSidedOperation::kCompareSwap:
      return operand;
    case OneSidedOperation::kAdd:
      return before + operand;
    case OneSidedOperation::kAnd:
      return before & operand;
    case OneSidedOperation::kOr:
      return before | operand;
    case OneSidedOperation::kXor:
      return before ^ operand;
    default:
      return before;
  }
}

template <typename T>
[[gnu::noinline]] void Unwanted(T& word, OneSidedOperation operation, T operand) {
  ApplyAtomic(word, operation, operand, kBefore<T>);
}
template <typename T>
[[gnu::noinline]] T Wanted(T& word, OneSidedOperation operation, T operand) {
  return ApplyAtomic(word, operation, operand, kBefore<T>);
}
template <typename T>
[[gnu::noinline]] void MaybeWanted(T& word, OneSidedOperation operation, T operand, T* found) {
  const T before = ApplyAtomic(word, operation, operand, kBefore<T>);
  if (found != nullptr) {
    *found = before;
  }
}
// As OpenSHMEM's do it, to which setting a word is a store. In such a function gcc 12 once forgot
// the operands of fetch_and, fetch_or and fetch_xor.
template <typename T>
T ApplyOrStore(T& word, OneSidedOperation operation, T operand) {
  if (operation == OneSidedOperation::kSet) {
    StoreRelease(word, operand);
    return operand;
  }
  return ApplyAtomic(word, operation, operand, kBefore<T>);
}
template <typename T>
[[gnu::noinline]] void MaybeWantedOrStored(T& word, OneSidedOperation operation, T operand,
                                           T* found) {
  const T before = ApplyOrStore(word, operation, operand);
  if (found != nullptr) {
    *found = before;
  }
}
// For an operation that the compiler knows.
template <typename T, OneSidedOperation kOperation>
[[gnu::noinline]] void KnownUnwanted(T& word, T operand) {
  ApplyAtomic(word, kOperation, operand, kBefore<T>);
}
template <typename T, OneSidedOperation kOperation>
[[gnu::noinline]] T KnownWanted(T& word, T operand) {
  return ApplyAtomic(word, kOperation, operand, kBefore<T>);
}
template <typename T, OneSidedOperation kOperation>
[[gnu::noinline]] void KnownMaybeWanted(T& word, T operand, T* found) {
  const T before = ApplyAtomic(word, kOperation, operand, kBefore<T>);
  if (found != nullptr) {
    *found = before;
  }
}

template <typename T, OneSidedOperation kOperation>
void ExpectEachWay() {
  const T operand = kOperand<T>;
  const T after = After<T>(kOperation);
  T word = kBefore<T>;
  const auto expect = [&](const char* how) {
    EXPECT_EQ(word, after) << "operation " << static_cast<int>(kOperation) << " of " << sizeof(T)
                           << " bytes, " << how;
    word = kBefore<T>;
  };
  const auto expect_found = [&](T found, const char* how) {
    EXPECT_EQ(found, kBefore<T>) << "operation " << static_cast<int>(kOperation) << ", " << how;
    expect(how);
  };
  Unwanted(word, kOperation, operand);
  expect("unwanted");
  expect_found(Wanted(word, kOperation, operand), "wanted");
  MaybeWanted<T>(word, kOperation, operand, nullptr);
  expect("maybe wanted, and not");
  T found = 0;
  MaybeWanted(word, kOperation, operand, &found);
  expect_found(found, "maybe wanted, and so");
  MaybeWantedOrStored<T>(word, kOperation, operand, nullptr);
  expect("maybe wanted or stored, and not");
  MaybeWantedOrStored(word, kOperation, operand, &found);
  expect("maybe wanted or stored, and so");
  KnownUnwanted<T, kOperation>(word, operand);
  expect("known, unwanted");
  expect_found(KnownWanted<T, kOperation>(word, operand), "known, wanted");
  KnownMaybeWanted<T, kOperation>(word, operand, nullptr);
  expect("known, maybe wanted, and not");
  found = 0;
  KnownMaybeWanted<T, kOperation>(word, operand, &found);
  expect_found(found, "known, maybe wanted, and so");
  // As daemons and ranks do it: in bytes, of which four leave their neighbours alone.
  uint64_t bytes[2] = {~uint64_t{0}, ~uint64_t{0}};
  std::memcpy(bytes, &word, sizeof(word));
  EXPECT_EQ(ApplyAtomicAt(reinterpret_cast<std::byte*>(bytes), sizeof(T), kOperation, operand,
                          kBefore<T>),
            kBefore<T>);
  uint64_t expected[2] = {~uint64_t{0}, ~uint64_t{0}};
  std::memcpy(expected, &after, sizeof(after));
  EXPECT_EQ(bytes[0], expected[0]);
  EXPECT_EQ(bytes[1], expected[1]);
}

template <typename T>
void ExpectEveryOperation() {
  ExpectEachWay<T, OneSidedOperation::kFetch>();
  ExpectEachWay<T, OneSidedOperation::kSet>();
  ExpectEachWay<T, OneSidedOperation::kSwap>();
  ExpectEachWay<T, OneSidedOperation::kCompareSwap>();
  ExpectEachWay<T, OneSidedOperation::kAdd>();
  ExpectEachWay<T, OneSidedOperation::kAnd>();
  ExpectEachWay<T, OneSidedOperation::kOr>();
  ExpectEachWay<T, OneSidedOperation::kXor>();
}

TEST(AtomicOperationTest, EveryOperationOfOneByte) { ExpectEveryOperation<uint8_t>(); }
TEST(AtomicOperationTest, EveryOperationOfTwoBytes) { ExpectEveryOperation<uint16_t>(); }
TEST(AtomicOperationTest, EveryOperationOfFourBytes) { ExpectEveryOperation<uint32_t>(); }
TEST(AtomicOperationTest, EveryOperationOfEightBytes) { ExpectEveryOperation<uint64_t>(); }

TEST(AtomicOperationTest, ACompareSwapThatFindsAnotherValueChangesNothing) {
  uint64_t word = 5;
  EXPECT_EQ(ApplyAtomic<uint64_t>(word, OneSidedOperation::kCompareSwap, 9, 4), 5U);
  EXPECT_EQ(word, 5U);
}

// Those that are loops lose nothing to each other, nor to those that are single instructions.
TEST(AtomicOperationTest, ThreadsAgree) {
  constexpr uint64_t kTimes = 20'000;
  constexpr unsigned kThreads = 4;
  uint64_t word = 0;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&word, thread] {
      const uint64_t bit = uint64_t{1} << (60 + thread);
      for (uint64_t i = 0; i < kTimes; ++i) {
        ApplyAtomic<uint64_t>(word, OneSidedOperation::kAdd, 1, 0);
        ApplyAtomic<uint64_t>(word, OneSidedOperation::kOr, bit, 0);
        ApplyAtomic<uint64_t>(word, OneSidedOperation::kAdd, 1, 0);
        ApplyAtomic<uint64_t>(word, OneSidedOperation::kAnd, ~bit, 0);
        ApplyAtomic<uint64_t>(word, OneSidedOperation::kXor, bit, 0);
        ApplyAtomic<uint64_t>(word, OneSidedOperation::kXor, bit, 0);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(word, 2 * kThreads * kTimes);
}

}  // namespace
}  // namespace ferry::shm

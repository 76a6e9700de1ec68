// Accumulates in the memory of other ranks, of the own node and of others: every rank combines rows
// of numbers with those of every rank, itself included, beside all others.
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "client/api/front_end.h"
#include "client/api/one_sided.h"
#include "ferry/one_sided.h"
#include "tests/e2e/ranks/check.h"
#include "tests/support/machine_floats.h"

namespace {

using ferry::ErrorCode;
using ferry::client::OneSided;
using ferry::client::RemoteAddress;
using ferry::client::WhenDone;
using ferry::reduction::NumberKind;
using ferry::reduction::OpKind;
using ferry::shm::Accumulation;

#define CHECK_CODE(expression) CHECK_EQ(expression, ErrorCode::kOk)

// Each rank's: a field that all ranks share, then one for each of them.
constexpr size_t kFieldBytes = 256 << 10;
std::byte* memory = nullptr;
std::vector<ferry_place> bases;  // of all ranks, by rank
int self = -1;
int ranks = 0;

OneSided& Core() { return *ferry_front_end(ferry::client::kFrontEndVersion)->one_sided; }

RemoteAddress Shared(int rank, size_t offset = 0) {
  const ferry_place& base = bases[static_cast<size_t>(rank)];
  return {static_cast<uint32_t>(rank), base.segment, base.offset + offset};
}
RemoteAddress Own(int rank, size_t offset = 0) {
  return Shared(rank, (1 + static_cast<size_t>(self)) * kFieldBytes + offset);
}
std::byte* SharedHere() { return memory; }
size_t MemoryBytes() { return (1 + static_cast<size_t>(ranks)) * kFieldBytes; }

void Clear() {
  CHECK_OK(ferry_barrier());
  std::memset(memory, 0, MemoryBytes());
  CHECK_OK(ferry_barrier());
}

void Open() {
  self = ferry_rank();
  ranks = ferry_size();
  void* allocated = nullptr;
  CHECK_OK(ferry_alloc(MemoryBytes(), FERRY_MEMORY_HOST, 0, &allocated));
  memory = static_cast<std::byte*>(allocated);
  bases.resize(static_cast<size_t>(ranks));
  ferry_place& mine = bases[static_cast<size_t>(self)];
  CHECK_OK(ferry_locate(memory, MemoryBytes(), &mine));
  for (int distance = 1; distance < ranks; ++distance) {
    const int to = (self + distance) % ranks;
    const int from = (self + ranks - distance) % ranks;
    ferry_request request;
    CHECK_OK(ferry_irecv(&bases[static_cast<size_t>(from)], sizeof(mine), from, 1, &request));
    CHECK_OK(ferry_send(&mine, sizeof(mine), to, 1));
    CHECK_OK(ferry_wait(&request, nullptr));
  }
}

void QuietDown() {
  uint32_t failed = 0;
  CHECK_CODE(Core().Quiet(nullptr, &failed));
}

Accumulation Of(OpKind operation, NumberKind kind) { return *Accumulation::Of(operation, kind); }

// ---- Rows of every length -----------------------------------------------------------------------

template <typename T>
void CheckRow(int to, NumberKind kind, uint64_t count) {
  std::vector<T> operands(count);
  for (uint64_t i = 0; i < count; ++i) {
    operands[i] = static_cast<T>(static_cast<int>(i % 50));
  }
  std::vector<T> found(count, T(9));
  const auto all_are = [&](auto expected) {
    for (uint64_t i = 0; i < count; ++i) {
      CHECK_EQ(found[i] == static_cast<T>(expected(static_cast<int>(i % 50))), true);
    }
  };
  const auto accumulate = [&](OpKind operation, const void* from, void* before, WhenDone when) {
    CHECK_CODE(
        Core().Accumulate(nullptr, {Own(to), Of(operation, kind), count}, from, before, when));
  };
  accumulate(OpKind::kReplace, operands.data(), nullptr, WhenDone::kAtReturn);
  accumulate(OpKind::kSum, operands.data(), found.data(), WhenDone::kAtReturn);
  all_are([](int i) { return i; });
  // The rank does not wait for these, and they keep their order.
  accumulate(OpKind::kSum, operands.data(), nullptr, WhenDone::kAtQuiet);
  std::vector<T> later(count);
  accumulate(OpKind::kNoOp, nullptr, later.data(), WhenDone::kAtQuiet);
  accumulate(OpKind::kReplace, std::vector<T>(count, T(0)).data(), nullptr, WhenDone::kAtQuiet);
  QuietDown();
  found = later;
  all_are([](int i) { return 3 * i % 256 > 127 && sizeof(T) == 1 ? 3 * i - 256 : 3 * i; });
  accumulate(OpKind::kNoOp, nullptr, found.data(), WhenDone::kAtReturn);
  all_are([](int) { return 0; });
}

void RowsOfEveryLength() {
  Clear();
  for (int distance = 0; distance < ranks; ++distance) {
    const int to = (self + distance) % ranks;
    for (const uint64_t count : {1, 2, 3, 100, 1024, 1025, 5000}) {
      CheckRow<int8_t>(to, NumberKind::kInt8, count);
      CheckRow<int16_t>(to, NumberKind::kInt16, count);
      CheckRow<int32_t>(to, NumberKind::kInt32, count);
      CheckRow<uint64_t>(to, NumberKind::kUint64, count);
      CheckRow<float>(to, NumberKind::kFloat32, count);
      CheckRow<double>(to, NumberKind::kFloat64, count);
      CheckRow<long double>(to, NumberKind::kLongDouble, count);
      CheckRow<__int128>(to, NumberKind::kInt128, count);
      CheckRow<ferry::tests::Float128>(to, NumberKind::kFloat128, count);
      CheckRow<std::complex<float>>(to, NumberKind::kComplex32, count);
      CheckRow<std::complex<double>>(to, NumberKind::kComplex64, count);
    }
  }
}

// ---- Beside others ------------------------------------------------------------------------------

constexpr int kRounds = 300;
constexpr uint64_t kShort = 20;  // elements

template <typename T>
void SumFromEverywhere(NumberKind kind, size_t offset) {
  Clear();
  const std::vector<T> ones(kShort, T(1));
  const Accumulation sum = Of(OpKind::kSum, kind);
  for (int round = 0; round < kRounds; ++round) {
    for (int distance = 0; distance < ranks; ++distance) {
      const RemoteAddress place = Shared((self + distance) % ranks, offset);
      T found[kShort];
      const bool asks = round % 10 == 0;
      CHECK_CODE(Core().Accumulate(nullptr, {place, sum, kShort}, ones.data(),
                                   asks ? found : nullptr, WhenDone::kAtReturn));
    }
  }
  QuietDown();
  CHECK_OK(ferry_barrier());
  for (uint64_t i = 0; i < kShort; ++i) {
    T value;
    std::memcpy(&value, SharedHere() + offset + i * sizeof(T), sizeof(T));
    CHECK_EQ(value == static_cast<T>(kRounds * ranks), true);
  }
}

void SumsFromEverywhereAddUp() {
  SumFromEverywhere<int32_t>(NumberKind::kInt32, 4);
  SumFromEverywhere<double>(NumberKind::kFloat64, 0);
  SumFromEverywhere<std::complex<float>>(NumberKind::kComplex32, 8);
  SumFromEverywhere<long double>(NumberKind::kLongDouble, 0);
  SumFromEverywhere<__int128>(NumberKind::kInt128, 16);
  SumFromEverywhere<ferry::tests::Float128>(NumberKind::kFloat128, 32);
}

// Which no CPU changes at once.
void LongElementsAndThoseThatLieAnywhere() {
  SumFromEverywhere<std::complex<long double>>(NumberKind::kComplexLongDouble, 0);
  SumFromEverywhere<double>(NumberKind::kFloat64, 12);
  SumFromEverywhere<uint16_t>(NumberKind::kUint16, 1);
  SumFromEverywhere<std::complex<double>>(NumberKind::kComplex64, 8);
  SumFromEverywhere<__int128>(NumberKind::kInt128, 8);
  Clear();
  for (int to = 0; to < ranks; ++to) {
    CheckRow<std::complex<long double>>(to, NumberKind::kComplexLongDouble, 1000);
  }
}

// On one word: atomic operations and accumulates, of different kinds.
void AtomicOperationsAgree() {
  Clear();
  const Accumulation sum = Of(OpKind::kSum, NumberKind::kInt64);
  const Accumulation flips = Of(OpKind::kBxor, NumberKind::kInt64);
  const int64_t one = 1;
  const int64_t high = INT64_MIN;
  for (int round = 0; round < kRounds; ++round) {
    for (int distance = 0; distance < ranks; ++distance) {
      const RemoteAddress place = Shared((self + distance) % ranks);
      CHECK_CODE(Core().Accumulate(nullptr, {place, sum, 1}, &one, nullptr, WhenDone::kAtQuiet));
      CHECK_CODE(Core().Accumulate(nullptr, {place, flips, 1}, &high, nullptr, WhenDone::kAtQuiet));
      CHECK_CODE(Core().Atomic(nullptr, {place, ferry::shm::OneSidedOperation::kAdd, 8, 1, 0},
                               nullptr, WhenDone::kAtQuiet));
    }
  }
  QuietDown();
  CHECK_OK(ferry_barrier());
  int64_t value = 0;
  std::memcpy(&value, SharedHere(), sizeof(value));
  CHECK_EQ(value, int64_t{2} * kRounds * ranks);  // flipped an even number of times
}

// ---- Invalid operations -------------------------------------------------------------------------

// By the call or by the quiet.
ErrorCode Outcome(const RemoteAddress& place, const Accumulation& what, uint64_t count,
                  const void* operands, void* found) {
  uint32_t failed = 0;
  const ErrorCode error =
      Core().Accumulate(nullptr, {place, what, count}, operands, found, WhenDone::kAtReturn);
  const ErrorCode later = Core().Quiet(nullptr, &failed);
  return error != ErrorCode::kOk ? error : later;
}

void WhatIsNotThereFails() {
  Clear();
  const std::vector<double> operands(100, 1.0);
  std::vector<double> found(100);
  const Accumulation sum = Of(OpKind::kSum, NumberKind::kFloat64);
  for (int to = 0; to < ranks; ++to) {
    RemoteAddress beyond = Shared(to);
    beyond.offset += uint64_t{1} << 40;
    RemoteAddress nowhere = Shared(to);
    nowhere.segment += 1000;
    for (double* const before : {static_cast<double*>(nullptr), found.data()}) {
      CHECK_EQ(Outcome(beyond, sum, 100, operands.data(), before), ErrorCode::kInvalidBuffer);
      CHECK_EQ(Outcome(nowhere, sum, 1, operands.data(), before), ErrorCode::kInvalidBuffer);
    }
    beyond.offset += 1;
    CHECK_EQ(Outcome(beyond, sum, 1, operands.data(), found.data()), ErrorCode::kInvalidBuffer);
    CHECK_EQ(Outcome(Shared(to), sum, UINT64_MAX / 4, operands.data(), nullptr),
             ErrorCode::kInvalidBuffer);
    CHECK_EQ(Outcome(nowhere, sum, 0, nullptr, nullptr), ErrorCode::kOk);
  }
  CHECK_OK(ferry_barrier());
  for (size_t i = 0; i < MemoryBytes(); ++i) {
    CHECK_EQ(memory[i] == std::byte{}, true);
  }
}

// ---- Memory that only streams reach -------------------------------------------------------------

// Operands and what is found may lie there, and no numbers to be changed. The device's memory is
// looked at, and filled, by gets and puts.
void OperandsMayLieOnADevice() {
  Clear();
  constexpr uint64_t kCount = 3000;
  constexpr uint64_t kBytes = kCount * sizeof(double);
  const std::vector<double> operands(kCount, 1.5);
  void* device = nullptr;
  CHECK_OK(ferry_alloc(2 * kBytes, FERRY_MEMORY_DEVICE, 0, &device));
  ferry_place on_device;
  CHECK_OK(ferry_locate(device, 2 * kBytes, &on_device));
  CHECK_OK(ferry_put(0, on_device, operands.data(), kBytes));
  CHECK_OK(ferry_quiet(0));
  const Accumulation sum = Of(OpKind::kSum, NumberKind::kFloat64);
  std::byte* const found_there = static_cast<std::byte*>(device) + kBytes;
  for (int to = 0; to < ranks; ++to) {
    for (const double before : {0.0, 1.5}) {
      CHECK_CODE(Core().Accumulate(nullptr, {Own(to), sum, kCount}, device, found_there,
                                   WhenDone::kAtReturn));
      ferry_place place = on_device;
      place.offset += kBytes;
      std::vector<double> found(kCount, -1);
      CHECK_OK(ferry_get(0, found.data(), place, kBytes));
      CHECK_EQ(found == std::vector<double>(kCount, before), true);
    }
  }
  const RemoteAddress own{static_cast<uint32_t>(self), on_device.segment, on_device.offset};
  CHECK_EQ(Outcome(own, sum, 1, operands.data(), nullptr), ErrorCode::kUnsupported);
  CHECK_OK(ferry_free(device));
}

}  // namespace

int main(int argc, char** /*argv*/) {
  CHECK_OK(ferry_init(FERRY_THREAD_MULTIPLE, nullptr));
  // A front end of other headers gets no interface.
  CHECK_EQ(ferry_front_end(ferry::client::kFrontEndVersion ^ 1) == nullptr, true);
  Open();
  if (argc > 1) {  // "device"
    OperandsMayLieOnADevice();
  }
  RowsOfEveryLength();
  SumsFromEverywhereAddUp();
  LongElementsAndThoseThatLieAnywhere();
  AtomicOperationsAgree();
  WhatIsNotThereFails();
  CHECK_OK(ferry_barrier());
  CHECK_OK(ferry_free(memory));
  CHECK_OK(ferry_finalize());
  if (self == 0) {
    std::puts("accumulate: ok");
  }
  return 0;
}

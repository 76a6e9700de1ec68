#include "mpi/op/device_reduction.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "gpu_backends/host/host_reduction.h"

namespace ferry::mpi {
namespace {

constexpr int64_t kCount = 257;

bool IsOnDevices(NumberKind kind) {
  return kind <= NumberKind::kUint64
             ? kind != NumberKind::kInt128
             : kind == NumberKind::kFloat32 || kind == NumberKind::kFloat64 ||
                   kind == NumberKind::kComplex32 || kind == NumberKind::kComplex64;
}

// Numbers of one kind, few of them equal, with exact sums and products.
void Fill(NumberKind kind, size_t bytes, std::mt19937& random, std::byte* to) {
  std::uniform_int_distribution<int> small(-40, 40);
  if (kind == NumberKind::kFloat32 || kind == NumberKind::kComplex32) {
    for (size_t at = 0; at < bytes; at += sizeof(float)) {
      const auto number = static_cast<float>(small(random));
      std::memcpy(to + at, &number, sizeof(number));
    }
  } else if (kind == NumberKind::kFloat64 || kind == NumberKind::kComplex64) {
    for (size_t at = 0; at < bytes; at += sizeof(double)) {
      const double number = small(random);
      std::memcpy(to + at, &number, sizeof(number));
    }
  } else {
    const auto number = static_cast<int64_t>(small(random));  // its low bytes are the number
    std::memcpy(to, &number, bytes);
  }
}

// Operands for a type without gaps. They are aligned as any device wants.
struct Operands {
  Operands(const BasicType& type, unsigned seed)
      : words(static_cast<size_t>(kCount * type.extent_bytes) / sizeof(uint64_t) + 1) {
    std::mt19937 random(seed);
    const auto first = static_cast<size_t>(type.IsPair() ? SizeOf(type.kind) : type.size_bytes);
    for (int64_t i = 0; i < kCount; ++i) {
      std::byte* const element = bytes() + i * type.extent_bytes;
      Fill(type.kind, first, random, element);
      if (type.IsPair()) {
        Fill(type.index_kind, static_cast<size_t>(SizeOf(type.index_kind)), random,
             element + type.index_offset);
      }
    }
  }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(words.data()); }
  std::vector<uint64_t> words;
};

TEST(DeviceReductionTest, DevicesComputeWhatCpusDo) {
  int found_count = 0;
  for (const BasicType& basic : BasicTypes()) {
    const Ref<Datatype> type = MakeRef<Datatype>(basic);
    for (const PredefinedOp& predefined : PredefinedOps()) {
      const Ref<Op> op = MakeRef<Op>(predefined.kind, predefined.handle, predefined.name);
      if (!op->Check(*type).ok()) {
        continue;
      }
      SCOPED_TRACE(std::string(predefined.name) + " of " + basic.name);
      const std::optional<DeviceReduction> how = FindDeviceReduction(*op, *type);
      const bool has_gaps = basic.extent_bytes != basic.size_bytes;
      const bool is_expected = IsOnDevices(basic.kind) &&
                               (!basic.IsPair() || (!has_gaps && IsOnDevices(basic.index_kind)));
      // MPI names some pairs that no kernel was made for.
      ASSERT_TRUE(how.has_value() == is_expected || (basic.IsPair() && !how.has_value()));
      if (!how.has_value()) {
        continue;
      }
      ++found_count;
      ASSERT_EQ(gpu::LayoutOf(how->type).size_bytes, static_cast<uint64_t>(basic.size_bytes));
      Operands left(basic, 1);
      Operands right(basic, 2);
      Operands by_cpu(basic, 3);
      Operands by_device(basic, 3);
      op->Combine(left.bytes(), right.bytes(), by_cpu.bytes(), kCount, *type);
      gpu::ReduceOnHost(
          {by_device.bytes(), left.bytes(), right.bytes(), kCount, how->type, how->op});
      EXPECT_EQ(by_device.words, by_cpu.words);
    }
  }
  EXPECT_GT(found_count, 150);
}

TEST(DeviceReductionTest, PairsWithoutGapsAreServed) {
  const Ref<Op> op = MakeRef<Op>(OpKind::kMaxloc, MPI_MAXLOC, "MPI_MAXLOC");
  for (const MPI_Datatype pair : {MPI_2INT, MPI_FLOAT_INT, MPI_2REAL, MPI_2DOUBLE_PRECISION}) {
    const Ref<Datatype> type = MakeRef<Datatype>(*FindBasicType(pair));
    EXPECT_TRUE(FindDeviceReduction(*op, *type).has_value()) << type->name();
  }
  for (const MPI_Datatype pair : {MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_LONG_INT}) {
    const Ref<Datatype> type = MakeRef<Datatype>(*FindBasicType(pair));
    EXPECT_FALSE(FindDeviceReduction(*op, *type).has_value()) << type->name();
  }
}

void DoNothing(void* /*in*/, void* /*inout*/, int* /*length*/, MPI_Datatype* /*type*/) {}

TEST(DeviceReductionTest, OperationsOfProgramsAreNot) {
  const Ref<Op> op = MakeRef<Op>(&DoNothing, true);
  const Ref<Datatype> type = MakeRef<Datatype>(*FindBasicType(MPI_INT));
  EXPECT_FALSE(FindDeviceReduction(*op, *type).has_value());
}

}  // namespace
}  // namespace ferry::mpi

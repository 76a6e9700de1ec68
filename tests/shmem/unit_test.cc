// Parts of client/shmem that need no job.
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <string_view>

#include "client/shmem/reduction.h"
#include "client/shmem/settings.h"

namespace ferry::shmem {
namespace {

uint64_t SizeOf(std::string_view text) {
  const StatusOr<uint64_t> size = ParseSize(text);
  EXPECT_TRUE(size.ok()) << text << ": " << size.status().message();
  return size.ok() ? *size : 0;
}

TEST(SettingsTest, ReadsSizesWithFractionsAndSuffixes) {
  EXPECT_EQ(SizeOf("0"), 0U);
  EXPECT_EQ(SizeOf("65536"), 65536U);
  EXPECT_EQ(SizeOf("1k"), 1024U);
  EXPECT_EQ(SizeOf("2M"), 2U << 20);
  EXPECT_EQ(SizeOf("1.5g"), 3ULL << 29);
  EXPECT_EQ(SizeOf("0.25T"), 1ULL << 38);
  EXPECT_EQ(SizeOf("20e6"), 20'000'000U);
  EXPECT_EQ(SizeOf("0.5"), 1U) << "rounded up";
}

TEST(SettingsTest, RefusesWhatIsNoSize) {
  for (const std::string_view text :
       {"", "k", "lots", "1x", "1kb", "-1", "1 g", "nan", "inf", "1e99"}) {
    const StatusOr<uint64_t> size = ParseSize(text);
    EXPECT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.status().code(), ErrorCode::kConfiguration) << text;
  }
}

template <typename T>
T Reduced(ReduceType type, ReduceOp op, T left, T right) {
  T result{};
  EXPECT_EQ(ElementReducer(type, op).Reduce(&left, &right, &result, 1), ErrorCode::kOk);
  return result;
}

TEST(ReductionTest, KnowsItsTypes) {
  EXPECT_EQ(Reduced<int8_t>(ReduceType::kInt8, ReduceOp::kMin, -5, 3), -5);
  EXPECT_EQ(Reduced<uint8_t>(ReduceType::kUint8, ReduceOp::kMax, 251, 3), 251);
  EXPECT_EQ(Reduced<int16_t>(ReduceType::kInt16, ReduceOp::kProd, -300, 100), -30000);
  EXPECT_EQ(Reduced<uint16_t>(ReduceType::kUint16, ReduceOp::kProd, 65535, 65535), 1);
  EXPECT_EQ(Reduced<int32_t>(ReduceType::kInt32, ReduceOp::kSum, INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(Reduced<uint64_t>(ReduceType::kUint64, ReduceOp::kXor, 12, 10), 6U);
  EXPECT_EQ(Reduced<int64_t>(ReduceType::kInt64, ReduceOp::kAnd, 12, 10), 8);
  EXPECT_EQ(Reduced<uint32_t>(ReduceType::kUint32, ReduceOp::kOr, 12, 10), 14U);
  EXPECT_EQ(Reduced<float>(ReduceType::kFloat, ReduceOp::kMax, -2.5F, -3.5F), -2.5F);
  EXPECT_EQ(Reduced<long double>(ReduceType::kLongDouble, ReduceOp::kProd, 2.5L, 4.0L), 10.0L);
  using Complex = std::complex<double>;
  EXPECT_EQ(Reduced<Complex>(ReduceType::kComplexDouble, ReduceOp::kProd, {1, 2}, {3, 4}),
            Complex(-5, 10));
}

TEST(ReductionTest, RefusesWhatATypeDoesNotHave) {
  std::complex<float> value;
  EXPECT_EQ(
      ElementReducer(ReduceType::kComplexFloat, ReduceOp::kMax).Reduce(&value, &value, &value, 1),
      ErrorCode::kUnsupported);
  double number = 0;
  EXPECT_EQ(
      ElementReducer(ReduceType::kDouble, ReduceOp::kAnd).Reduce(&number, &number, &number, 1),
      ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace ferry::shmem

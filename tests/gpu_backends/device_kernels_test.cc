// Ferry's own kernels: what the images hold, and what the kernels compute, run on the CPU.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gpu_backends/device/kernel_images.h"
#include "gpu_backends/device/kernel_list.h"
#include "shm/atomic.h"
#include "tests/fixtures/ferry_kernels.h"
#include "tests/gpu_backends/skip_without_images.h"

namespace ferry::gpu {
namespace {

using Bytes = std::vector<uint8_t>;

uint64_t control[2];  // of a stream that goes on

template <typename Argument>
uint64_t ArgumentOf(Argument argument) {
  if constexpr (std::is_pointer_v<Argument>) {
    return reinterpret_cast<uint64_t>(argument);
  } else {
    return static_cast<uint64_t>(argument);
  }
}

// Runs a kernel with so many threads, one after the other.
template <typename... Arguments>
void RunKernel(Kernel kernel, uint32_t threads, Arguments... arguments) {
  const fixtures::SoftwareKernel& native = fixtures::FerryKernels()[static_cast<size_t>(kernel)];
  ASSERT_STREQ(native.name, Describe(kernel).name);
  ASSERT_EQ(native.argument_count, Describe(kernel).argument_count);
  ASSERT_EQ(native.argument_count, sizeof...(Arguments));
  fixtures::SoftwareLaunch launch;
  launch.kernel = &native;
  launch.group_size[0] = threads;
  for (const uint64_t argument : {ArgumentOf(arguments)...}) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&argument);
    launch.arguments.emplace_back(bytes, bytes + sizeof(argument));
  }
  launch.Run();
}

// Reduces; the operands and results beyond two and one are those of `from` and `to`.
template <typename T>
void RunReduction(Kernel kernel, uint32_t threads, const uint64_t* words, std::vector<T*> to,
                  std::vector<const T*> from, uint64_t count, uint64_t op) {
  const uint64_t how = op | (from.size() - 2) << 8 | (to.size() - 1) << 16;
  from.resize(Reduction::kMost);
  to.resize(Reduction::kMost);
  RunKernel(kernel, threads, words, to[0], from[0], from[1], count, how, from[2], from[3], from[4],
            from[5], from[6], from[7], to[1], to[2], to[3], to[4], to[5], to[6], to[7]);
}

Bytes Pattern(size_t size_bytes, unsigned seed) {
  Bytes bytes(size_bytes);
  for (uint8_t& byte : bytes) {
    seed = seed * 1103515245 + 12345;
    byte = static_cast<uint8_t>(seed >> 16);
  }
  return bytes;
}

// ---- Images ----

std::set<std::string> NamesFrom(size_t begin, size_t end) {
  std::set<std::string> names;
  for (size_t i = begin; i < end; ++i) {
    names.insert(kKernels[i].name);
  }
  return names;
}

// The capabilities of an image in SPIR-V (the specification's section 3.31).
std::set<uint32_t> CapabilitiesOf(std::string_view image) {
  constexpr uint32_t kOpCapability = 17;
  std::set<uint32_t> capabilities;
  for (size_t at = 20; at + 8 <= image.size();) {
    uint32_t words[2];
    std::memcpy(words, image.data() + at, sizeof(words));
    if ((words[0] & 0xffff) == kOpCapability) {
      capabilities.insert(words[1]);
    }
    at += std::max<size_t>(words[0] >> 16, 1) * 4;
  }
  return capabilities;
}

constexpr ImageFormat kFormats[] = {ImageFormat::kSpirv, ImageFormat::kPtx, ImageFormat::kAmdgcn};

bool Has(std::span<const DeviceImage> images, ImageFormat format) {
  return std::any_of(images.begin(), images.end(),
                     [&](const DeviceImage& image) { return image.format == format; });
}

// Tests of kernels are skipped where the build lacked a compiler: so it must not have looked away.
TEST(DeviceKernelsTest, NoImageIsMissingWhoseCompilersAreInstalled) {
  for (const ImageFormat format : kFormats) {
    const std::string_view missing = WhyNoKernelImages(format);
    EXPECT_EQ(Has(KernelImages(), format), missing.empty()) << missing;
    EXPECT_EQ(Has(DoubleKernelImages(), format), missing.empty()) << missing;
    if (!missing.empty()) {
      const std::string first(missing.substr(0, missing.find(' ')));
      EXPECT_NE(access(first.c_str(), X_OK), 0) << missing;
    }
  }
}

TEST(DeviceKernelsTest, EachImageHoldsEachKernel) {
  const auto first_double = static_cast<size_t>(Kernel::kReduceF64);
  for (const auto& [images, held] :
       {std::pair{KernelImages(), NamesFrom(0, first_double)},
        std::pair{DoubleKernelImages(), NamesFrom(first_double, kKernels.size())}}) {
    for (const DeviceImage& image : images) {
      const auto names = fixtures::KernelNames(image.format, image.bytes);
      ASSERT_TRUE(names.has_value()) << image.architecture;
      EXPECT_EQ(std::set(names->begin(), names->end()), held) << image.architecture;
    }
  }
  EXPECT_EQ(fixtures::WholeImage(ImageFormat::kPtx, "text"), "text");
  EXPECT_EQ(KernelImages().size(), DoubleKernelImages().size());
  for (const ImageFormat format : kFormats) {  // the last, for a reason
    FERRY_SKIP_WITHOUT_IMAGES(format);
  }
}

TEST(DeviceKernelsTest, ImagesEndWhereTheySayThemselves) {
  for (const DeviceImage& image : KernelImages()) {
    if (image.format == ImageFormat::kSpirv) {
      continue;  // it does not say
    }
    EXPECT_EQ(fixtures::WholeImage(image.format, image.bytes.data()).size(), image.bytes.size())
        << image.architecture;
  }
}

// Devices without double precision build the first image.
TEST(DeviceKernelsTest, DoublePrecisionIsAsked) {
  constexpr uint32_t kFloat64 = 10;
  constexpr uint32_t kInt64Atomics = 12;
  for (const auto& [images, has_double] :
       {std::pair{KernelImages(), false}, std::pair{DoubleKernelImages(), true}}) {
    for (const DeviceImage& image : images) {
      if (image.format == ImageFormat::kSpirv) {
        const std::set<uint32_t> capabilities = CapabilitiesOf(image.bytes);
        EXPECT_EQ(capabilities.contains(kFloat64), has_double);
        EXPECT_TRUE(capabilities.contains(kInt64Atomics));
      }
    }
  }
}

TEST(DeviceKernelsTest, WhatIsNoImageIsRefused) {
  const std::string text = "This is a text, and no image of anything; nor has it kernels.";
  for (const ImageFormat format : {ImageFormat::kSpirv, ImageFormat::kPtx, ImageFormat::kAmdgcn}) {
    EXPECT_EQ(fixtures::LoadFerryKernels(format, text).status().code(),
              ErrorCode::kInvalidArgument);
    EXPECT_EQ(fixtures::LoadFerryKernels(format, "").status().code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(fixtures::LoadFerryKernels(ImageFormat::kPtx,
                                       ".version 6.3\n.target sm_70\n.visible .entry other(\n")
                .status()
                .code(),
            ErrorCode::kInvalidArgument);
}

// ---- Words ----

TEST(DeviceKernelsTest, WordsAreWrittenAndAwaited) {
  uint64_t word = 0;
  RunKernel(Kernel::kWriteWord, 3, control, &word, 7);
  EXPECT_EQ(word, 7u);
  RunKernel(Kernel::kWaitWord, 3, control, &word, 6, 0);
  RunKernel(Kernel::kWaitWord, 3, control, &word, 7, 1);
  std::thread waiter([&] { RunKernel(Kernel::kWaitWord, 1, control, &word, 9, 1); });
  shm::StoreRelease(word, 9);  // Pairs with the kernel's look.
  waiter.join();
}

TEST(DeviceKernelsTest, AnAbandonedStreamWaitsNoMoreAndDoesNothing) {
  uint64_t abandoned[2] = {};
  uint64_t word = 0;
  std::thread waiter([&] { RunKernel(Kernel::kWaitWord, 1, abandoned, &word, 1, 0); });
  shm::StoreRelease(abandoned[0], 1);  // Pairs with the kernel's look.
  waiter.join();
  RunKernel(Kernel::kWriteWord, 1, abandoned, &word, 1);
  EXPECT_EQ(word, 0u);
  const Bytes from = Pattern(64, 1);
  Bytes to(64);
  RunKernel(Kernel::kCopy, 4, abandoned, to.data(), from.data(), 64);
  RunKernel(Kernel::kPack, 4, abandoned, to.data(), from.data(), 4, 4, 8);
  RunKernel(Kernel::kUnpack, 4, abandoned, to.data(), from.data(), 4, 4, 8);
  RunReduction<uint8_t>(Kernel::kReduceU8, 4, abandoned, {to.data()}, {from.data(), to.data()}, 64,
                        static_cast<uint64_t>(ReductionOp::kSum));
  uint8_t* const none = nullptr;
  RunKernel(Kernel::kSpread, 4, abandoned, 64, 1, 1, from.data(), none, none, none, none, none,
            none, none, to.data(), none, none, none, none, none, none, none);
  EXPECT_EQ(to, Bytes(64));
}

// ---- Copies ----

TEST(DeviceKernelsTest, CopiesOfAnySizeAndAlignment) {
  constexpr size_t kRoom = 32;
  for (const size_t size : {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 1000, 4099}) {
    const Bytes source = Pattern(size + 2 * kRoom, static_cast<unsigned>(size));
    for (size_t to_offset = 0; to_offset < 17; ++to_offset) {
      for (const size_t from_offset : {0, 1, 2, 4, 5, 8, 16}) {
        for (const uint32_t threads : {1u, 5u, 64u}) {
          Bytes target(size + 2 * kRoom, 0xee);
          RunKernel(Kernel::kCopy, threads, control, target.data() + to_offset,
                    source.data() + from_offset, size);
          Bytes expected(size + 2 * kRoom, 0xee);
          std::copy_n(source.begin() + static_cast<ptrdiff_t>(from_offset), size,
                      expected.begin() + static_cast<ptrdiff_t>(to_offset));
          ASSERT_EQ(target, expected) << size << " bytes, from " << from_offset << " to "
                                      << to_offset << ", threads: " << threads;
        }
      }
    }
  }
}

TEST(DeviceKernelsTest, BlocksArePackedAndUnpacked) {
  constexpr size_t kRoom = 24;
  for (const size_t block : {1, 2, 3, 4, 8, 12, 16, 24, 48, 100}) {
    for (const size_t gap : {0, 1, 4, 8, 16, 56}) {
      for (const size_t count : {0, 1, 2, 7, 33}) {
        for (const size_t offset : {0, 1, 4, 8}) {
          const size_t stride = block + gap;
          const Bytes blocks = Pattern(offset + count * stride + kRoom, 3);
          Bytes packed(offset + count * block + kRoom, 0xee);
          Bytes expected = packed;
          for (size_t i = 0; i < count; ++i) {
            std::memcpy(&expected[offset + i * block], &blocks[offset + i * stride], block);
          }
          RunKernel(Kernel::kPack, 13, control, packed.data() + offset, blocks.data() + offset,
                    count, block, stride);
          ASSERT_EQ(packed, expected) << count << " blocks of " << block << " by " << stride;

          Bytes unpacked(blocks.size(), 0xdd);
          Bytes expected_blocks = unpacked;
          for (size_t i = 0; i < count; ++i) {
            std::memcpy(&expected_blocks[offset + i * stride], &blocks[offset + i * stride], block);
          }
          RunKernel(Kernel::kUnpack, 13, control, unpacked.data() + offset, packed.data() + offset,
                    count, block, stride);
          ASSERT_EQ(unpacked, expected_blocks) << count << " blocks of " << block;
        }
      }
    }
  }
}

TEST(DeviceKernelsTest, BlocksMayGoBackwards) {
  const Bytes blocks = Pattern(64, 5);
  Bytes packed(16);
  RunKernel(Kernel::kPack, 2, control, packed.data(), blocks.data() + 48, 4, 4, int64_t{-16});
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(std::equal(&packed[i * 4], &packed[i * 4] + 4, &blocks[48 - i * 16]));
  }
}

// The places of those that are not there are null.
TEST(DeviceKernelsTest, BlocksAreSpreadToAllPlaces) {
  constexpr size_t kMost = 8;
  const auto at = [](std::vector<Bytes>& list, size_t i) {
    return i < list.size() ? list[i].data() + i : nullptr;  // aligned differently
  };
  for (const size_t block : {1, 3, 4, 8, 16, 100, 1000}) {
    for (const size_t sources : {1, 3, 8}) {
      for (const size_t places : {1, 2, 8}) {
        for (const uint32_t threads : {1U, 5U, 64U, 200U}) {
          std::vector<Bytes> from;
          Bytes all;
          for (size_t i = 0; i < sources; ++i) {
            from.push_back(Pattern(block + kMost, static_cast<unsigned>(i + 1)));
            all.insert(all.end(), from[i].begin() + static_cast<ptrdiff_t>(i),
                       from[i].begin() + static_cast<ptrdiff_t>(i + block));
          }
          std::vector<Bytes> to(places, Bytes(all.size() + kMost, 0xee));
          RunKernel(Kernel::kSpread, threads, control, block, sources, places, at(from, 0),
                    at(from, 1), at(from, 2), at(from, 3), at(from, 4), at(from, 5), at(from, 6),
                    at(from, 7), at(to, 0), at(to, 1), at(to, 2), at(to, 3), at(to, 4), at(to, 5),
                    at(to, 6), at(to, 7));
          for (size_t i = 0; i < places; ++i) {
            Bytes expected(all.size() + kMost, 0xee);
            std::copy(all.begin(), all.end(), expected.begin() + static_cast<ptrdiff_t>(i));
            ASSERT_EQ(to[i], expected) << sources << " blocks of " << block << " to " << places
                                       << " places, threads: " << threads;
          }
        }
      }
    }
  }
}

// ---- Reductions ----

template <typename T>
struct Op {
  ReductionOp op;
  std::function<T(T, T)> of;
};

template <typename T>
std::vector<Op<T>> OrderedOps() {
  return {{ReductionOp::kMin, [](T a, T b) { return std::min(a, b); }},
          {ReductionOp::kMax, [](T a, T b) { return std::max(a, b); }}};
}

template <typename T>
std::vector<Op<T>> IntegerOps() {
  std::vector<Op<T>> ops = OrderedOps<T>();
  const auto add = [&](ReductionOp op, auto of) { ops.push_back({op, of}); };
  using Wide = unsigned __int128;
  add(ReductionOp::kSum, [](T a, T b) { return static_cast<T>(Wide(a) + Wide(b)); });
  add(ReductionOp::kProd, [](T a, T b) { return static_cast<T>(Wide(a) * Wide(b)); });
  add(ReductionOp::kBand, [](T a, T b) { return static_cast<T>(a & b); });
  add(ReductionOp::kBor, [](T a, T b) { return static_cast<T>(a | b); });
  add(ReductionOp::kBxor, [](T a, T b) { return static_cast<T>(a ^ b); });
  add(ReductionOp::kLand, [](T a, T b) { return T{a && b}; });
  add(ReductionOp::kLor, [](T a, T b) { return T{a || b}; });
  add(ReductionOp::kLxor, [](T a, T b) { return T{!a != !b}; });
  return ops;
}

template <typename T>
std::vector<Op<T>> FieldOps() {
  return {{ReductionOp::kSum, [](T a, T b) { return a + b; }},
          {ReductionOp::kProd, [](T a, T b) { return a * b; }}};
}

template <typename T>
std::vector<Op<T>> FloatOps() {
  std::vector<Op<T>> ops = OrderedOps<T>();
  for (Op<T>& op : FieldOps<T>()) {
    ops.push_back(std::move(op));
  }
  return ops;
}

template <typename T>
std::vector<T> Integers(size_t count, unsigned seed) {
  const Bytes bytes = Pattern(count * sizeof(T), seed);
  std::vector<T> numbers(count);
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < count; i += 3) {
    numbers[i] = static_cast<T>(i % 2);  // what logical operations tell apart
  }
  if (count > 1) {
    numbers[1] = std::numeric_limits<T>::max();
  }
  return numbers;
}

// Small enough for exact results.
template <typename T>
std::vector<T> Floats(size_t count, unsigned seed) {
  std::vector<T> numbers(count);
  for (T& number : numbers) {
    seed = seed * 1103515245 + 12345;
    number = static_cast<T>(static_cast<int>(seed >> 20) - 2048) / 8;
  }
  return numbers;
}

// Reduces up to eight operands, from left to right, to as many places, of which one is an operand.
// Null: the kernel has no such operation, and changes nothing.
template <typename T>
void CheckManyOperands(Kernel kernel, uint64_t op, const std::function<T(T, T)>* of,
                       const std::vector<T>& some, const std::vector<T>& others) {
  for (const size_t operands : {2, 3, 5, 8}) {
    for (const size_t results : {1, 2, 8}) {
      std::vector<std::vector<T>> values;
      for (size_t i = 0; i < operands; ++i) {
        values.push_back(i % 2 == 0 ? some : others);
        std::rotate(values[i].begin(),
                    values[i].begin() +
                        static_cast<ptrdiff_t>(values[i].empty() ? 0 : i % values[i].size()),
                    values[i].end());
      }
      std::vector<T> expected = values[0];
      for (size_t i = 1; of != nullptr && i < operands; ++i) {
        for (size_t at = 0; at < expected.size(); ++at) {
          expected[at] = (*of)(expected[at], values[i][at]);
        }
      }
      std::vector<std::vector<T>> places(results, others);
      std::vector<const T*> from;
      std::vector<T*> to;
      for (const std::vector<T>& value : values) {
        from.push_back(value.data());
      }
      for (std::vector<T>& place : places) {
        to.push_back(place.data());
      }
      to.back() = values.back().data();
      const std::vector<T> before = values.back();
      RunReduction<T>(kernel, 3, control, to, from, expected.size(), op);
      for (size_t i = 0; i + 1 < results; ++i) {
        EXPECT_EQ(places[i], of != nullptr ? expected : others)
            << Describe(kernel).name << ", operation " << op << ", " << operands << " operands";
      }
      EXPECT_EQ(values.back(), of != nullptr ? expected : before)
          << Describe(kernel).name << ", operation " << op << ", " << operands << " operands";
    }
  }
}

// All operations of the type, the permitted ones against `ops`; the others change nothing.
template <typename T>
void CheckReductions(ReductionType type, const std::vector<Op<T>>& ops, const std::vector<T>& in,
                     const std::vector<T>& before) {
  const auto kernel =
      static_cast<Kernel>(static_cast<size_t>(Kernel::kReduceI8) + static_cast<size_t>(type));
  for (int number = 0; number <= static_cast<int>(ReductionOp::kMaxloc); ++number) {
    const auto op = static_cast<ReductionOp>(number);
    const auto found =
        std::find_if(ops.begin(), ops.end(), [&](const Op<T>& known) { return known.op == op; });
    EXPECT_EQ(ReductionKernel(type, op).has_value(), found != ops.end());
    std::vector<T> expected = before;
    for (size_t i = 0; found != ops.end() && i < in.size(); ++i) {
      expected[i] = found->of(in[i], before[i]);
    }
    for (const uint32_t threads : {1u, 7u}) {
      std::vector<T> apart = before;
      std::vector<T> over_left = in;
      std::vector<T> over_right = before;
      const auto op_number = static_cast<uint64_t>(number);
      RunReduction<T>(kernel, threads, control, {apart.data()}, {in.data(), before.data()},
                      in.size(), op_number);
      RunReduction<T>(kernel, threads, control, {over_left.data()},
                      {over_left.data(), before.data()}, in.size(), op_number);
      RunReduction<T>(kernel, threads, control, {over_right.data()}, {in.data(), over_right.data()},
                      in.size(), op_number);
      EXPECT_EQ(apart, expected) << Describe(kernel).name << ", operation " << number;
      EXPECT_EQ(over_left, found != ops.end() ? expected : in)
          << Describe(kernel).name << ", operation " << number;
      EXPECT_EQ(over_right, expected) << Describe(kernel).name << ", operation " << number;
    }
    CheckManyOperands(kernel, static_cast<uint64_t>(number),
                      found != ops.end() ? &found->of : nullptr, in, before);
  }
}

template <typename T>
void CheckIntegers(ReductionType type) {
  for (const size_t count : {0, 1, 2, 63, 257}) {
    CheckReductions<T>(type, IntegerOps<T>(), Integers<T>(count, 1), Integers<T>(count, 99));
  }
}

TEST(DeviceKernelsTest, ReductionsOfIntegers) {
  CheckIntegers<int8_t>(ReductionType::kI8);
  CheckIntegers<uint8_t>(ReductionType::kU8);
  CheckIntegers<int16_t>(ReductionType::kI16);
  CheckIntegers<uint16_t>(ReductionType::kU16);
  CheckIntegers<int32_t>(ReductionType::kI32);
  CheckIntegers<uint32_t>(ReductionType::kU32);
  CheckIntegers<int64_t>(ReductionType::kI64);
  CheckIntegers<uint64_t>(ReductionType::kU64);
}

template <typename T>
std::vector<std::complex<T>> ComplexNumbers(size_t count, unsigned seed) {
  const std::vector<T> parts = Floats<T>(2 * count, seed);
  std::vector<std::complex<T>> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = {parts[2 * i], parts[2 * i + 1]};
  }
  return numbers;
}

template <typename T>
void CheckFloats(ReductionType type, ReductionType complex_type) {
  for (const size_t count : {0, 1, 100, 257}) {
    CheckReductions<T>(type, FloatOps<T>(), Floats<T>(count, 1), Floats<T>(count, 2));
    using Complex = std::complex<T>;
    CheckReductions<Complex>(complex_type, FieldOps<Complex>(), ComplexNumbers<T>(count, 3),
                             ComplexNumbers<T>(count, 4));
  }
}

TEST(DeviceKernelsTest, ReductionsOfFloatingPointNumbers) {
  CheckFloats<float>(ReductionType::kF32, ReductionType::kC32);
  CheckFloats<double>(ReductionType::kF64, ReductionType::kC64);
}

template <typename Value, typename Index>
struct Pair {
  Value value;
  Index index;
  bool operator==(const Pair&) const = default;
};

template <typename Value, typename Index>
void CheckPairs(ReductionType type) {
  using Each = Pair<Value, Index>;
  std::vector<Each> in;
  std::vector<Each> inout;
  for (int value : {-3, 0, 3}) {
    for (int other_value : {-3, 0, 3}) {
      for (int index : {0, 1, 2}) {
        in.push_back({static_cast<Value>(value), static_cast<Index>(index)});
        inout.push_back({static_cast<Value>(other_value), static_cast<Index>(1)});
      }
    }
  }
  const auto extreme = [](bool is_max) {
    return [is_max](Each a, Each b) {
      if (a.value == b.value) {
        return Each{a.value, std::min(a.index, b.index)};
      }
      return (a.value > b.value) == is_max ? a : b;
    };
  };
  CheckReductions<Each>(
      type, {{ReductionOp::kMinloc, extreme(false)}, {ReductionOp::kMaxloc, extreme(true)}}, in,
      inout);
}

TEST(DeviceKernelsTest, ExtremesAndWhereTheyAre) {
  CheckPairs<int16_t, int32_t>(ReductionType::kI16I32);
  CheckPairs<int32_t, int32_t>(ReductionType::kI32I32);
  CheckPairs<int64_t, int32_t>(ReductionType::kI64I32);
  CheckPairs<float, int32_t>(ReductionType::kF32I32);
  CheckPairs<float, float>(ReductionType::kF32F32);
  CheckPairs<double, int32_t>(ReductionType::kF64I32);
  CheckPairs<double, double>(ReductionType::kF64F64);
}

}  // namespace
}  // namespace ferry::gpu

// Conformance: blocks at equal distances, moved by the device.
#include <algorithm>
#include <cstring>

#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {
namespace {

struct Shape {
  uint64_t block_bytes;
  uint64_t block_count;
  int64_t stride_bytes;
  uint64_t packed_offset;  // so that the places are aligned differently
};

constexpr Shape kShapes[] = {{1, 1, 0, 0},       {1, 1000, 2, 1},        {3, 77, 5, 2},
                             {4, 1024, 12, 0},   {8, 513, 8, 8},         {8, 100, -24, 0},
                             {16, 64, 48, 0},    {16, 64, -16, 4},       {100, 9, 300, 7},
                             {4096, 5, 4097, 0}, {12'345, 33, 20'000, 3}};

uint64_t ExtentOf(const Shape& shape) {
  const auto step = static_cast<uint64_t>(std::max(shape.stride_bytes, -shape.stride_bytes));
  return step * (shape.block_count - 1) + shape.block_bytes;
}

// Where a block lies in the extent.
int64_t PlaceOf(const Shape& shape, uint64_t block) {
  const auto first =
      static_cast<int64_t>(shape.stride_bytes < 0 ? ExtentOf(shape) - shape.block_bytes : 0);
  return first + static_cast<int64_t>(block) * shape.stride_bytes;
}

class StridedConformance : public GpuBackendConformance {
 protected:
  void SetUp() override {
    GpuBackendConformance::SetUp();
    if (IsSkipped()) {
      return;
    }
    const Memory probe = Device(64);
    ExpectKernels(stream().CopyStrided({probe.data(), probe.bytes() + 32, 1, 2, 2, true}));
    FERRY_EXPECT_OK(stream().Synchronize());
  }

  // Packs blocks of device memory into `packed`, in device or pinned memory, and compares.
  void ExpectPacks(const Shape& shape, const Memory& packed, bool on_device) {
    const uint64_t extent = ExtentOf(shape);
    const Memory blocks = Device(extent);
    const Bytes data = Pattern(extent, 5);
    FERRY_EXPECT_OK(Upload(backend(), blocks.data(), data));
    Bytes expected;
    for (uint64_t i = 0; i < shape.block_count; ++i) {
      const int64_t at = PlaceOf(shape, i);
      expected.insert(expected.end(), data.begin() + at,
                      data.begin() + at + static_cast<int64_t>(shape.block_bytes));
    }
    Copy(shape, blocks, packed, /*packs=*/true);
    const uint8_t* const got = packed.bytes() + shape.packed_offset;
    if (on_device) {
      ExpectHolds(got, expected);
    } else {
      EXPECT_EQ(Bytes(got, got + shape.block_bytes * shape.block_count), expected);
    }
  }
  // Packs the blocks, or unpacks them.
  void Copy(const Shape& shape, const Memory& blocks, const Memory& packed, bool packs) {
    FERRY_EXPECT_OK(stream().CopyStrided({blocks.bytes() + PlaceOf(shape, 0),
                                          packed.bytes() + shape.packed_offset, shape.block_bytes,
                                          shape.block_count, shape.stride_bytes, packs}));
    FERRY_EXPECT_OK(stream().Synchronize());
  }
};

TEST_P(StridedConformance, PacksInsideTheDevice) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(std::to_string(shape.block_bytes) + " x " + std::to_string(shape.block_count));
    ExpectPacks(shape, Device(shape.packed_offset + shape.block_bytes * shape.block_count), true);
  }
}

TEST_P(StridedConformance, PacksIntoPinnedMemory) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(std::to_string(shape.block_bytes) + " x " + std::to_string(shape.block_count));
    ExpectPacks(shape, Pinned(shape.packed_offset + shape.block_bytes * shape.block_count), false);
  }
}

TEST_P(StridedConformance, UnpacksJustTheBlocks) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(std::to_string(shape.block_bytes) + " x " + std::to_string(shape.block_count));
    const uint64_t extent = ExtentOf(shape);
    const uint64_t size = shape.block_bytes * shape.block_count;
    const Memory blocks = Device(extent);
    const Memory packed = Pinned(shape.packed_offset + size);
    const Bytes data = Pattern(size, 6);
    std::memcpy(packed.bytes() + shape.packed_offset, data.data(), size);
    Bytes expected(extent, 0xee);
    FERRY_EXPECT_OK(Upload(backend(), blocks.data(), expected));
    for (uint64_t i = 0; i < shape.block_count; ++i) {
      std::memcpy(expected.data() + PlaceOf(shape, i), data.data() + i * shape.block_bytes,
                  shape.block_bytes);
    }
    Copy(shape, blocks, packed, /*packs=*/false);
    ExpectHolds(blocks.data(), expected);
  }
}

TEST_P(StridedConformance, RunsInTheStreamsOrder) {
  const Memory blocks = Device(2000);
  const Memory packed = Device(1000);
  const Bytes data = Pattern(2000, 7);
  Bytes got(1000);
  FERRY_EXPECT_OK(stream().CopyAsync(blocks.data(), data.data(), 2000));
  FERRY_EXPECT_OK(stream().CopyStrided({blocks.data(), packed.data(), 1, 1000, 2, true}));
  FERRY_EXPECT_OK(stream().CopyStrided({blocks.bytes() + 1, packed.data(), 1, 1000, 2, false}));
  FERRY_EXPECT_OK(stream().CopyAsync(got.data(), packed.data(), 1000));
  FERRY_EXPECT_OK(stream().Synchronize());
  const StatusOr<Bytes> all = Download(backend(), blocks.data(), 2000);
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  for (size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(got[i], data[2 * i]) << i;
    ASSERT_EQ((*all)[2 * i], data[2 * i]) << i;
    ASSERT_EQ((*all)[2 * i + 1], data[2 * i]) << i;
  }
}

TEST_P(StridedConformance, RejectsWhatIsNoCopy) {
  const Memory blocks = Device(4096);
  const Memory packed = Pinned(4096);
  Bytes ordinary(4096);
  constexpr uint64_t kHuge = uint64_t{1} << 40;
  Stream& on = stream();
  FERRY_EXPECT_CODE(kInvalidArgument, on.CopyStrided({nullptr, packed.data(), 8, 8, 16, true}));
  FERRY_EXPECT_CODE(kInvalidArgument, on.CopyStrided({blocks.data(), nullptr, 8, 8, 16, true}));
  FERRY_EXPECT_CODE(kInvalidArgument,
                    on.CopyStrided({blocks.data(), packed.data(), kHuge, kHuge, 16, true}));
  FERRY_EXPECT_CODE(kInvalidArgument,
                    on.CopyStrided({blocks.data(), packed.data(), 8, kHuge, INT64_MIN, true}));
  FERRY_EXPECT_CODE(kInvalidArgument,  // blocks to be written overlap
                    on.CopyStrided({blocks.data(), packed.data(), 8, 8, 7, false}));
  FERRY_EXPECT_CODE(kInvalidArgument,
                    on.CopyStrided({blocks.data(), blocks.bytes() + 20, 8, 8, 16, true}));
  FERRY_EXPECT_CODE(kInvalidBuffer,
                    on.CopyStrided({blocks.data(), packed.data(), 8, 257, 16, true}));
  FERRY_EXPECT_CODE(kInvalidBuffer,
                    on.CopyStrided({blocks.bytes() + 64, packed.data(), 8, 8, -16, true}));
  FERRY_EXPECT_CODE(kInvalidBuffer,
                    on.CopyStrided({blocks.data(), ordinary.data(), 8, 8, 16, true}));
  FERRY_EXPECT_CODE(kInvalidBuffer,
                    on.CopyStrided({blocks.data(), packed.bytes() + 4033, 8, 8, 16, true}));
  // None of that poisoned the stream, and nothing is fine.
  FERRY_EXPECT_OK(on.CopyStrided({nullptr, nullptr, 0, 8, 16, true}));
  FERRY_EXPECT_OK(on.CopyStrided({nullptr, nullptr, 8, 0, 16, true}));
  FERRY_EXPECT_OK(on.CopyStrided({blocks.data(), packed.data(), 8, 256, 16, true}));
  FERRY_EXPECT_OK(on.Synchronize());
}

INSTANTIATE_TEST_SUITE_P(Backends, StridedConformance, testing::ValuesIn(ConformanceBackends()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace ferry::gpu

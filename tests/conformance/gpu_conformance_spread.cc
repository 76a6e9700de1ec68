// Conformance: blocks from several places, brought to several others by one kernel.
#include <algorithm>
#include <vector>

#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kRoom = 16;

class SpreadConformance : public GpuBackendConformance {
 protected:
  void SetUp() override {
    GpuBackendConformance::SetUp();
    if (IsSkipped()) {
      return;
    }
    const Memory probe = Device(64);
    ExpectKernels(stream().CopySpread(Of({probe.data()}, {probe.bytes() + 32}, 8)));
    FERRY_EXPECT_OK(stream().Synchronize());
  }
  static SpreadCopy Of(const std::vector<const void*>& sources, const std::vector<void*>& places,
                       uint64_t block_bytes) {
    SpreadCopy copy{.source_count = sources.size(),
                    .destination_count = places.size(),
                    .block_bytes = block_bytes};
    std::copy(sources.begin(), sources.end(), copy.sources.begin());
    std::copy(places.begin(), places.end(), copy.destinations.begin());
    return copy;
  }
};

// One source is in its place with the first destination already.
TEST_P(SpreadConformance, EachPlaceGetsAllBlocks) {
  for (const uint64_t block : {1, 4, 16, 100, 4097}) {
    for (const uint64_t count : {1, 2, 8}) {
      SCOPED_TRACE(std::to_string(count) + " x " + std::to_string(block));
      std::vector<Memory> blocks;
      std::vector<Memory> places;
      std::vector<const void*> from;
      std::vector<void*> to;
      Bytes expected;
      for (uint64_t i = 0; i < count; ++i) {
        const Bytes data = Pattern(block, static_cast<uint8_t>(i + 1));
        expected.insert(expected.end(), data.begin(), data.end());
        blocks.push_back(Device(block + kRoom));
        places.push_back(Device(count * block + kRoom));
        to.push_back(places[i].bytes() + (i % 3));
        const bool is_in_place = i == count - 1;
        uint8_t* const source =
            is_in_place ? static_cast<uint8_t*>(to[0]) + i * block : blocks[i].bytes() + (i % 5);
        FERRY_EXPECT_OK(Upload(backend(), source, data));
        from.push_back(source);
      }
      FERRY_EXPECT_OK(stream().CopySpread(Of(from, to, block)));
      FERRY_EXPECT_OK(stream().Synchronize());
      for (const void* place : to) {
        ExpectHolds(place, expected);
      }
    }
  }
}

TEST_P(SpreadConformance, RunsInTheStreamsOrder) {
  const Memory block = Device(64);
  const Memory place = Device(64);
  const Bytes data = Pattern(64, 7);
  Bytes got(64);
  FERRY_EXPECT_OK(stream().CopyAsync(block.data(), data.data(), 64));
  FERRY_EXPECT_OK(stream().CopySpread(Of({block.data()}, {place.data()}, 64)));
  FERRY_EXPECT_OK(stream().CopyAsync(got.data(), place.data(), 64));
  FERRY_EXPECT_OK(stream().Synchronize());
  EXPECT_EQ(got, data);
}

TEST_P(SpreadConformance, RejectsWhatIsNoCopy) {
  const Memory block = Device(4096);
  const Memory place = Device(4096);
  Bytes ordinary(4096);
  Stream& on = stream();
  FERRY_EXPECT_CODE(kInvalidArgument, on.CopySpread(Of({}, {place.data()}, 8)));
  FERRY_EXPECT_CODE(kInvalidArgument, on.CopySpread(Of({block.data()}, {}, 8)));
  FERRY_EXPECT_CODE(kInvalidArgument, on.CopySpread(Of({nullptr}, {place.data()}, 8)));
  FERRY_EXPECT_CODE(kInvalidArgument, on.CopySpread(Of({block.data()}, {nullptr}, 8)));
  SpreadCopy many = Of({block.data()}, {place.data()}, 8);
  many.source_count = SpreadCopy::kMost + 1;
  FERRY_EXPECT_CODE(kInvalidArgument, on.CopySpread(many));
  FERRY_EXPECT_CODE(kInvalidArgument,  // not its place
                    on.CopySpread(Of({place.bytes() + 4}, {place.data()}, 8)));
  FERRY_EXPECT_CODE(kInvalidArgument,
                    on.CopySpread(Of({block.data()}, {place.data(), place.bytes() + 7}, 8)));
  FERRY_EXPECT_CODE(kInvalidArgument,
                    on.CopySpread(Of({block.data()}, {place.data()}, uint64_t{1} << 63 | 1)));
  FERRY_EXPECT_CODE(kInvalidBuffer, on.CopySpread(Of({ordinary.data()}, {place.data()}, 8)));
  FERRY_EXPECT_CODE(kInvalidBuffer, on.CopySpread(Of({block.data()}, {ordinary.data()}, 8)));
  FERRY_EXPECT_CODE(kInvalidBuffer, on.CopySpread(Of({block.bytes() + 4090}, {place.data()}, 8)));
  // None of that poisoned the stream, and nothing is fine.
  FERRY_EXPECT_OK(on.CopySpread(Of({nullptr}, {nullptr}, 0)));
  FERRY_EXPECT_OK(on.CopySpread(Of({block.data()}, {place.data()}, 4096)));
  FERRY_EXPECT_OK(on.Synchronize());
}

INSTANTIATE_TEST_SUITE_P(Backends, SpreadConformance, testing::ValuesIn(ConformanceBackends()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace ferry::gpu

#include <gtest/gtest.h>

#include "gpu_backends/host/emulated_link.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kMega = 1'000'000;
constexpr LinkRoute kIn{LinkRoute::kHost, 0, false};
constexpr LinkRoute kOut{0, LinkRoute::kHost, false};
constexpr LinkRoute kPageableIn{LinkRoute::kHost, 0, true};
constexpr LinkRoute kPageableOut{0, LinkRoute::kHost, true};
constexpr LinkRoute kInside{0, 0, false};
constexpr LinkRoute kAcross{0, 1, false};

// A megabyte takes 1000 us in, 500 us out, 100 us inside; 10 us to start.
HostLinkOptions Options(uint64_t engines) {
  return {.h2d_mb_per_s = 1000,
          .d2h_mb_per_s = 2000,
          .d2d_mb_per_s = 10'000,
          .latency_us = 10,
          .engines = engines};
}

LinkInterval Us(uint64_t begin_us, uint64_t end_us) { return {begin_us * 1000, end_us * 1000}; }

TEST(LinkModelTest, CopyTakesItsStartUpAndItsBytes) {
  const LinkModel model(Options(2), 2);
  EXPECT_EQ(model.DurationNs(kIn, kMega), 1'010'000u);
  EXPECT_EQ(model.DurationNs(kOut, kMega), 510'000u);
  EXPECT_EQ(model.DurationNs(kInside, kMega), 110'000u);
  EXPECT_EQ(model.DurationNs(kAcross, kMega), 1'010'000u);  // the slower of in and out
  EXPECT_EQ(model.DurationNs(kIn, 1), 10'001u);
}

TEST(LinkModelTest, PageableMemoryHasItsOwnBandwidthAndStartUp) {
  HostLinkOptions options = Options(2);
  options.pageable_h2d_mb_per_s = 500;
  options.pageable_d2h_mb_per_s = 250;
  options.pageable_latency_us = 30;
  const LinkModel model(options, 1);
  EXPECT_EQ(model.DurationNs(kPageableIn, kMega), 2'030'000u);
  EXPECT_EQ(model.DurationNs(kPageableOut, kMega), 4'030'000u);
  EXPECT_EQ(model.DurationNs(kIn, kMega), 1'010'000u);
}

TEST(LinkModelTest, WithoutPageableFiguresPageableMemoryIsAsFast) {
  const LinkModel model(Options(2), 1);
  EXPECT_EQ(model.DurationNs(kPageableIn, kMega), model.DurationNs(kIn, kMega));
  EXPECT_EQ(model.DurationNs(kPageableOut, kMega), model.DurationNs(kOut, kMega));
}

TEST(LinkModelTest, WithoutAnInnerBandwidthOnlyTheStartUpCounts) {
  HostLinkOptions options = Options(2);
  options.d2d_mb_per_s = 0;
  EXPECT_EQ(LinkModel(options, 1).DurationNs(kInside, kMega), 10'000u);
}

TEST(LinkModelTest, SharedEngineServesBothDirectionsInOrder) {
  LinkModel model(Options(1), 1);
  EXPECT_EQ(model.Occupy(kOut, kMega, 0), Us(0, 510));
  EXPECT_EQ(model.Occupy(kIn, kMega, 0), Us(510, 1520));
  EXPECT_EQ(model.Occupy(kOut, kMega, 100'000), Us(1520, 2030));
}

TEST(LinkModelTest, SeparateEnginesServeTheDirectionsAtOnce) {
  LinkModel model(Options(2), 1);
  EXPECT_EQ(model.Occupy(kOut, kMega, 0), Us(0, 510));
  EXPECT_EQ(model.Occupy(kIn, kMega, 0), Us(0, 1010));
  EXPECT_EQ(model.Occupy(kOut, kMega, 0), Us(510, 1020));
}

TEST(LinkModelTest, AFreeEngineBeginsWhenTheCopyIsSubmitted) {
  LinkModel model(Options(1), 1);
  EXPECT_EQ(model.Occupy(kOut, kMega, 0), Us(0, 510));
  EXPECT_EQ(model.Occupy(kOut, kMega, 700'000), Us(700, 1210));
}

TEST(LinkModelTest, ALateCallerLosesNothing) {
  // Submitted in the model's past, as by a thread that woke up late: the engine was free then.
  LinkModel model(Options(2), 1);
  EXPECT_EQ(model.Occupy(kOut, kMega, 700'000), Us(700, 1210));
  EXPECT_EQ(model.Occupy(kIn, kMega, 50'000), Us(50, 1060));
}

TEST(LinkModelTest, CopiesInsideADeviceDisturbNoOther) {
  for (const uint64_t engines : {1, 2}) {
    LinkModel model(Options(engines), 1);
    EXPECT_EQ(model.Occupy(kInside, kMega, 0), Us(0, 110));
    EXPECT_EQ(model.Occupy(kIn, kMega, 0), Us(0, 1010));
    EXPECT_EQ(model.Occupy(kInside, kMega, 0), Us(110, 220));
  }
}

TEST(LinkModelTest, DevicesHaveEnginesOfTheirOwn) {
  LinkModel model(Options(1), 2);
  EXPECT_EQ(model.Occupy(kIn, kMega, 0), Us(0, 1010));
  EXPECT_EQ(model.Occupy({LinkRoute::kHost, 1, false}, kMega, 0), Us(0, 1010));
}

TEST(LinkModelTest, ACopyBetweenDevicesOccupiesAnEngineOfEach) {
  LinkModel model(Options(2), 2);
  EXPECT_EQ(model.Occupy(kOut, kMega, 0), Us(0, 510));
  EXPECT_EQ(model.Occupy(kAcross, kMega, 0), Us(510, 1520));
  EXPECT_EQ(model.Occupy(kOut, kMega, 0), Us(1520, 2030));                          // left 0
  EXPECT_EQ(model.Occupy({LinkRoute::kHost, 1, false}, kMega, 0), Us(1520, 2530));  // entered 1
  EXPECT_EQ(model.Occupy(kIn, kMega, 0), Us(0, 1010));                              // 0 is idle
  EXPECT_EQ(model.Occupy({1, LinkRoute::kHost, false}, kMega, 0), Us(0, 510));      // 1 is idle
}

TEST(LinkModelTest, ACopyFromHostToHostIsNone) {
  LinkModel model(Options(1), 1);
  EXPECT_EQ(model.Occupy({}, kMega, 5000), Us(5, 5));
  EXPECT_EQ(model.Occupy(kIn, kMega, 0), Us(0, 1010));
}

TEST(LinkModelTest, PaperLinkTakesWhatThePaperMeasured) {
  constexpr uint64_t kSize = 4 << 20;
  const LinkModel model(PaperLink(1), 1);
  EXPECT_EQ(model.DurationNs(kIn, kSize) / 1000, 1140u);
  EXPECT_EQ(model.DurationNs(kOut, kSize) / 1000, 773u);
  EXPECT_EQ(model.DurationNs(kPageableIn, kSize) / 1000, 1491u);
  EXPECT_EQ(model.DurationNs(kPageableOut, kSize) / 1000, 1248u);
  EXPECT_EQ(model.DurationNs(kIn, 16) / 1000, 27u);
  EXPECT_EQ(model.DurationNs(kPageableOut, 16) / 1000, 54u);
}

}  // namespace
}  // namespace ferry::gpu

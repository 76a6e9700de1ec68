#include "gpu_backends/api/gpu_source.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "gpu_backends/host/host_backend.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kIdleNs = 100;

class GpuSourceTest : public testing::Test {
 protected:
  GpuSource Source(std::unique_ptr<GpuBackend> opened = nullptr) {
    return {[this]() -> StatusOr<std::unique_ptr<GpuBackend>> {
              ++opened_;
              FERRY_RETURN_IF_ERROR(failure_);
              return CreateHostBackend({});
            },
            kIdleNs, std::move(opened)};
  }

  int opened_ = 0;
  Status failure_;
};

TEST_F(GpuSourceTest, OpensWhenItIsAskedAndOnceForAll) {
  GpuSource source = Source();
  EXPECT_FALSE(source.is_open());
  const auto first = source.Get();
  const auto second = source.Get();
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(first->get(), second->get());
  EXPECT_EQ(opened_, 1);
}

TEST_F(GpuSourceTest, StaysOpenWhileSomebodyHasIt) {
  GpuSource source = Source();
  auto held = source.Get();
  ASSERT_TRUE(held.ok());
  EXPECT_FALSE(source.ReleaseIdle(1));
  EXPECT_FALSE(source.ReleaseIdle(10 * kIdleNs));
  EXPECT_TRUE(source.is_open());
  held->reset();
  EXPECT_TRUE(source.ReleaseIdle(20 * kIdleNs));  // from now on no user has it
  EXPECT_TRUE(source.ReleaseIdle(21 * kIdleNs - 1));
  EXPECT_FALSE(source.ReleaseIdle(21 * kIdleNs));
  EXPECT_FALSE(source.is_open());
}

TEST_F(GpuSourceTest, ItsTimeBeginsAnewWithEachUse) {
  GpuSource source = Source(std::move(*CreateHostBackend({})));
  EXPECT_TRUE(source.is_open());
  EXPECT_TRUE(source.ReleaseIdle(1));
  EXPECT_TRUE(source.Get().ok());
  EXPECT_TRUE(source.ReleaseIdle(1 + kIdleNs));
  EXPECT_FALSE(source.ReleaseIdle(1 + 2 * kIdleNs));
  EXPECT_FALSE(source.is_open());
  EXPECT_EQ(opened_, 0);
  EXPECT_TRUE(source.Get().ok());
  EXPECT_EQ(opened_, 1);
}

TEST_F(GpuSourceTest, AFailureIsToldAndTriedAgain) {
  GpuSource source = Source();
  failure_ = {ErrorCode::kNotFound, "no driver"};
  EXPECT_EQ(source.Get().status().message(), "no driver");
  EXPECT_FALSE(source.is_open());
  failure_ = {};
  EXPECT_TRUE(source.Get().ok());
  EXPECT_EQ(opened_, 2);
}

}  // namespace
}  // namespace ferry::gpu

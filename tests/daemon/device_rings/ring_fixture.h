// Rings of devices in tests of the daemon: threads of the test write requests as a GPU's would.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "ferry/device/ring.h"
#include "shm/counter.h"
#include "shm/layout/device_ring_layout.h"
#include "shm/mpsc_ring.h"
#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {

inline constexpr uint32_t kRegion = 9;
inline constexpr uint64_t kRegionBytes = 1 << 20;
inline constexpr uint64_t kCounters = 512 << 10;  // in the region

// A rank's ring and its words, and what a GPU thread does with them.
class TestRing {
 public:
  TestRing(PlaneRank& rank, std::shared_ptr<Region> region, uint32_t index = 0, uint64_t offset = 0,
           uint32_t capacity = 64, uint32_t completions = 2048)
      : rank_(rank), region_(std::move(region)), index_(index) {
    auto* const layout = reinterpret_cast<shm::MpscRingLayout*>(region_->mapping.base() + offset);
    EXPECT_TRUE(shm::MpscRing::Initialize(layout, capacity).ok());
    layout->completions = completions;
    layout->region = region_->id;
    layout->completions_offset = offset + shm::MpscRing::SizeBytes(capacity);
    layout_ = layout;
    SentRts(region_->id, offset, capacity);
  }

  shm::RingWords& words() { return rank_.view().layout->rings[index_]; }
  void SentRts(uint32_t region, uint64_t offset, uint32_t capacity) {
    words().region = region;
    words().offset = offset;
    words().capacity = capacity;
    Change();
  }
  // Begins the ring's next life, or ends this one.
  void Change() {
    shm::StoreRelease(words().life, words().life + 1);
    shm::FetchAdd(rank_.view().layout->rings_changed, uint64_t{1}, std::memory_order_seq_cst);
    rank_.RingDaemon();
  }
  bool IsSettled() {
    return Eventually([&] { return shm::LoadAcquire(words().life_seen) == words().life; });
  }
  ErrorCode error() {
    EXPECT_TRUE(IsSettled());
    return static_cast<ErrorCode>(words().error);
  }

  ferry_device_ring Open() { return ferry_device_ring_open(layout_); }
  shm::MpscRingLayout* layout() { return layout_; }
  // Posts `request`, to be answered in completion `index`.
  ferry_device_u64 Post(ferry_device_ring_request request, uint32_t index) {
    request.completion_region = region_->id;
    request.completion = layout_->completions_offset + index * sizeof(shm::RingCompletion);
    return ferry_device_ring_post(Open(), request);
  }
  // Waits for the answer (20 s at most); returns its status.
  ErrorCode Answer(uint32_t index, ferry_device_u64 number) {
    int status = FERRY_DEVICE_RING_PENDING;
    EXPECT_TRUE(Eventually([&] {
      status = ferry_device_ring_test(Open(), index, number);
      return status != FERRY_DEVICE_RING_PENDING;
    }));
    return static_cast<ErrorCode>(status);
  }
  ErrorCode Ask(const ferry_device_ring_request& request) { return Answer(0, Post(request, 0)); }
  uint64_t value(uint32_t index = 0) { return ferry_device_ring_value(Open(), index); }
  uint64_t requests() { return shm::LoadRelaxed(words().requests); }
  uint64_t errors() { return shm::LoadAcquire(words().errors); }

 private:
  PlaneRank& rank_;
  const std::shared_ptr<Region> region_;
  const uint32_t index_;
  shm::MpscRingLayout* layout_ = nullptr;
};

inline ferry_device_ring_request Request(uint32_t kind, uint32_t region, uint64_t offset,
                                         uint64_t value) {
  return {kind, 0, 0, region, 0, offset, value, {0, 0}};
}

class RingsTest : public PlaneTest {
 protected:
  // A region of the rank besides its heap, which this test and the daemon share.
  std::shared_ptr<Region> AddRegion(uint32_t of_rank, uint32_t id = kRegion,
                                    uint64_t bytes = kRegionBytes) {
    std::shared_ptr<Region> region = MakeRegion(id, bytes);
    const Status status = plane(NodeOf(of_rank)).AddRegion(kJob, of_rank, region);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return region;
  }
  // On one node; rank 0 has a region.
  void StartWithRegion(uint32_t ranks = 1) {
    ASSERT_NO_FATAL_FAILURE(Start({ranks}));
    region_ = AddRegion(0);
  }
  static shm::CounterLayout* CounterAt(const std::shared_ptr<Region>& region, uint64_t offset) {
    return reinterpret_cast<shm::CounterLayout*>(region->mapping.base() + offset);
  }

  std::shared_ptr<Region> region_;
};

}  // namespace ferry::daemon

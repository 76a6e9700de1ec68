// A rank with a ring, a rank beside it, and one on another node, for tests of operations in their
// memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "ferry/device/ring_operations.h"
#include "shm/atomic.h"
#include "shm/layout/one_sided_layout.h"
#include "tests/daemon/device_rings/ring_fixture.h"

namespace ferry::daemon {

inline constexpr uint32_t kSilent = FERRY_DEVICE_RING_SILENT;
inline constexpr uint32_t kInOrder = FERRY_DEVICE_RING_IN_ORDER;
inline constexpr uint64_t kOwnBytes = 4 << 20;
inline constexpr uint64_t kOwn = 1 << 20;  // where the rank's own bytes lie, behind the ring
inline constexpr uint32_t kNear = 1, kFar = 2;

// Rank 0 has the ring. Rank 1 is on its node, rank 2 on another one.
class RingOperationsTest : public RingsTest {
 protected:
  void StartRanks() {
    ASSERT_NO_FATAL_FAILURE(Start({2, 1}));
    MakeRing();
  }
  void MakeRing() {
    region_ = AddRegion(0, kRegion, kOwnBytes);
    ring_ = std::make_unique<TestRing>(rank(0), region_);
    ASSERT_EQ(ring_->error(), ErrorCode::kOk);
    view_ = ring_->Open();
  }

  static ferry_device_far_place There(uint32_t of_rank, uint64_t offset) {
    return {of_rank, kHeapRegion, offset};
  }
  static ferry_device_place Here(uint64_t offset = kOwn) { return {kRegion, 0, offset}; }
  std::byte* own(uint64_t offset = kOwn) { return region_->mapping.base() + offset; }
  uint64_t& Word(uint32_t of_rank, uint64_t offset) {
    return *reinterpret_cast<uint64_t*>(rank(of_rank).heap() + offset);
  }

  // All waits of these tests end.
  bool IsOver(uint64_t number) {
    return Eventually([&] { return shm::LoadAcquire(ring_->layout()->over) >= number; });
  }
  ErrorCode Quiet() {
    if (!IsOver(ferry_device_load_acquire(view_.producers))) {
      return ErrorCode::kTimeout;  // the device's call would wait for ever
    }
    return static_cast<ErrorCode>(ferry_device_ring_quiet(view_));
  }
  ErrorCode Put(uint32_t to, uint64_t offset, uint64_t size_bytes) {
    return ring_->Answer(0,
                         ferry_device_ring_put(view_, There(to, offset), Here(), size_bytes, 0, 0));
  }
  ferry_device_u64 PutSignal(ferry_device_far_place to, uint64_t size_bytes,
                             ferry_device_far_place signal, bool adds, uint64_t value,
                             uint32_t completion) {
    return ferry_device_ring_put_signal(
        view_, to, Here(), size_bytes, signal,
        adds ? FERRY_DEVICE_RING_SIGNAL_ADD : FERRY_DEVICE_RING_SIGNAL_SET, value, 0,
        ferry_device_ring_completion_place(view_, completion));
  }
  ErrorCode Get(uint32_t from, uint64_t offset, uint64_t size_bytes) {
    return ring_->Answer(0,
                         ferry_device_ring_get(view_, Here(), There(from, offset), size_bytes, 0));
  }
  ErrorCode Add(uint32_t to, uint64_t offset, uint64_t value) {
    return ring_->Answer(0, ferry_device_ring_atomic(view_, There(to, offset),
                                                     FERRY_DEVICE_RING_ADD, 8, value, 0, 0, 0));
  }
  void PutSilently(uint32_t to, uint64_t offset, uint64_t value, uint32_t flags = 0) {
    ferry_device_ring_put_value(view_, There(to, offset), value, 0, 8, flags, kSilent);
  }

  // Rank 0's own, which adds 1 to a word of the far rank.
  void AddByLane(uint64_t offset) {
    shm::Descriptor add{};
    add.kind = static_cast<uint8_t>(shm::DescriptorKind::kOneSided);
    add.destination = kFar;
    add.context = kHeapRegion;
    shm::OneSidedCommand words{};
    words.operation = static_cast<uint8_t>(shm::OneSidedOperation::kAdd);
    words.width = 8;
    words.answer = shm::kNoAnswer;
    words.offset = offset;
    words.operand = 1;
    std::memcpy(add.payload, &words, sizeof(words));
    shm::LaneProducer lane(&rank(0).session().layout()->to_daemon);
    ASSERT_TRUE(Eventually([&] { return lane.HasRoom(); }));
    rank(0).PushToDaemon(add);
  }

  // Returns true while node 1's answers are held.
  bool IsStalled() { return plane(1).Faults(false).front().state == "stalls"; }

  std::unique_ptr<TestRing> ring_;
  ferry_device_ring view_{};
};

}  // namespace ferry::daemon

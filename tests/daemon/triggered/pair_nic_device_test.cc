// Matched pairs in device memory that the network card reaches: software moves the messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shm/atomic.h"
#include "shm/counter.h"
#include "shm/segment.h"
#include "tests/internode/core/nic_device_fixture.h"

namespace ferry::daemon {
namespace {

using testing::HasSubstr;

// From rank 0 to rank 1. The ends lie at the beginning of a region of the host.
class PairNicDeviceTest : public NicDeviceTest {
 protected:
  static constexpr uint64_t kNumber = 5;
  static constexpr uint32_t kHostRegion = 3;
  static constexpr uint64_t kHostBytes = 64 << 10;
  static constexpr uint64_t kCell = 16 << 10;  // and what is short

  void StartAll() {
    ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
    for (const uint32_t end : {0U, 1U}) {
      auto segment = shm::CreateSegment("test", kHostBytes);
      auto host = std::make_shared<Region>();
      host->id = kHostRegion;
      host->mapping = std::move(*shm::MapSegment(segment->get(), 0));
      ASSERT_TRUE(plane(end).AddRegion(kJob, end, host).ok());
      host_[end] = host;
      device_[end] = std::make_shared<Region>();
      device_[end]->id = kDeviceRegion;
      device_[end]->by_stream = true;
    }
  }
  static uint64_t WindowAt(uint32_t of_rank) {
    return of_rank == 0 ? kSourceOffset : kDestinationOffset;
  }
  Status Reach(uint32_t of_rank, uint64_t size_bytes) {
    std::promise<Status> reached;
    plane(of_rank).ReachWindows(kJob, of_rank, {{kDeviceRegion, WindowAt(of_rank), size_bytes}},
                                [&](const Status& status) { reached.set_value(status); });
    return reached.get_future().get();
  }
  Status AddEnd(uint32_t of_rank, Kind kind, uint64_t size_bytes) {
    const bool is_device = kind == Kind::kDevice;
    PairPlan plan;
    plan.name = {kJob, of_rank, kNumber};
    plan.peer = 1 - of_rank;
    plan.is_send = of_rank == 0;
    plan.size_bytes = size_bytes;
    plan.peer_number = kNumber;
    plan.end = {host_[of_rank], 0};
    plan.window = is_device ? RegionPlace{device_[of_rank], WindowAt(of_rank)}
                            : RegionPlace{host_[of_rank], kCell};
    if (is_device && of_rank == 1) {
      plan.cells = {host_[of_rank], kCell};
      plan.cell_count = 1;
      plan.cell_bytes = shm::kCellBytes;
    }
    return plane(of_rank).AddPair(plan);
  }
  void AddPair(uint64_t size_bytes) {
    for (const uint32_t end : {0U, 1U}) {
      Status status = Reach(end, size_bytes);
      ASSERT_TRUE(status.ok()) << status.ToString();
      status = AddEnd(end, Kind::kDevice, size_bytes);
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
  }
  void RemovePair() {
    for (const uint32_t end : {0U, 1U}) {
      plane(end).RemovePair({kJob, end, kNumber});
    }
  }
  shm::PairLayout& End(uint32_t of_rank) {
    return *reinterpret_cast<shm::PairLayout*>(host_[of_rank]->mapping.base());
  }
  void StartEnd(uint32_t of_rank, uint64_t round) {
    shm::StoreRelease(End(of_rank).armed, round);
    shm::FetchAdd(rank(of_rank).view().layout->pairs_armed, uint64_t{1}, std::memory_order_seq_cst);
    rank(of_rank).RingDaemon();
    shm::StoreRelease(End(of_rank).start.value, round);
  }
  bool IsDone(uint64_t round) {
    return shm::LoadAcquire(End(0).done.value) == round &&
           shm::LoadAcquire(End(1).done.value) == round;
  }
  bool Fails(uint32_t of_rank, ErrorCode error) {
    return Eventually([&] { return shm::Counter(&End(of_rank).done).error() == error; });
  }
  // How often the card says that word.
  int64_t Lines(const std::string& word) const {
    std::ifstream log(log_);
    int64_t count = 0;
    for (std::string line; std::getline(log, line);) {
      count += line.rfind(word, 0) == 0 ? 1 : 0;
    }
    return count;
  }

  std::shared_ptr<Region> host_[2];
  std::shared_ptr<Region> device_[2];
};

TEST_F(PairNicDeviceTest, MessagesGoFromCardToCard) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(AddPair(kMiB + 5));
  for (uint64_t round = 1; round <= 3; ++round) {
    const Message message = Make(kBoth, kMiB + 5);
    StartEnd(round % 2 == 0 ? 0 : 1, round);
    StartEnd(round % 2 == 0 ? 1 : 0, round);
    ASSERT_TRUE(Eventually([&] { return IsDone(round); }));
    ExpectThere(message);
  }
  EXPECT_EQ(Lines("write "), 3);
  for (const uint32_t end : {0U, 1U}) {
    EXPECT_EQ(plane(end).Nic().device_direct, 3U);
    EXPECT_EQ(plane(end).Nic().device_staged, 0U);
  }
  // The program frees its requests, and then the memory.
  RemovePair();
  for (const uint32_t end : {0U, 1U}) {
    plane(end).RemoveRegion(kJob, end, kDeviceRegion);
  }
  EXPECT_GE(Lines("register"), 2);
  EXPECT_EQ(Lines("release"), Lines("register")) << "the driver may give it to others now";
}

// It was matched with a send of fewer bytes than the receive has room for.
TEST_F(PairNicDeviceTest, AShortMessageComesToTheCell) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_TRUE(Reach(1, kMiB).ok());
  ASSERT_TRUE(AddEnd(1, Kind::kDevice, 100).ok());
  ASSERT_TRUE(AddEnd(0, Kind::kHeap, 100).ok());
  const std::vector<std::byte> sent = Pattern(100, 9);
  std::memcpy(host_[0]->mapping.base() + kCell, sent.data(), sent.size());
  StartEnd(0, 1);
  StartEnd(1, 1);
  ASSERT_TRUE(Eventually([&] { return IsDone(1); }));
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), host_[1]->mapping.base() + kCell));
  EXPECT_EQ(plane(1).Nic().device_direct, 0U);
}

TEST_F(PairNicDeviceTest, WhatTheCardRefusesIsNoWindow) {
  setenv("GPU_NIC_REFUSES", "12", 1);
  ASSERT_NO_FATAL_FAILURE(StartAll());
  int64_t refusals = 0;
  for (int repeats = 0; repeats < 2; ++repeats) {
    const Status status = Reach(0, kMiB);
    EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("does not take device memory (region 2)"));
    refusals = repeats == 0 ? Lines("refuse") : refusals;
  }
  EXPECT_GT(refusals, 0);
  EXPECT_EQ(Lines("refuse"), refusals) << "it is not asked again";
  EXPECT_THAT(plane(0).Nic().device_refusal, HasSubstr("fi_mr_regattr with a dma-buf"));
  EXPECT_EQ(Reach(1, kDeviceBytes + 1).code(), ErrorCode::kUnsupported) << "beyond its end";
}

// A rank, or its daemon's control plane, that does not ask.
TEST_F(PairNicDeviceTest, MemoryThatNoCardReachesIsNoWindow) {
  amend_device_ = {};
  setenv("GPU_NIC", "nothing", 1);
  ASSERT_NO_FATAL_FAILURE(StartAll());
  EXPECT_EQ(Reach(0, kMiB).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(AddEnd(0, Kind::kDevice, kMiB).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(AddEnd(1, Kind::kDevice, kMiB).code(), ErrorCode::kUnsupported);
}

TEST_F(PairNicDeviceTest, ARegionThatGoesEndsItsPairs) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(AddPair(kMiB));
  gate(0).closed = true;
  StartEnd(1, 1);
  StartEnd(0, 1);
  ASSERT_TRUE(Eventually([&] { return gate(0).held != 0; }));
  std::atomic<bool> removed{false};
  std::thread remover([&] {
    plane(0).RemoveRegion(kJob, 0, kDeviceRegion);
    removed = true;
  });
  EXPECT_TRUE(Fails(0, ErrorCode::kInvalidBuffer));
  EXPECT_FALSE(removed);  // the card has it
  gate(0).closed = false;
  remover.join();
  EXPECT_EQ(Registered(0), 0U);
  plane(1).EndPair({kJob, 1, kNumber}, 0, ErrorCode::kInvalidRequest);  // as its daemon is told
  RemovePair();
  ExpectPassed(Begin({"", Kind::kHeap, Kind::kDevice}, kMiB));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace ferry::daemon

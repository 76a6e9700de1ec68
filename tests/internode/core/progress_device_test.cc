// Messages between nodes from and to device memory that only streams reach: pipelines of blocks,
// and early ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/daemon/trace/trace_reading.h"
#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

using testing::SizeIs;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kBlockBytes = 128 << 10;
constexpr uint64_t kThresholdBytes = 256 << 10;
constexpr uint64_t kSourceOffset = 128;
constexpr uint64_t kDestinationOffset = 4 * kMiB + 64;

enum class Kind { kHeap, kPrivate, kDevice };

// Returns true if a transfer of the rank has failed, and only waits for the operations that it has
// begun.
bool HasFailed(const RankReport& report) {
  return std::any_of(report.transfers.begin(), report.transfers.end(), [](const auto& transfer) {
    return transfer.wants != nullptr && std::strstr(transfer.wants, "it has failed") != nullptr;
  });
}

struct Ends {
  const char* name;
  Kind source;
  Kind destination;
};

class ProgressDeviceTest : public PlaneTest {
 protected:
  ProgressDeviceTest() { UseDevices(4000, 5000); }
  void StartTwo(uint64_t staging_blocks = 8) {
    config::Options options = FastOptions();
    options.pipeline_block_bytes = kBlockBytes;
    options.pipeline_staging_blocks = staging_blocks;
    Start({1, 1}, options);
  }
  // A message from rank 0 to rank 1.
  struct Message {
    Ends ends;
    std::vector<std::byte> sent;
    std::vector<std::byte> got;
    uint64_t offset = 0;  // in one of several messages, at either end
    Passage passage = {};
  };
  static shm::Location Place(Kind kind, uint64_t offset, const void* address) {
    return kind == Kind::kHeap     ? InHeap(offset)
           : kind == Kind::kDevice ? InDevice(offset)
                                   : Private(address);
  }
  Message Begin(const Ends& ends, uint64_t size_bytes, int32_t tag = 7, uint64_t offset = 0) {
    Message message{ends, Pattern(size_bytes, 3 + static_cast<uint32_t>(tag)),
                    std::vector<std::byte>(size_bytes), offset};
    const uint64_t from = kSourceOffset + offset;
    if (ends.source != Kind::kPrivate) {
      std::byte* base = ends.source == Kind::kHeap ? rank(0).heap() : rank(0).device();
      std::memcpy(base + from, message.sent.data(), size_bytes);
    }
    message.passage = PlaneTest::Begin(
        0, 1, Place(ends.source, from, message.sent.data()),
        Place(ends.destination, kDestinationOffset + offset, message.got.data()), size_bytes, tag);
    return message;
  }
  void ExpectPassed(const Message& message) {
    ExpectEnd(message.passage);
    const std::byte* where = message.got.data();
    if (message.ends.destination != Kind::kPrivate) {
      where = (message.ends.destination == Kind::kHeap ? rank(1).heap() : rank(1).device()) +
              kDestinationOffset + message.offset;
    }
    EXPECT_TRUE(std::equal(message.sent.begin(), message.sent.end(), where));
  }
  [[nodiscard]] bool Stands(uint32_t node) {
    return Meanwhile([&] { return plane(node).Faults(false)[0].state == "stalls"; });
  }
  // A message between devices, of which node `node` has copied one block and stops at the next.
  void BeginStalled(uint32_t node, Message* message) {
    GiveFaults(node, node == 0 ? "staging.copy_in:2:stall" : "staging.copy_out:2:stall");
    ASSERT_NO_FATAL_FAILURE(StartTwo());
    *message = Begin(kBoth, kMiB);
    ASSERT_TRUE(Stands(node));
  }

  static constexpr Ends kBoth{"", Kind::kDevice, Kind::kDevice};
};

class DevicePathTest : public ProgressDeviceTest, public testing::WithParamInterface<Ends> {};

TEST_P(DevicePathTest, MovesMessagesOfAllSizes) {
  ASSERT_NO_FATAL_FAILURE(StartTwo());
  for (const uint64_t size_bytes :
       {uint64_t{33}, uint64_t{8192}, uint64_t{8193}, kThresholdBytes - 1, kThresholdBytes,
        kThresholdBytes + 1, kBlockBytes, kBlockBytes + 1, kMiB + 1, 3 * kMiB + 12345}) {
    SCOPED_TRACE(size_bytes);
    ExpectPassed(Begin(GetParam(), size_bytes));
  }
  ExpectNothingLeft();
}

TEST_P(DevicePathTest, ManyAtOnceShareTwoBlocks) {
  constexpr uint64_t kBytes = 150'000;
  ASSERT_NO_FATAL_FAILURE(StartTwo(2));
  std::vector<Message> messages;
  messages.reserve(20);
  for (int32_t tag = 0; tag < 20; ++tag) {
    messages.push_back(Begin(GetParam(), kBytes, tag, static_cast<uint64_t>(tag) * kBytes));
  }
  for (const Message& message : messages) {
    ExpectPassed(message);
  }
  ExpectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(Ends, DevicePathTest,
                         testing::Values(Ends{"DeviceToDevice", Kind::kDevice, Kind::kDevice},
                                         Ends{"DeviceToHeap", Kind::kDevice, Kind::kHeap},
                                         Ends{"DeviceToPrivate", Kind::kDevice, Kind::kPrivate},
                                         Ends{"HeapToDevice", Kind::kHeap, Kind::kDevice},
                                         Ends{"PrivateToDevice", Kind::kPrivate, Kind::kDevice}),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- Blocks ------------------------------------------------------------------------------------

class DeviceBlocksTest : public ProgressDeviceTest {
 protected:
  // (offset, bytes) of every copy of a message out of the device and into it.
  using Blocks = std::vector<std::pair<uint64_t, uint64_t>>;
  void Trace(uint64_t size_bytes) {
    ASSERT_NO_FATAL_FAILURE(StartTraces());
    ExpectPassed(Begin(kBoth, size_bytes));
    ExpectNothingLeft();
    copies_in_ = ReadTrace(plane(0).StopTrace(), 0).Named("copy in");
    const TraceReading receiver = ReadTrace(plane(1).StopTrace(), 1);
    copies_out_ = receiver.Named("copy out");
    reads_ = receiver.Named("RDMA read");
  }
  static Blocks BlocksOf(const std::vector<TraceSpan>& spans) {
    Blocks blocks;
    for (const TraceSpan& span : spans) {
      blocks.emplace_back(span.arguments["offset"], span.arguments["bytes"]);
    }
    std::sort(blocks.begin(), blocks.end());
    return blocks;
  }
  void StartCutting(const std::string& mode, uint64_t to_host, uint64_t to_device,
                    uint64_t block_bytes = 8 * kMiB) {
    config::Options options = FastOptions();
    options.pipeline_block_bytes = block_bytes;
    options.pipeline_mode = mode;
    options.pipeline_blocks_to_host = to_host;
    options.pipeline_blocks_to_device = to_device;
    Start({1, 1}, options);
  }

  std::vector<TraceSpan> copies_in_;
  std::vector<TraceSpan> copies_out_;
  std::vector<TraceSpan> reads_;
};

TEST_F(DeviceBlocksTest, AreThoseOfTheAdvancedPlan) {
  ASSERT_NO_FATAL_FAILURE(StartCutting("advanced", 2, 2));
  ASSERT_NO_FATAL_FAILURE(Trace(kMiB));
  const Blocks expected = {{0, kMiB / 4}, {kMiB / 4, 3 * kMiB / 4}};
  EXPECT_EQ(BlocksOf(copies_in_), expected);
  EXPECT_EQ(BlocksOf(reads_), expected);
  EXPECT_EQ(BlocksOf(copies_out_), expected);
  const bool by_worker = InWorkerProcess();
  EXPECT_EQ(copies_in_[0].arguments["place"], by_worker ? "ferry-worker" : "device 0 to host");
  EXPECT_EQ(copies_out_[0].arguments["place"], by_worker ? "ferry-worker" : "device 0 from host");
}

TEST_F(DeviceBlocksTest, AreAsManyAsTheGreedierSideWants) {
  ASSERT_NO_FATAL_FAILURE(StartCutting("even", 2, 4));
  ASSERT_NO_FATAL_FAILURE(Trace(kMiB));
  EXPECT_EQ(
      BlocksOf(copies_in_),
      (Blocks{
          {0, kMiB / 4}, {kMiB / 4, kMiB / 4}, {kMiB / 2, kMiB / 4}, {3 * kMiB / 4, kMiB / 4}}));
}

TEST_F(DeviceBlocksTest, AreOneUpToTheThresholdAndInNaiveMode) {
  ASSERT_NO_FATAL_FAILURE(StartCutting("advanced", 8, 8));
  ASSERT_NO_FATAL_FAILURE(Trace(kThresholdBytes));
  EXPECT_THAT(copies_in_, SizeIs(1));
  Stop();
  ASSERT_NO_FATAL_FAILURE(StartCutting("naive", 8, 8));
  ASSERT_NO_FATAL_FAILURE(Trace(kMiB));
  EXPECT_THAT(copies_in_, SizeIs(1));
  EXPECT_THAT(copies_out_, SizeIs(1));
}

TEST_F(DeviceBlocksTest, AreNoLongerThanStagingBlocks) {
  ASSERT_NO_FATAL_FAILURE(StartCutting("advanced", 2, 2, kBlockBytes));
  ASSERT_NO_FATAL_FAILURE(Trace(kMiB));
  EXPECT_THAT(copies_in_, SizeIs(kMiB / kBlockBytes));
  for (const TraceSpan& in : copies_in_) {
    EXPECT_LE(uint64_t{in.arguments["bytes"]}, kBlockBytes);
  }
}

// A link that is slow enough to hide what the machine does else, unless that is busy: then the
// steps of a message may come one after the other. If they always do, nothing travels at the same
// time.
TEST_F(DeviceBlocksTest, TravelAtTheSameTime) {
  constexpr int kMostMessages = 50;
  devices_->link = {.h2d_mb_per_s = 50, .d2h_mb_per_s = 50, .latency_us = 100};
  ASSERT_NO_FATAL_FAILURE(StartCutting("even", 4, 4));
  const auto first = [](const std::vector<TraceSpan>& spans) {
    return *std::min_element(spans.begin(), spans.end(),
                             [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  };
  const auto overlap_any = [](const TraceSpan& one, const std::vector<TraceSpan>& others) {
    return std::any_of(others.begin(), others.end(),
                       [&](const TraceSpan& other) { return one.Overlaps(other); });
  };
  // Returns true if the total time is less than the copies take one after the other.
  const auto is_short = [&] {
    uint64_t copying_ns = 0;
    uint64_t end_ns = 0;
    for (const auto* spans : {&copies_in_, &copies_out_}) {
      for (const TraceSpan& span : *spans) {
        copying_ns += span.end_ns - span.begin_ns;
        end_ns = std::max(end_ns, span.end_ns);
      }
    }
    return end_ns - first(copies_in_).begin_ns < copying_ns;
  };
  // The first block goes into one device while later ones leave the other.
  bool do_overlap = false;
  for (int message = 0; message < kMostMessages && !do_overlap; ++message) {
    ASSERT_NO_FATAL_FAILURE(Trace(2 * kMiB));  // 10 ms a block and copy
    ASSERT_THAT(copies_in_, SizeIs(4));
    ASSERT_THAT(copies_out_, SizeIs(4));
    do_overlap = overlap_any(first(copies_out_), copies_in_) &&
                 overlap_any(first(reads_), copies_in_) && is_short();
  }
  EXPECT_TRUE(do_overlap);
}

// ---- Early ends --------------------------------------------------------------------------------

TEST_F(ProgressDeviceTest, ACopyThatFailsIsToldToBothRanks) {
  for (const auto& [node, point] :
       {std::pair{0U, "staging.copy_in"}, std::pair{1U, "staging.copy_out"},
        std::pair{0U, "staging.provide"}, std::pair{1U, "staging.provide"}}) {
    SCOPED_TRACE(std::string(point) + " on node " + std::to_string(node));
    GiveFaults(node, std::string(point) + ":1:LIMIT");
    ASSERT_NO_FATAL_FAILURE(StartTwo());
    ExpectEnd(Begin(kBoth, kMiB).passage, ErrorCode::kLimitExceeded);
    ExpectPassed(Begin(kBoth, kMiB));
    ExpectNothingLeft();
    Stop();
  }
}

TEST_F(ProgressDeviceTest, WaitsForStagingBlocks) {
  GiveFaults(0, "staging.provide:1:stall");
  ASSERT_NO_FATAL_FAILURE(StartTwo());
  const Message message = Begin(kBoth, kMiB);
  ASSERT_TRUE(Stands(0));
  EXPECT_TRUE(Eventually([&] {
    rank(1).Progress();
    return plane(0).Nic().staging_waits == 1;
  }));
  EXPECT_FALSE(rank(0).Test(message.passage.send));
  plane(0).Faults(/*release=*/true);
  ExpectPassed(message);
  ExpectNothingLeft();
}

TEST_F(ProgressDeviceTest, ARegionThatGoesInTheMiddleFailsBothSides) {
  for (const uint32_t node : {0U, 1U}) {
    SCOPED_TRACE(node);
    Message message;
    ASSERT_NO_FATAL_FAILURE(BeginStalled(node, &message));
    std::atomic<bool> removed{false};
    std::thread remover([&] {
      plane(node).RemoveRegion(kJob, node, kDeviceRegion);
      removed = true;
    });
    if (node == 0) {  // the other side is told at once, but the region stays until its copy ends
      EXPECT_EQ(WaitTogether(1, message.passage.receive), ErrorCode::kInvalidBuffer);
      EXPECT_FALSE(removed);
    } else {
      EXPECT_TRUE(Eventually([&] { return HasFailed(plane(1).Inspect(kJob, 1)); }));
    }
    plane(node).Faults(/*release=*/true);
    if (node == 1) {
      EXPECT_EQ(WaitTogether(1, message.passage.receive), ErrorCode::kInvalidBuffer);
    }
    EXPECT_EQ(WaitTogether(0, message.passage.send), ErrorCode::kInvalidBuffer);
    remover.join();
    // Messages that need no region go on.
    ExpectPassed(Begin({"", Kind::kHeap, Kind::kHeap}, kMiB));
    ExpectNothingLeft();
    Stop();
  }
}

TEST_F(ProgressDeviceTest, ARankThatDiesInTheMiddleFailsTheOther) {
  for (const uint32_t dead : {0U, 1U}) {
    SCOPED_TRACE(dead);
    Message message;
    ASSERT_NO_FATAL_FAILURE(BeginStalled(dead, &message));
    std::thread remover([&] { RemoveRank(dead); });
    plane(1 - dead).RankEnded(kJob, dead, ErrorCode::kPeerDied);
    const uint32_t alive = 1 - dead;
    EXPECT_EQ(rank(alive).Wait(alive == 0 ? message.passage.send : message.passage.receive),
              ErrorCode::kPeerDied);
    plane(dead).Faults(/*release=*/true);
    remover.join();
    EXPECT_TRUE(Eventually([&] { return plane(alive).Nic().staging_busy == 0; }));
    Stop();
  }
}

TEST_F(ProgressDeviceTest, WithoutStreamsNobodyCanFetchIt) {
  planes_have_gpus_ = false;
  ASSERT_NO_FATAL_FAILURE(StartTwo());
  ExpectEnd(Begin({"", Kind::kDevice, Kind::kHeap}, kMiB).passage, ErrorCode::kUnsupported);
  ExpectEnd(Begin({"", Kind::kHeap, Kind::kDevice}, kMiB).passage, ErrorCode::kUnsupported);
  ExpectPassed(Begin({"", Kind::kHeap, Kind::kHeap}, kMiB));
  ExpectNothingLeft();
}

// Contexts cost much of each GPU's memory.
TEST_F(ProgressDeviceTest, GivesDevicesBackOnceNothingIsImported) {
  config::Options options = FastOptions();
  options.pipeline_block_bytes = kBlockBytes;
  options.gpu_idle_release_ms = 0;
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}, options));
  ExpectPassed(Begin(kBoth, kMiB));
  ExpectNothingLeft();
  for (uint32_t node = 0; node < 2; ++node) {
    plane(node).ReleaseGpus();
    EXPECT_EQ(gpus_[node]->is_open(), !InWorkerProcess());  // the worker process opens it instead
    RemoveRank(node);
    plane(node).RemoveJob(kJob);
    EXPECT_TRUE(Eventually([&] {
      plane(node).ReleaseGpus();
      return !gpus_[node]->is_open();
    }));
  }
}

TEST_F(ProgressDeviceTest, AnotherUsersMemoryIsLeftToItsRank) {
  ASSERT_NO_FATAL_FAILURE(StartTwo());
  Session other;
  other.uid = geteuid() + 1;
  const auto region = std::make_shared<Region>();
  EXPECT_EQ(plane(0).ImportRegion(other, region).code(), ErrorCode::kUnsupported);
  EXPECT_FALSE(region->is_staged());
}

}  // namespace
}  // namespace ferry::daemon

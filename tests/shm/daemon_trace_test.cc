// A daemon's ring of events about a job: what the daemon adds, a reader of a copy finds, the newest
// of it; and a reader survives what no daemon adds.
#include "shm/daemon_trace.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace ferry::shm {
namespace {

constexpr uint32_t kJobSize = 16;
constexpr uint64_t kBeginNs = 700;
constexpr DaemonTraceLimits kLimits{.job_size = kJobSize};

// All members follow from one number.
DaemonTraceSlot EventNumber(uint64_t i) {
  DaemonTraceSlot event{};
  event.begin_ns = 1000 + 10 * i;
  event.end_ns = 1005 + 10 * i;
  event.message = i << 32 | 17;
  event.offset = i + 1;
  event.bytes = i + 2;
  event.rank = static_cast<uint32_t>(i % kJobSize);
  event.peer = static_cast<uint32_t>((i + 1) % kJobSize);
  event.peer_node = static_cast<uint32_t>(i + 3);
  event.error = static_cast<int16_t>(-static_cast<int16_t>(i % 5));
  event.worker = static_cast<uint16_t>(i + 4);
  event.block = static_cast<uint16_t>(i + 5);
  event.work = static_cast<uint8_t>(DaemonWork::kRts);
  event.place = static_cast<uint8_t>(i % 5);
  return event;
}

bool IsNumber(const DaemonTraceSlot& found, uint64_t i) {
  DaemonTraceSlot event = found;
  event.check = 0;
  const DaemonTraceSlot wanted = EventNumber(i);
  return std::memcmp(&event, &wanted, sizeof(event)) == 0;
}

class DaemonTraceTest : public testing::Test {
 protected:
  static constexpr uint64_t kSlots = 32;  // of the page that it gets

  DaemonTraceTest() {
    const StatusOr<UniqueFd> fd = CreateSegment("test", DaemonTraceWriter::BytesWithin(64 * 33));
    StatusOr<Mapping> mapping = MapSegment(fd->get(), 0);
    base_ = mapping->base();
    bytes_ = mapping->size_bytes();
    writer_.emplace(std::move(*mapping), kBeginNs);
  }
  void Add(uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      writer_->Add(EventNumber(i));
    }
  }
  std::vector<std::byte> Copy() const { return {base_, base_ + bytes_}; }
  DaemonTraceEvents Read(const std::vector<std::byte>& copy) const {
    const std::optional<DaemonTraceEvents> read = ReadDaemonTrace(copy, kLimits);
    EXPECT_TRUE(read.has_value());
    return read.value_or(DaemonTraceEvents());
  }

  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;
  std::optional<DaemonTraceWriter> writer_;
};

TEST_F(DaemonTraceTest, HasNoEventsAtFirst) {
  const DaemonTraceEvents read = Read(Copy());
  EXPECT_TRUE(read.events.empty());
  EXPECT_EQ(read.lost, 0U);
  EXPECT_EQ(read.refused, 0U);
  EXPECT_EQ(read.complete_since_ns, kBeginNs);
}

TEST_F(DaemonTraceTest, KeepsEventsWhole) {
  Add(0, kSlots);
  const DaemonTraceEvents read = Read(Copy());
  ASSERT_EQ(read.events.size(), kSlots);
  for (uint64_t i = 0; i < kSlots; ++i) {
    EXPECT_TRUE(IsNumber(read.events[i], i)) << i;
  }
  EXPECT_EQ(read.lost, 0U);
  EXPECT_EQ(read.complete_since_ns, kBeginNs);
}

TEST_F(DaemonTraceTest, NewEventsReplaceTheOldestWhichAreCounted) {
  Add(0, 1000);
  const DaemonTraceEvents read = Read(Copy());
  ASSERT_EQ(read.events.size(), kSlots);
  for (uint64_t i = 0; i < kSlots; ++i) {
    EXPECT_TRUE(IsNumber(read.events[i], 1000 - kSlots + i)) << i;
  }
  EXPECT_EQ(read.lost, 1000 - kSlots);
  EXPECT_EQ(read.complete_since_ns, EventNumber(1000 - kSlots).end_ns);
}

TEST_F(DaemonTraceTest, TakesThePowerOfTwoOfSlotsThatFits) {
  EXPECT_EQ(DaemonTraceWriter::BytesWithin(0), 0U);
  EXPECT_EQ(DaemonTraceWriter::BytesWithin(64 * 16), 0U);
  EXPECT_EQ(DaemonTraceWriter::BytesWithin(64 * 17), 64U * 17);
  EXPECT_EQ(DaemonTraceWriter::BytesWithin(64 * 33 - 1), 64U * 17);
  EXPECT_EQ(DaemonTraceWriter::BytesWithin(64 * 33), 64U * 33);
  EXPECT_EQ(DaemonTraceWriter::BytesWithin(UINT64_MAX), 64 + 64 * uint64_t{kDaemonTraceMaxSlots});
}

// Words of two events in one slot, as a copy may have it that was made meanwhile.
TEST_F(DaemonTraceTest, ATornSlotCountsAsLost) {
  Add(0, kSlots);
  const std::vector<std::byte> before = Copy();
  Add(kSlots, 2 * kSlots);
  for (size_t words = 1; words < sizeof(DaemonTraceSlot) / 8; ++words) {
    std::vector<std::byte> copy = Copy();
    std::memcpy(copy.data() + sizeof(DaemonTraceHeader), before.data() + sizeof(DaemonTraceHeader),
                8 * words);
    const DaemonTraceEvents read = Read(copy);
    EXPECT_EQ(read.events.size(), kSlots - 1) << words;
    EXPECT_EQ(read.lost, kSlots + 1) << words;
  }
}

TEST_F(DaemonTraceTest, RefusesOtherMemoryAndOtherVersions) {
  Add(0, 3);
  const auto refused = [&](auto&& change) {
    std::vector<std::byte> copy = Copy();
    change(reinterpret_cast<DaemonTraceHeader*>(copy.data()), &copy);
    return !ReadDaemonTrace(copy, kLimits).has_value();
  };
  EXPECT_FALSE(refused([](auto*, auto*) {}));
  EXPECT_TRUE(refused([](auto* header, auto*) { header->magic ^= 1; }));
  EXPECT_TRUE(refused([](auto* header, auto*) { ++header->version; }));
  EXPECT_TRUE(refused([](auto* header, auto*) { header->slots = 8; }));
  EXPECT_TRUE(refused([](auto* header, auto*) { header->slots = 24; }));
  EXPECT_TRUE(refused([](auto* header, auto*) { header->slots = 1024; }));
  EXPECT_TRUE(refused([](auto*, auto* copy) { copy->resize(63); }));
  EXPECT_TRUE(refused([](auto*, auto* copy) { copy->resize(64 * kSlots); }));
}

// Whole, but not such as a daemon adds.
TEST_F(DaemonTraceTest, RefusesImpossibleEvents) {
  const auto add = [&](auto&& change) {
    DaemonTraceSlot event = EventNumber(0);
    change(&event);
    writer_->Add(event);
  };
  add([](DaemonTraceSlot* event) { event->rank = kJobSize; });
  add([](DaemonTraceSlot* event) { event->peer = kJobSize; });
  add([](DaemonTraceSlot* event) { event->work = static_cast<uint8_t>(kLastDaemonWork) + 1; });
  add([](DaemonTraceSlot* event) { event->work = static_cast<uint8_t>(DaemonWork::kCounters); });
  add([](DaemonTraceSlot* event) { event->place = static_cast<uint8_t>(kLastDaemonPlace) + 1; });
  add([](DaemonTraceSlot* event) { event->begin_ns = event->end_ns + 1; });
  add([](DaemonTraceSlot* event) { event->end_ns = 20'001; });
  add([](DaemonTraceSlot*) {});
  const std::optional<DaemonTraceEvents> read =
      ReadDaemonTrace(Copy(), {.job_size = kJobSize, .latest_ns = 20'000});
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->events.size(), 1U);
  EXPECT_EQ(read->refused, 7U);
  EXPECT_EQ(read->lost, 7U);
}

TEST_F(DaemonTraceTest, ReadsAnyBytes) {
  std::mt19937_64 dice(4711);
  for (int round = 0; round < 200; ++round) {
    Add(0, dice() % 100);
    std::vector<std::byte> copy = Copy();
    for (int i = 0; i < 20; ++i) {
      copy[dice() % copy.size()] = static_cast<std::byte>(dice());
    }
    if (const auto read = ReadDaemonTrace(copy, kLimits); read.has_value()) {
      for (const DaemonTraceSlot& event : read->events) {
        EXPECT_LT(event.rank, kJobSize);
        EXPECT_LE(event.begin_ns, event.end_ns);
      }
    }
  }
}

TEST(DaemonTraceTextTest, EachWorkAndPlaceHasAName) {
  for (int work = 0; work <= static_cast<int>(kLastDaemonWork); ++work) {
    EXPECT_NE(DaemonWorkText(static_cast<DaemonWork>(work)), "?") << work;
  }
  EXPECT_EQ(DaemonPlaceText(DaemonPlace::kCopyWorker, 3), "copy worker 3");
  EXPECT_EQ(DaemonPlaceText(DaemonPlace::kStream, 4), "device 2 to host");
  EXPECT_EQ(DaemonPlaceText(DaemonPlace::kStream, 5), "device 2 from host");
}

}  // namespace
}  // namespace ferry::shm

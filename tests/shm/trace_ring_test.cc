// The ring of events: what a rank adds, a reader finds, the newest of it; and a reader survives
// what no rank adds.
#include "shm/trace_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "shm/atomic.h"
#include "shm/call_record.h"

namespace ferry::shm {
namespace {

constexpr uint32_t kJobSize = 16;
constexpr uint64_t kBeginNs = 7;
constexpr TraceLimits kLimits{.job_size = kJobSize};

// All members follow from one number.
TraceEvent EventNumber(uint64_t i) {
  TraceEvent event;
  event.kind = static_cast<TraceKind>(1 + i % 7);
  event.flags = static_cast<uint8_t>(i % 32);
  event.begin_ns = 1000 + i;
  event.end_ns = 2000 + i;
  event.thread = static_cast<uint32_t>(i + 1);
  const bool is_call = event.kind == TraceKind::kCall || event.kind == TraceKind::kWait;
  if (is_call) {
    event.name = CallName::kMpiSend;
  } else {
    event.order = static_cast<uint32_t>(i + 2);
  }
  event.group = static_cast<uint32_t>(i + 3);
  event.peer = static_cast<int32_t>(i % kJobSize);
  event.tag = static_cast<int32_t>(i + 4);
  event.number = static_cast<uint32_t>(i + 5);
  event.bytes = i + 6;
  return event;
}

bool IsNumber(const TraceEvent& event, uint64_t i) {
  const TraceEvent wanted = EventNumber(i);
  return event.kind == wanted.kind && event.flags == wanted.flags && event.name == wanted.name &&
         event.begin_ns == wanted.begin_ns && event.end_ns == wanted.end_ns &&
         event.thread == wanted.thread && event.order == wanted.order &&
         event.group == wanted.group && event.peer == wanted.peer && event.tag == wanted.tag &&
         event.number == wanted.number && event.bytes == wanted.bytes;
}

class TraceRingTest : public testing::Test {
 protected:
  static constexpr uint64_t kSlots = 16;

  std::span<std::byte> Part() { return {reinterpret_cast<std::byte*>(part_.data()), PartBytes()}; }
  uint64_t PartBytes() const { return part_.size() * sizeof(TraceSlot); }
  TraceSlot& SlotAt(uint64_t i) { return part_[i + 1]; }  // behind the header, which is as large
  TraceEvents Read() {
    const std::optional<TraceEvents> read = ReadTraceRing(Part(), kLimits);
    EXPECT_TRUE(read.has_value());
    return read.value_or(TraceEvents());
  }

  std::vector<TraceSlot> part_ = std::vector<TraceSlot>(kSlots + 1);
};

TEST_F(TraceRingTest, HasNoEventsAtFirst) {
  const TraceRingWriter writer(Part(), kBeginNs);
  const TraceEvents read = Read();
  EXPECT_TRUE(read.events.empty());
  EXPECT_EQ(read.added, 0U);
  EXPECT_EQ(read.lost, 0U);
  EXPECT_EQ(read.begin_ns, kBeginNs);
}

TEST_F(TraceRingTest, TakesThePowerOfTwoOfSlotsThatFits) {
  EXPECT_EQ(TraceRingWriter::BytesWithin(0), 0U);
  EXPECT_EQ(TraceRingWriter::BytesWithin(64 * 16), 0U);
  EXPECT_EQ(TraceRingWriter::BytesWithin(64 * 17), 64U * 17);
  EXPECT_EQ(TraceRingWriter::BytesWithin(64 * 33 - 1), 64U * 17);
  EXPECT_EQ(TraceRingWriter::BytesWithin(64 * 33), 64U * 33);
  EXPECT_EQ(TraceRingWriter::BytesWithin(UINT64_MAX), 64 + 64 * uint64_t{kTraceMaxSlots});
}

TEST_F(TraceRingTest, KeepsEventsInOrder) {
  TraceRingWriter writer(Part(), kBeginNs);
  for (uint64_t i = 0; i < 10; ++i) {
    writer.Add(EventNumber(i), i % 2 == 0);
  }
  const TraceEvents read = Read();
  ASSERT_EQ(read.events.size(), 10U);
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(IsNumber(read.events[i], i)) << i;
  }
  EXPECT_EQ(read.added, 10U);
  EXPECT_EQ(read.lost, 0U);
  EXPECT_EQ(writer.added(), 10U);
}

TEST_F(TraceRingTest, NewEventsReplaceTheOldest) {
  TraceRingWriter writer(Part(), kBeginNs);
  for (uint64_t i = 0; i < 1000; ++i) {
    writer.Add(EventNumber(i), false);
  }
  const TraceEvents read = Read();
  ASSERT_EQ(read.events.size(), kSlots);
  for (uint64_t i = 0; i < kSlots; ++i) {
    EXPECT_TRUE(IsNumber(read.events[i], 1000 - kSlots + i)) << i;
  }
  EXPECT_EQ(read.added, 1000U);
  EXPECT_EQ(read.lost, 1000 - kSlots);
}

// Each byte of a slot counts.
TEST_F(TraceRingTest, ASlotOfTwoEventsIsLost) {
  TraceRingWriter writer(Part(), kBeginNs);
  for (uint64_t i = 0; i < 5; ++i) {
    writer.Add(EventNumber(i), false);
  }
  auto* const bytes = reinterpret_cast<uint8_t*>(&SlotAt(2));
  for (size_t i = 0; i < sizeof(TraceSlot); ++i) {
    bytes[i] ^= 0x40;
    const TraceEvents read = Read();
    EXPECT_EQ(read.events.size(), 4U) << "byte " << i;
    EXPECT_EQ(read.lost, 1U) << "byte " << i;
    bytes[i] ^= 0x40;
  }
  EXPECT_EQ(Read().events.size(), 5U);
}

TEST_F(TraceRingTest, RefusesWhatNoRankAdds) {
  TraceRingWriter writer(Part(), kBeginNs);
  const auto add = [&](auto&& change) {
    TraceEvent event = EventNumber(2);  // a send
    event.kind = TraceKind::kSend;
    change(event);
    writer.Add(event, false);
  };
  add([](TraceEvent& event) { event.kind = TraceKind::kNone; });
  add([](TraceEvent& event) { event.kind = static_cast<TraceKind>(9); });
  add([](TraceEvent& event) { event.end_ns = event.begin_ns - 1; });
  add([](TraceEvent& event) { event.peer = kJobSize; });
  add([](TraceEvent& event) { event.peer = kCallNoRank; });
  add([](TraceEvent& event) {
    event.kind = TraceKind::kCall;
    event.name = CallName::kNone;
  });
  add([](TraceEvent& event) {
    event.kind = TraceKind::kCall;
    event.name = static_cast<CallName>(kMostCallNames);
  });
  EXPECT_TRUE(Read().events.empty());
  EXPECT_EQ(Read().refused, 7U);
  EXPECT_EQ(Read().lost, 0U);
  writer.Add(EventNumber(100), false);  // from 1100 to 2100 ns
  EXPECT_EQ(ReadTraceRing(Part(), {kJobSize, 1100, 2100})->events.size(), 1U);
  EXPECT_EQ(ReadTraceRing(Part(), {kJobSize, 1101, 2100})->events.size(), 0U);
  EXPECT_EQ(ReadTraceRing(Part(), {kJobSize, 1100, 2099})->events.size(), 0U);
}

TEST_F(TraceRingTest, RefusesARingThatIsNone) {
  EXPECT_FALSE(ReadTraceRing({}, kLimits).has_value());
  EXPECT_FALSE(ReadTraceRing(Part(), kLimits).has_value());  // all zero
  const TraceRingWriter writer(Part(), kBeginNs);
  auto& header = reinterpret_cast<TraceRingHeader&>(part_.front());
  EXPECT_TRUE(ReadTraceRing(Part(), kLimits).has_value());
  EXPECT_FALSE(ReadTraceRing(Part().first(PartBytes() - 1), kLimits).has_value());
  EXPECT_FALSE(ReadTraceRing(Part().first(63), kLimits).has_value());
  for (const uint32_t slots : {0U, 8U, 15U, 17U, 32U, 0x8000'0000U, UINT32_MAX}) {
    header.slots = slots;
    EXPECT_FALSE(ReadTraceRing(Part(), kLimits).has_value()) << slots;
  }
  header.slots = kSlots;
  header.version = kTraceVersion + 1;
  EXPECT_FALSE(ReadTraceRing(Part(), kLimits).has_value());
}

// With the check words made to fit, as a hostile rank can.
TEST_F(TraceRingTest, AReaderSurvivesAnyBytes) {
  std::mt19937_64 random(20261130);
  for (int round = 0; round < 2000; ++round) {
    TraceRingWriter writer(Part(), kBeginNs);
    for (uint64_t i = 0; i < kSlots; ++i) {
      TraceEvent event;
      event.kind = static_cast<TraceKind>(random() % 10);
      event.flags = static_cast<uint8_t>(random());
      event.begin_ns = random() >> random() % 64;
      event.end_ns = random() >> random() % 64;
      event.name = static_cast<CallName>(random());
      event.order = static_cast<uint32_t>(random());
      event.peer = static_cast<int32_t>(random()) >> random() % 32;
      event.number = static_cast<uint32_t>(random());
      writer.Add(event, false);
    }
    const TraceEvents read = Read();
    EXPECT_EQ(read.events.size() + read.refused, kSlots);
    for (const TraceEvent& event : read.events) {
      EXPECT_LE(event.begin_ns, event.end_ns);
      EXPECT_LT(event.peer, static_cast<int32_t>(kJobSize));
      EXPECT_STRNE(CallText(event.name), nullptr);
    }
    auto* const bytes = reinterpret_cast<uint8_t*>(part_.data());
    for (uint64_t i = 0; i < PartBytes(); ++i) {
      bytes[i] = static_cast<uint8_t>(random());
    }
    (void)ReadTraceRing(Part(), kLimits);
  }
}

// Four threads add, a fifth one copies: each event that is found is one that was added.
TEST(TraceRingThreadsTest, ACopyHasWholeEvents) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kEvents = 50000;
  std::vector<TraceSlot> part(64 + 1);
  const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(part.data()),
                                   part.size() * sizeof(TraceSlot));
  TraceRingWriter writer(bytes, kBeginNs);
  std::atomic<uint64_t> running{kThreads};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEvents; ++i) {
        writer.Add(EventNumber(i * kThreads + t), true);
      }
      --running;
    });
  }
  std::vector<uint64_t> copy(bytes.size() / sizeof(uint64_t));
  uint64_t found = 0;
  const auto look = [&] {
    const auto* const words = reinterpret_cast<const uint64_t*>(part.data());
    for (size_t i = 0; i < copy.size(); ++i) {
      copy[i] = LoadRelaxed(words[i]);
    }
    const std::optional<TraceEvents> read = ReadTraceRing(std::as_bytes(std::span(copy)), kLimits);
    ASSERT_TRUE(read.has_value());
    for (const TraceEvent& event : read->events) {
      ASSERT_TRUE(IsNumber(event, event.bytes - 6)) << event.bytes;
    }
    found += read->events.size();
  };
  while (running.load() != 0) {
    look();
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  look();
  EXPECT_GT(found, 0U);
  EXPECT_EQ(writer.added(), kThreads * kEvents);
}

}  // namespace
}  // namespace ferry::shm

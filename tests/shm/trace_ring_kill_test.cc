// A rank that is stopped, or killed, at any instruction while it adds events: a reader finds whole
// events, all but the one that is being written.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "shm/trace_ring.h"
#include "tests/shm/shared_memory.h"
#include "tests/shm/step_kill.h"

namespace ferry::shm {
namespace {

constexpr uint64_t kSlots = 16;
constexpr uint64_t kAdded = 2;  // by the child, in the places of the first two

TraceEvent EventNumber(uint64_t i) {
  TraceEvent event;
  event.kind = TraceKind::kSend;
  event.flags = kTraceHasBytes | kTraceHasTag;
  event.begin_ns = event.end_ns = event.bytes = i;
  event.thread = event.order = event.group = event.number = static_cast<uint32_t>(i);
  event.peer = event.tag = static_cast<int32_t>(i);
  return event;
}

bool IsWhole(const TraceEvent& event) {
  const TraceEvent wanted = EventNumber(event.bytes);
  return event.kind == wanted.kind && event.begin_ns == wanted.begin_ns &&
         event.end_ns == wanted.end_ns && event.thread == wanted.thread &&
         event.order == wanted.order && event.group == wanted.group &&
         event.number == wanted.number && event.peer == wanted.peer && event.tag == wanted.tag;
}

TEST(TraceRingKillTest, AReaderFindsWholeEventsAtEachInstruction) {
  FERRY_REQUIRE_STEPPING();
  const SharedMemory memory(sizeof(TraceRingHeader) + kSlots * sizeof(TraceSlot));
  const std::span<std::byte> part(memory.base(), memory.size_bytes());
  std::optional<TraceRingWriter> writer;
  uint64_t all = 0;
  uint64_t all_but_one = 0;
  std::vector<bool> seen(kSlots + kAdded);
  const uint64_t instructions = ForEachInstruction(
      1,
      [&] {
        std::memset(part.data(), 0, part.size());
        writer.emplace(part, 1);
        for (uint64_t i = 0; i < kSlots; ++i) {
          writer->Add(EventNumber(i), false);
        }
      },
      [&] {
        for (uint64_t i = kSlots; i < kSlots + kAdded; ++i) {
          writer->Add(EventNumber(i), i % 2 == 0);
        }
      },
      [&](SteppedChild& child) {
        child.Kill();
        const std::optional<TraceEvents> read = ReadTraceRing(part, {.job_size = kSlots + kAdded});
        ASSERT_TRUE(read.has_value());
        uint64_t last = 0;
        for (const TraceEvent& event : read->events) {
          ASSERT_TRUE(IsWhole(event)) << event.bytes;
          ASSERT_TRUE(last == 0 || event.bytes > last);
          last = event.bytes;
          seen[event.bytes] = true;
        }
        ASSERT_EQ(read->refused, 0U);
        ASSERT_GE(read->events.size(), kSlots - 1);
        ++(read->events.size() == kSlots ? all : all_but_one);
      });
  EXPECT_GT(instructions, 50U);
  EXPECT_GT(all, 0U);
  EXPECT_GE(all_but_one, 2 * 8U);
  for (uint64_t i = 0; i < seen.size(); ++i) {
    EXPECT_TRUE(seen[i]) << i;
  }
}

}  // namespace
}  // namespace ferry::shm

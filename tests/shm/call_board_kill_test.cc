// A rank that is stopped, or killed, at any instruction while it shows a call: a reader finds no
// call, the one before or this one, each whole, or that it is being changed.
#include <gtest/gtest.h>

#include <cstring>

#include "shm/call_board.h"
#include "shm/call_record.h"
#include "tests/shm/shared_memory.h"
#include "tests/shm/step_kill.h"

namespace ferry::shm {
namespace {

constexpr uint32_t kJobSize = 4;

CallDescription CallNumber(uint64_t i) {
  CallDescription call;
  call.name = i % 2 == 0 ? CallName::kMpiRecv : CallName::kMpiSend;
  call.flags = kCallHasGroup | kCallHasTag | kCallHasBytes | kCallHasNumber;
  call.group = static_cast<uint32_t>(i);
  call.peer = call.peer_in_group = static_cast<int32_t>(i % kJobSize);
  call.tag = static_cast<int32_t>(i);
  call.bytes = call.number = i;
  call.write_name = [](const void*, char(&name)[kCallGroupNameBytes]) {
    std::memset(name, 'x', sizeof(name));
  };
  return call;
}

bool IsWhole(const CallView& view) {
  const CallDescription call = CallNumber(view.number);
  return view.name == call.name && view.group == call.group && view.peer == call.peer &&
         view.tag == call.tag && view.bytes == call.bytes && view.begin_ns == view.number;
}

TEST(CallBoardKillTest, AReaderFindsWholeCallsAtEachInstruction) {
  FERRY_REQUIRE_STEPPING();
  const Shared<CallBoardLayout> layout;
  uint64_t none = 0;
  uint64_t first = 0;
  uint64_t second = 0;
  uint64_t changing = 0;
  const uint64_t instructions = ForEachInstruction(
      1, [&] { std::memset(static_cast<void*>(layout.get()), 0, sizeof(CallBoardLayout)); },
      [&] {
        CallBoard board(layout.get());
        const int slot = board.Begin(CallNumber(1), 1, 1, false);
        board.End(slot, false);
        const int again = board.Begin(CallNumber(2), 1, 2, false);
        board.End(again, false);
      },
      [&](SteppedChild&) {
        CallView view;
        switch (ReadCall(layout->slots[0], kJobSize, &view)) {
          case CallLook::kNone:
            ++none;
            break;
          case CallLook::kChanging:
            ++changing;
            break;
          case CallLook::kCall:
            EXPECT_TRUE(IsWhole(view)) << "number " << view.number;
            EXPECT_EQ(view.generation, view.number);
            ++(view.number == 1 ? first : second);
        }
      });
  EXPECT_GT(instructions, 100U);
  EXPECT_GT(none, 0U);
  EXPECT_GT(first, 0U);
  EXPECT_GT(second, 0U);
  EXPECT_GT(changing, 0U);
}

}  // namespace
}  // namespace ferry::shm

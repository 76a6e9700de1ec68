// The orders of memory by which a reader gets the words of one call.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "shm/call_board.h"
#include "shm/call_record.h"
#include "tests/shm/weak/orders.h"

namespace ferry::shm {
namespace {

using weak::Body;
using weak::ExpectOrders;
using weak::Order;
using weak::Weakening;
using weak::Without;

constexpr uint32_t kRanks = 16;
constexpr uint32_t kCalls = 3;

CallBoardLayout layout;
CallRecordLayout& record = layout.slots[0];

// Of all words behind the sequence.
Weakening WithoutInWords(Order order) {
  return {order, &record.generation, sizeof(record) - sizeof(record.sequence)};
}

// All words that the reader compares tell the number of the call.
CallDescription Call(uint32_t number) {
  return {.name = CallName::kMpiRecv,
          .flags = kCallHasTag | kCallHasBytes,
          .peer = static_cast<int32_t>(number),
          .peer_in_group = static_cast<int32_t>(number),
          .tag = static_cast<int32_t>(number),
          .bytes = number};
}

void CheckView() {
  CallView view;
  if (ReadCall(record, kRanks, &view) != CallLook::kCall) {
    return;
  }
  const uint64_t number = view.bytes;
  weak::Check(view.tag == static_cast<int32_t>(number) &&
                  view.peer == static_cast<int32_t>(number) && view.generation == number,
              "words of two calls");
  weak::Check(view.begin_ns == 0 || view.begin_ns == number, "when another call began");
}

TEST(RecordOrdersTest, AViewHasTheWordsOfOneCall) {
  ExpectOrders(
      [] {
        layout = {};
        return std::vector<Body>{[] {
                                   CallBoard board(&layout);
                                   const int slot = board.Begin(Call(1), 1, 1, false);
                                   for (uint32_t i = 2; i <= kCalls; ++i) {
                                     board.Change(slot, Call(i), 1, i);
                                   }
                                 },
                                 [] { CheckView(); }};
      },
      {{"CallBoard::Write, the words", WithoutInWords(Order::kRelease)},
       {"CallBoard::Write, the sequence", Without(Order::kRelease, record.sequence)},
       {"ReadCall, the words", WithoutInWords(Order::kAcquire)},
       {"ReadCall, the sequence", Without(Order::kAcquire, record.sequence)}});
}

// A store that leaves the sequence as it is. The first call is there before the threads begin, and
// the reader begins when the writer is through: that alone orders nothing.
TEST(RecordOrdersTest, WhenACallBeganIsThatOfTheCall) {
  static bool is_over = false;
  ExpectOrders(
      [] {
        layout = {};
        is_over = false;
        const auto board = std::make_shared<CallBoard>(&layout);
        const int first = board->Begin(Call(1), 1, 1, false);
        return std::vector<Body>{[board, first] {
                                   board->End(first, false);
                                   const int second = board->Begin(Call(2), 1, 0, false);
                                   board->SetBegin(second, 2);
                                   is_over = true;
                                 },
                                 [] {
                                   while (!is_over) {
                                     weak::Yield();
                                   }
                                   CheckView();
                                 }};
      },
      {{"CallBoard::SetBegin", Without(Order::kRelease, record.begin_ns)}});
}

}  // namespace
}  // namespace ferry::shm

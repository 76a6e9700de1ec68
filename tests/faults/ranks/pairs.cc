// Pairs of ranks, each for itself: an even rank sends to the odd one after it until it gets
// SIGUSR1, then both say "all right". Every message is checked.
//
//   pairs [BYTES]    of each message; else of all sizes in turn
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

using ferry::ranks::Say;
using ferry::ranks::StopOnError;

constexpr size_t kSizes[] = {1 << 20, 8, 4096, 300'000, 32, 8192, 1 << 20};
constexpr size_t kLargest = 1 << 20;
constexpr int kMore = 1;
constexpr int kLast = 2;
constexpr long kUnderWay = 10;
constexpr long kReportEvery = 50;

std::atomic<int> enough{0};  // set by a signal
size_t one_size = 0;

size_t SizeOf(long message) {
  return one_size != 0 ? one_size : kSizes[static_cast<size_t>(message) % std::size(kSizes)];
}

void Report(long message) {
  if (message == kUnderWay) {
    Say("under way");
  }
  if (message % kReportEvery == 0) {
    Say("message", message);
  }
}

void SendUntilEnough(char* buffer) {
  int tag = kMore;
  for (long message = 0; tag != kLast; ++message) {
    tag = enough == 0 ? kMore : kLast;
    ferry::ranks::Fill(buffer, SizeOf(message), static_cast<uint64_t>(message));
    StopOnError(ferry_send(buffer, SizeOf(message), ferry_rank() + 1, tag));
    Report(message);
  }
}

void ReceiveAll(char* buffer) {
  ferry_status status{};
  for (long message = 0; status.tag != kLast; ++message) {
    StopOnError(ferry_recv(buffer, kLargest, ferry_rank() - 1, FERRY_ANY_TAG, &status));
    CHECK_EQ(status.size_bytes, SizeOf(message));
    CHECK_BYTES(buffer, status.size_bytes, static_cast<uint64_t>(message));
    Report(message);
  }
}

}  // namespace

int main(int argc, char** argv) {
  one_size = argc > 1 ? static_cast<size_t>(std::atol(argv[1])) : 0;
  std::signal(SIGUSR1, [](int) { enough = 1; });
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  std::vector<char> buffer(kLargest);
  if (ferry_rank() % 2 == 0) {
    SendUntilEnough(buffer.data());
  } else {
    ReceiveAll(buffer.data());
  }
  Say("all right");
  StopOnError(ferry_finalize());
}

// Pairs of ranks, each for itself: an even rank sends to the odd one after it until it gets
// SIGUSR1, then both say "all right". Every message is checked.
//
//   pairs [BYTES [across]]    of each message; else of all sizes in turn. Across: a rank of the
//   first
//                             half sends to the one as far behind the middle
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
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
bool sends = false;
int partner = 0;

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
    StopOnError(ferry_send(buffer, SizeOf(message), partner, tag));
    Report(message);
  }
}

void ReceiveAll(char* buffer) {
  ferry_status status{};
  for (long message = 0; status.tag != kLast; ++message) {
    StopOnError(ferry_recv(buffer, kLargest, partner, FERRY_ANY_TAG, &status));
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
  const bool across = argc > 2 && std::strcmp(argv[2], "across") == 0;
  const int distance = across ? ferry_size() / 2 : 1;
  sends = ferry_rank() / distance % 2 == 0;
  partner = ferry_rank() + (sends ? distance : -distance);
  if (sends) {
    SendUntilEnough(buffer.data());
  } else {
    ReceiveAll(buffer.data());
  }
  Say("all right");
  StopOnError(ferry_finalize());
}

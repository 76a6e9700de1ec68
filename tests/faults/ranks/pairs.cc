// Each pair of ranks for itself: an even rank sends to the odd one after it until it gets SIGUSR1,
// then both say "all right". Every message is checked.
//
//   pairs [BYTES [across] [device]]    of each message; else of all sizes in turn. Across: a rank
//   of
//                                      the first half sends to the one as far behind the middle.
//                                      Device: from and to device memory, else private
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/buffer.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

using ferry::ranks::Buffer;
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
bool on_device = false;
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

// Private memory is not copied through the library: the copy would fail when the rank is to see an
// error of a message.
void Fill(Buffer& buffer, size_t size, uint64_t message) {
  if (on_device) {
    buffer.Fill(0, size, message);
  } else {
    ferry::ranks::Fill(buffer.at(0), size, message);
  }
}

void Check(Buffer& buffer, size_t size, uint64_t message) {
  if (on_device) {
    buffer.Check(0, size, message);
  } else {
    CHECK_BYTES(buffer.at(0), size, message);
  }
}

void SendUntilEnough(Buffer& buffer) {
  int tag = kMore;
  for (long message = 0; tag != kLast; ++message) {
    tag = enough == 0 ? kMore : kLast;
    Fill(buffer, SizeOf(message), static_cast<uint64_t>(message));
    StopOnError(ferry_send(buffer.at(0), SizeOf(message), partner, tag));
    Report(message);
  }
}

void ReceiveAll(Buffer& buffer) {
  ferry_status status{};
  for (long message = 0; status.tag != kLast; ++message) {
    StopOnError(ferry_recv(buffer.at(0), buffer.size(), partner, FERRY_ANY_TAG, &status));
    CHECK_EQ(status.size_bytes, SizeOf(message));
    Check(buffer, status.size_bytes, static_cast<uint64_t>(message));
    Report(message);
  }
}

}  // namespace

int main(int argc, char** argv) {
  one_size = argc > 1 ? static_cast<size_t>(std::atol(argv[1])) : 0;
  std::signal(SIGUSR1, [](int) { enough = 1; });
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  const auto asked = [&](const char* word) {
    return std::any_of(argv + std::min(argc, 2), argv + argc,
                       [&](const char* given) { return std::strcmp(given, word) == 0; });
  };
  const bool across = asked("across");
  on_device = asked("device");
  const int distance = across ? ferry_size() / 2 : 1;
  sends = ferry_rank() / distance % 2 == 0;
  partner = ferry_rank() + (sends ? distance : -distance);
  {
    Buffer buffer(on_device ? ferry::ranks::kDevice : ferry::ranks::kPrivate,
                  std::max(kLargest, one_size));
    if (sends) {
      SendUntilEnough(buffer);
    } else {
      ReceiveAll(buffer);
    }
  }
  Say("all right");
  StopOnError(ferry_finalize());
}

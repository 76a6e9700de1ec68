// Receivers that do not receive, and the messages that they must still get in the end.
//
//   flood never-posts MESSAGES   rank 1 floods rank 0, which waits for a word of rank 3; ranks 2
//                                and 3 exchange messages meanwhile; then rank 0 receives all
//   flood one-tag MESSAGES       rank 1 sends that many of one tag, then one of another, which rank
//                                0 receives first
//
// Rank 0 prints "rank 0: grew by N" (KiB of resident memory while flooded) and "rank 0: all right".
#include <sys/resource.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

using ferry::ranks::Say;
using ferry::ranks::StopOnError;

constexpr size_t kSizes[] = {8, 4096, 100'000, 33, 8192, 20'000};
constexpr size_t kLargest = 100'000;
constexpr int kFlood = 1;
constexpr int kAwaited = 2;
constexpr int kExchanges = 2000;

long ResidentKib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

size_t SizeOf(long message) { return kSizes[static_cast<size_t>(message) % std::size(kSizes)]; }

void SendFlood(long messages) {
  std::vector<char> out(kLargest * static_cast<size_t>(std::size(kSizes)));
  // The contents depend on the size class, so that a buffer may serve many pending sends.
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    ferry::ranks::Fill(&out[i * kLargest], kSizes[i], i);
  }
  std::vector<ferry_request> requests(static_cast<size_t>(messages));
  for (long message = 0; message < messages; ++message) {
    const size_t slot = static_cast<size_t>(message) % std::size(kSizes);
    StopOnError(ferry_isend(&out[slot * kLargest], SizeOf(message), 0, kFlood,
                            &requests[static_cast<size_t>(message)]));
  }
  Say("flooded");
  StopOnError(ferry_waitall(requests.size(), requests.data(), nullptr));
}

void ReceiveFlood(long messages) {
  std::vector<char> in(kLargest);
  ferry_status status{};
  for (long message = 0; message < messages; ++message) {
    StopOnError(ferry_recv(in.data(), kLargest, 1, kFlood, &status));
    CHECK_EQ(status.size_bytes, SizeOf(message));
    CHECK_BYTES(in.data(), status.size_bytes, static_cast<uint64_t>(message) % std::size(kSizes));
  }
}

void Exchange(int with) {
  int out = 0;
  int in = 0;
  for (int i = 0; i < kExchanges; ++i) {
    ferry_request request = FERRY_REQUEST_NULL;
    out = i;
    StopOnError(ferry_irecv(&in, sizeof(in), with, 0, &request));
    StopOnError(ferry_send(&out, sizeof(out), with, 0));
    StopOnError(ferry_wait(&request, nullptr));
    CHECK_EQ(in, i);
  }
}

void NeverPosts(long messages) {
  char word = 0;
  const long before_kib = ResidentKib();
  switch (ferry_rank()) {
    case 0:
      StopOnError(ferry_recv(&word, 1, 3, kAwaited, nullptr));
      Say("grew by", ResidentKib() - before_kib);
      ReceiveFlood(messages);
      break;
    case 1:
      SendFlood(messages);
      break;
    default:
      Exchange(5 - ferry_rank());
      if (ferry_rank() == 3) {
        StopOnError(ferry_send(&word, 1, 0, kAwaited));
      }
  }
}

void OneTag(long messages) {
  long value = 0;
  if (ferry_rank() == 1) {
    for (value = 0; value < messages; ++value) {
      StopOnError(ferry_send(&value, sizeof(value), 0, kFlood));
    }
    StopOnError(ferry_send(&value, sizeof(value), 0, kAwaited));
  } else if (ferry_rank() == 0) {
    const long before_kib = ResidentKib();
    StopOnError(ferry_recv(&value, sizeof(value), 1, kAwaited, nullptr));
    CHECK_EQ(value, messages);
    Say("grew by", ResidentKib() - before_kib);
    for (long i = 0; i < messages; ++i) {
      StopOnError(ferry_recv(&value, sizeof(value), 1, kFlood, nullptr));
      CHECK_EQ(value, i);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc, 3);
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  if (argv[1] == std::string_view("never-posts")) {
    NeverPosts(std::atol(argv[2]));
  } else {
    OneTag(std::atol(argv[2]));
  }
  Say("all right");
  StopOnError(ferry_finalize());
}

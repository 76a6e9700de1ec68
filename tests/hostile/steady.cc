// The ranks of a user who wants to be left alone: rank 0 exchanges short messages with rank 2, and
// rank 1 long ones with rank 3, one every so often, and each is checked. One that takes longer than
// that time counts for those, too, that were due meanwhile, as they would have waited ("coordinated
// omission", as Gil Tene calls it, would hide them).
//
//   steady
//
// Ranks 0 and 1 print "sample DUE_NS TOOK_US" for each exchange, the former of the monotonic clock,
// until SIGTERM comes; then all end, and print "rank R: all right, N exchanges". The first error
// ends it with status 3, a wrong byte with status 1.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

constexpr size_t kShortBytes = 64;
constexpr size_t kLongBytes = 1280 << 10;  // more than is sent before the peer has asked for it
constexpr int kTag = 1;
constexpr int kLastTag = 2;  // no more follow
constexpr uint64_t kShortPeriodNs = 25'000'000;
constexpr uint64_t kLongPeriodNs = 150'000'000;

using ferry::ranks::NowNs;
using ferry::ranks::StopOnError;

volatile std::sig_atomic_t g_is_over = 0;

void SleepUntil(uint64_t ns) {
  timespec time{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

uint64_t NameOf(int sender, uint64_t exchange) {
  return exchange * 16 + static_cast<uint64_t>(sender);
}

struct Buffers {
  explicit Buffers(size_t size_bytes) : out(size_bytes), in(size_bytes) {}
  std::vector<char> out;
  std::vector<char> in;
};

// Of an exchange that was due then, and of those that it kept waiting.
void PrintSamples(uint64_t due_ns, uint64_t end_ns, uint64_t period_ns) {
  for (; due_ns < end_ns; due_ns += period_ns) {
    std::printf("sample %llu %llu\n", static_cast<unsigned long long>(due_ns),
                static_cast<unsigned long long>((end_ns - due_ns) / 1000));
  }
}

uint64_t Lead(int peer, size_t size_bytes, uint64_t period_ns) {
  Buffers buffers(size_bytes);
  uint64_t exchange = 0;
  for (bool is_last = false; !is_last; ++exchange) {
    ferry::ranks::Fill(buffers.out.data(), size_bytes, NameOf(ferry_rank(), exchange));
    SleepUntil(NowNs() + period_ns);
    is_last = g_is_over != 0;
    const uint64_t begin_ns = NowNs();
    const int tag = is_last ? kLastTag : kTag;
    ferry_status status;
    if (exchange % 2 == 0) {  // the peer may write where the receive is
      ferry_request requests[2];
      ferry_status statuses[2];
      StopOnError(ferry_irecv(buffers.in.data(), size_bytes, peer, kTag, &requests[0]));
      StopOnError(ferry_isend(buffers.out.data(), size_bytes, peer, tag, &requests[1]));
      StopOnError(ferry_waitall(2, requests, statuses));
      status = statuses[0];
    } else {  // it does not know that place: a long message is read from the peer
      StopOnError(ferry_send(buffers.out.data(), size_bytes, peer, tag));
      StopOnError(
          ferry_recv(buffers.in.data(), size_bytes, FERRY_ANY_SOURCE, FERRY_ANY_TAG, &status));
    }
    PrintSamples(begin_ns, NowNs(), period_ns);
    if (exchange == 0) {
      std::fflush(stdout);  // the test waits for the first one
    }
    CHECK_EQ(status.size_bytes, size_bytes);
    CHECK_BYTES(buffers.in.data(), size_bytes, NameOf(peer, exchange));
  }
  return exchange;
}

uint64_t Follow(int peer, size_t size_bytes) {
  Buffers buffers(size_bytes);
  uint64_t exchange = 0;
  for (bool is_last = false; !is_last; ++exchange) {
    ferry::ranks::Fill(buffers.out.data(), size_bytes, NameOf(ferry_rank(), exchange));
    ferry_status status;
    StopOnError(ferry_recv(buffers.in.data(), size_bytes, peer, FERRY_ANY_TAG, &status));
    is_last = status.tag == kLastTag;
    StopOnError(ferry_send(buffers.out.data(), size_bytes, peer, kTag));
    CHECK_EQ(status.size_bytes, size_bytes);
    CHECK_BYTES(buffers.in.data(), size_bytes, NameOf(peer, exchange));
  }
  return exchange;
}

}  // namespace

int main() {
  std::signal(SIGTERM, [](int) { g_is_over = 1; });
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_EQ(ferry_size(), 4);
  const int rank = ferry_rank();
  const size_t size_bytes = rank % 2 == 0 ? kShortBytes : kLongBytes;
  const uint64_t exchanges =
      rank < 2 ? Lead(rank + 2, size_bytes, rank == 0 ? kShortPeriodNs : kLongPeriodNs)
               : Follow(rank - 2, size_bytes);
  std::printf("rank %d: all right, %llu exchanges\n", rank,
              static_cast<unsigned long long>(exchanges));
  std::fflush(stdout);
  StopOnError(ferry_finalize());
}

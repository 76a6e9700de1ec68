// Ranks that get stuck in a known way, for `ferryctl why`. Each prints "rank R: under way" first
// and is ended from outside. A rank that has nothing to do sleeps outside Ferry.
//
//   waits unmatched    rank 1 receives a message that no rank sends
//   waits wrong_tag    rank 0 sends tag 5 three times; rank 1 receives tag 7
//   waits any          rank 1 receives from any source
//   waits send         rank 0 sends 1 MiB; rank 1 never receives
//   waits crossed      rank 0 sends 1 MiB with tag 3; rank 1 receives tag 4 from it
//   waits circle       each receives from the next
//   waits chain        each receives from the next, but the last
//   waits flood        rank 0 sends 1000 messages of 8000 bytes after SIGUSR1; rank 1 takes none
//   waits circles      ranks 0 and 1 receive from each other; 2 and 3 do after SIGUSR1; the others
//                      do as with halo, among themselves
//   waits halo         none is stuck: each sends 8 B to 1 MiB to both neighbours, and receives
//                      them, again and again
//   waits fetch        rank 0 sends 1 MiB; rank 1 receives it after SIGUSR1
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string_view>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr size_t kLarge = 1 << 20;

[[noreturn]] void Sleep() {
  while (true) {
    pause();
  }
}

void Receive(int source, int tag, size_t size_bytes = 8) {
  std::vector<char> in(size_bytes);
  CHECK_OK(ferry_recv(in.data(), in.size(), source, tag, nullptr));
}

void SendLarge(int tag) {
  const std::vector<char> out(kLarge, 'x');
  CHECK_OK(ferry_send(out.data(), out.size(), 1, tag));
}

void WaitForSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  int number = 0;
  sigwait(&signals, &number);
}

void Flood() {
  WaitForSignal();
  std::vector<ferry_request> requests(1000);
  const std::vector<char> message(8000);
  for (ferry_request& request : requests) {
    CHECK_OK(ferry_isend(message.data(), message.size(), 1, 0, &request));
  }
  CHECK_OK(ferry_waitall(requests.size(), requests.data(), nullptr));
}

// A stencil's traffic, of the ranks from `first` on: the step takes as long as the slowest
// neighbour, and one of them computes for a while now and then.
[[noreturn]] void ExchangeHalos(int first) {
  constexpr size_t kSizes[] = {8, 4096, 64 << 10, kLarge};
  const int ranks = ferry_size() - first;
  const int me = ferry_rank() - first;
  const int neighbours[] = {first + (me + 1) % ranks, first + (me + ranks - 1) % ranks};
  const std::vector<char> out(kLarge);
  std::array<std::vector<char>, 2> in = {std::vector<char>(kLarge), std::vector<char>(kLarge)};
  for (int step = 0;; ++step) {
    if (step % 7 == me) {
      usleep(2000);
    }
    const size_t size = kSizes[step / 8 % 4];
    ferry_request requests[4];
    for (size_t side = 0; side < 2; ++side) {
      CHECK_OK(ferry_irecv(in[side].data(), size, neighbours[side], static_cast<int>(side),
                           &requests[side]));
      CHECK_OK(ferry_isend(out.data(), size, neighbours[side], static_cast<int>(1 - side),
                           &requests[2 + side]));
    }
    CHECK_OK(ferry_waitall(4, requests, nullptr));
  }
}

void Circles() {
  if (ferry_rank() >= 4) {
    ExchangeHalos(4);
  }
  if (ferry_rank() >= 2) {
    WaitForSignal();
  }
  Receive(ferry_rank() ^ 1, 0);
}

void RankZero(std::string_view what) {
  if (what == "wrong_tag") {
    for (int i = 0; i < 3; ++i) {
      CHECK_OK(ferry_send("message", 8, 1, 5));
    }
  } else if (what == "send" || what == "crossed" || what == "fetch") {
    SendLarge(3);
  } else if (what == "flood") {
    Flood();
  }
}

void RankOne(std::string_view what) {
  if (what == "unmatched" || what == "wrong_tag") {
    Receive(0, 7);
  } else if (what == "any") {
    Receive(FERRY_ANY_SOURCE, FERRY_ANY_TAG);
  } else if (what == "crossed") {
    Receive(0, 4);
  } else if (what == "fetch") {
    WaitForSignal();
    Receive(0, 3, kLarge);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigprocmask(SIG_BLOCK, &signals, nullptr);  // before Ferry's threads are made
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  std::printf("rank %d: under way\n", ferry_rank());
  std::fflush(stdout);
  const int next = (ferry_rank() + 1) % ferry_size();
  if (what == "halo") {
    ExchangeHalos(0);
  } else if (what == "circles") {
    Circles();
  } else if (what == "circle" || (what == "chain" && next != 0)) {
    Receive(next, 0);
  } else if (ferry_rank() == 0) {
    RankZero(what);
  } else if (ferry_rank() == 1) {
    RankOne(what);
  }
  Sleep();
}

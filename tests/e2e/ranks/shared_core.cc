// Two ranks that begin on one core, though they may run on two: they exchange small messages, and
// must soon be on different cores, with the masks that they had.
//
//   shared_core          with receives that wait for messages
//   shared_core quiet    the ranks keep their affinity of one CPU, and must not leave it
#include <sched.h>

#include <cstdio>
#include <cstring>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr int kTag = 1;
constexpr int kMostRounds = 20'000;  // a rank moves after some ten, or a few hundred

cpu_set_t Mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CHECK_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  return mask;
}

// One round trip. Where the other rank ran when it sent.
int Exchange(int own) {
  int other = -1;
  const auto send = [&] { CHECK_OK(ferry_send(&own, sizeof(own), 1 - ferry_rank(), kTag)); };
  if (ferry_rank() == 0) {
    send();
  }
  CHECK_OK(ferry_recv(&other, sizeof(other), 1 - ferry_rank(), kTag, nullptr));
  if (ferry_rank() == 1) {
    send();
  }
  return other;
}

// After how many rounds the ranks were on different cores, as rank 0 sees it.
int RoundsUntilApart() {
  int done = 0;
  for (int round = 1; done == 0; ++round) {
    const int own = sched_getcpu();
    const int other = Exchange(own);
    done = own != other || round == kMostRounds ? round : 0;
    int told = ferry_rank() == 0 ? done : 0;  // rank 1 does as rank 0
    told = Exchange(told);
    done = ferry_rank() == 0 ? done : told;
  }
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  const cpu_set_t both = Mask();
  CHECK_EQ(CPU_COUNT(&both) >= 2, true);
  int first = 0;
  while (!CPU_ISSET(first, &both)) {
    ++first;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  CHECK_OK(ferry_barrier());
  if (argc == 2 && std::strcmp(argv[1], "quiet") == 0) {
    CHECK_EQ(RoundsUntilApart(), kMostRounds);
    const cpu_set_t now = Mask();
    CHECK_EQ(CPU_EQUAL(&now, &one) != 0, true);
  } else {
    CHECK_EQ(sched_setaffinity(0, sizeof(both), &both), 0);  // the kernel leaves it where it is
    const int rounds = RoundsUntilApart();
    CHECK_EQ(rounds < kMostRounds, true);
    const cpu_set_t now = Mask();
    CHECK_EQ(CPU_EQUAL(&now, &both) != 0, true);
    if (ferry_rank() == 0) {
      std::printf("apart after %d rounds\n", rounds);
    }
  }
  CHECK_OK(ferry_finalize());
  return 0;
}

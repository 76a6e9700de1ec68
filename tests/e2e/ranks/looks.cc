// Two ranks that share one core wait for each other in loops of ferry_test and ferry_iprobe. Such a
// loop must now and then leave the core to the other rank: else it looks until its time slice is
// over, some tens of thousands of times, for each message.
#include <cstdio>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/support/first_core.h"

namespace {

constexpr int kTag = 1;
constexpr int kRounds = 40;
constexpr long kMostLooks = 1200;  // for each message

// Each returns how often it looked.
long AwaitByTest() {
  int data = -1;
  ferry_request request;
  CHECK_OK(ferry_irecv(&data, sizeof(data), 1 - ferry_rank(), kTag, &request));
  long looks = 0;
  for (int done = 0; done == 0; ++looks) {
    CHECK_OK(ferry_test(&request, &done, nullptr));
  }
  return looks;
}

long AwaitByIprobe() {
  long looks = 0;
  for (int found = 0; found == 0; ++looks) {
    CHECK_OK(ferry_iprobe(1 - ferry_rank(), kTag, &found, nullptr));
  }
  int data = -1;
  CHECK_OK(ferry_recv(&data, sizeof(data), 1 - ferry_rank(), kTag, nullptr));
  return looks;
}

void LooksAreFew(const char* call, long (*await)()) {
  long looks = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (ferry_rank() == 1) {
      looks += await();
    }
    CHECK_OK(ferry_send(&round, sizeof(round), 1 - ferry_rank(), kTag));
    if (ferry_rank() == 0) {
      looks += await();
    }
  }
  std::printf("%s: %ld looks for each message\n", call, looks / kRounds);
  CHECK_EQ(looks <= kRounds * kMostLooks, true);
}

}  // namespace

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_EQ(ferry_size(), 2);
  CHECK_EQ(keep_to_first_core(), 0);
  LooksAreFew("ferry_test", AwaitByTest);
  LooksAreFew("ferry_iprobe", AwaitByIprobe);
  CHECK_OK(ferry_finalize());
  return 0;
}

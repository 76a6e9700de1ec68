// Rank 0 kills itself; each of the others first hears of that from a receive, and then meets the
// rest in ferry_barrier. None ends before all have come back from there. Each prints the barrier's
// result as "rank R: error CODE at NS: text".
#include <signal.h>

#include <cstdio>
#include <string>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_OK(ferry_barrier());
  ferry::ranks::Say("under way");
  if (ferry_rank() == 0) {
    (void)raise(SIGKILL);
  }
  int message = 0;
  CHECK_EQ(ferry_recv(&message, sizeof(message), 0, 7, nullptr), FERRY_ERR_PEER_DIED);
  const int code = ferry_barrier();
  const std::string text = ferry_last_error();
  for (int other = 1; other < ferry_size(); ++other) {
    CHECK_OK(ferry_send(&message, sizeof(message), other, 8));
  }
  for (int other = 1; other < ferry_size(); ++other) {
    CHECK_OK(ferry_recv(&message, sizeof(message), other, 8, nullptr));
  }
  std::printf("rank %d: error %d at %llu: %s\n", ferry_rank(), code,
              static_cast<unsigned long long>(ferry::ranks::NowNs()), text.c_str());
  return 0;
}

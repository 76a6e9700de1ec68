// Two ranks on two nodes whose link is cut in the middle of a long message. Rank 0 and the first
// rank of the second half send one between private memory, at the start and at each SIGUSR2 of rank
// 0, whatever errors they get, until rank 0 gets SIGUSR1. The other ranks, in pairs, exchange small
// messages inside their node until they get SIGUSR1, and report at SIGUSR2.
//
//   long_message BYTES
//
// reunion.h handles errors of the long message; every error inside a node ends a rank. Data over a
// link that has just come back may wait for TCP to try again, past the daemon's time-out: until the
// first exchange, FERRY_ERR_TIMEOUT only means another try.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/reunion.h"
#include "tests/faults/ranks/say.h"

namespace {

using ferry::ranks::Reunion;
using ferry::ranks::Say;
using ferry::ranks::StopOnError;
using ferry::ranks::Timeouts;

constexpr int kTag = 1;
constexpr int kUnderWay = 20;  // rounds
constexpr unsigned kPaceUs =
    1'000;  // between exchanges that must not keep others from the processors

std::atomic<int> enough{0};  // set by a signal
std::atomic<int> asked{0};   // the same
int partner = 0;

void Endure(Reunion reunion) {
  const bool leads = ferry_rank() == 0;
  bool last = false;
  int passed = 0;
  for (long round = 0; !last; ++round) {
    while (passed > 0 && !reunion.cut() && leads && enough == 0 && asked.exchange(0) == 0) {
      usleep(kPaceUs);
    }
    last = leads && enough != 0;
    if (!(leads ? reunion.Lead(round, last) : reunion.Follow(&round, &last))) {
      last = false;
      continue;
    }
    Say("passed", ++passed);
  }
}

struct Small {
  long round;
  long last;  // not 0: the last round
};

// Sends small messages back and forth between two ranks of a node.
void Exchange(bool leads) {
  Small word{};
  for (long round = 0; word.last == 0; ++round) {
    if (leads) {
      const Small out{round, enough.load()};
      StopOnError(ferry_send(&out, sizeof(out), partner, kTag));
      StopOnError(ferry_recv(&word, sizeof(word), partner, kTag, nullptr));
    } else {
      StopOnError(ferry_recv(&word, sizeof(word), partner, kTag, nullptr));
      StopOnError(ferry_send(&word, sizeof(word), partner, kTag));
    }
    CHECK_EQ(word.round, round);
    if (round == kUnderWay) {
      Say("under way");
    }
    if (asked.exchange(0) != 0) {
      Say("exchanged", round);
    }
    usleep(kPaceUs);
  }
}

void RunLong(size_t size_bytes) {
  const int half = ferry_size() / 2;
  CHECK_EQ(half % 2, 1);  // one rank of each half endures, the others are pairs
  const int place = ferry_rank() % half;
  if (place == 0) {
    partner = ferry_rank() == 0 ? half : 0;
    std::vector<long> words(size_bytes / sizeof(long));
    Endure({partner, words.data(), words.size(), Timeouts::kEndureAfterCut});
  } else {
    const bool leads = place % 2 == 1;
    partner = ferry_rank() + (leads ? 1 : -1);
    Exchange(leads);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  std::signal(SIGUSR1, [](int) { enough = 1; });
  std::signal(SIGUSR2, [](int) { asked = 1; });
  CHECK_EQ(argc, 2);
  RunLong(static_cast<size_t>(std::atoll(argv[1])));
  Say("all right");
  StopOnError(ferry_finalize());
}

// Two ranks on two nodes whose link is cut for a while: they go on exchanging messages whatever
// errors they get, until rank 0 gets SIGUSR1.
//
// Each message carries its number. A rank that is told of a cut (FERRY_ERR_LINK_DOWN) prints
// "rank R: cut at NS"; the first exchange after that "rank R: back at NS"; any other error ends it.
// Both meet anew after a cut: rank 0 sends what round it is in, rank 1 follows. With the argument
// "timeouts", FERRY_ERR_TIMEOUT is a cut too.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

using ferry::ranks::NowNs;
using ferry::ranks::Say;
using ferry::ranks::StopOnError;

constexpr int kTag = 1;
constexpr int kUnderWay = 20;      // rounds
constexpr size_t kWords = 40'000;  // a large message, in the heap

std::atomic<int> enough{0};  // set by a signal
bool cut = false;
bool endures_timeouts = false;

struct Small {
  long round;
  long last;  // 1: the sender stops after this round
};

// False: the link is down, for the first time or still.
bool Passed(int code) {
  if (code == FERRY_SUCCESS) {
    return true;
  }
  if (code != FERRY_ERR_LINK_DOWN && !(endures_timeouts && code == FERRY_ERR_TIMEOUT)) {
    StopOnError(code);
  }
  if (!cut) {
    cut = true;
    Say("cut at", static_cast<long>(NowNs()));
  }
  return false;
}

// Rank 0 leads: it sends the round and a large message of it, and gets the round back.
bool Lead(long round, bool last, long* words) {
  Small out{round, last ? 1 : 0};
  Small in{};
  for (size_t i = 0; i < kWords; ++i) {
    words[i] = round;
  }
  if (!Passed(ferry_send(&out, sizeof(out), 1, kTag)) ||
      !Passed(ferry_send(words, kWords * sizeof(long), 1, kTag))) {
    return false;
  }
  do {  // an answer of before the cut may still come
    if (!Passed(ferry_recv(&in, sizeof(in), 1, kTag, nullptr))) {
      return false;
    }
  } while (in.round < round);
  CHECK_EQ(in.round, round);
  return true;
}

// Rank 1 follows. A message of the other size means that one was lost: it waits for the next round.
bool Follow(long* round, bool* last, long* words) {
  ferry_status status{};
  Small in{};
  do {
    if (!Passed(ferry_recv(words, kWords * sizeof(long), 0, kTag, &status))) {
      return false;
    }
  } while (status.size_bytes != sizeof(in));
  in = *reinterpret_cast<Small*>(words);
  if (!Passed(ferry_recv(words, kWords * sizeof(long), 0, kTag, &status))) {
    return false;
  }
  CHECK_EQ(status.size_bytes, kWords * sizeof(long));
  for (size_t i = 0; i < kWords; ++i) {
    CHECK_EQ(words[i], in.round);
  }
  if (!Passed(ferry_send(&in, sizeof(in), 0, kTag))) {
    return false;
  }
  *round = in.round;
  *last = in.last != 0;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  endures_timeouts = argc > 1 && argv[1] == std::string("timeouts");
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_EQ(ferry_size(), 2);
  std::signal(SIGUSR1, [](int) { enough = 1; });
  void* words = nullptr;
  CHECK_OK(ferry_alloc(kWords * sizeof(long), FERRY_MEMORY_HOST, 0, &words));
  bool last = false;
  int passed = 0;
  for (long round = 0; !last; ++round) {
    last = ferry_rank() == 0 && enough != 0;
    const bool done = ferry_rank() == 0 ? Lead(round, last, static_cast<long*>(words))
                                        : Follow(&round, &last, static_cast<long*>(words));
    if (!done) {
      last = false;
      continue;
    }
    if (cut) {
      cut = false;
      Say("back at", static_cast<long>(NowNs()));
    }
    if (++passed == kUnderWay) {
      Say("under way");
    }
  }
  Say("all right");
  StopOnError(ferry_finalize());
}

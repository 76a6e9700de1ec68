// Two ranks on two nodes whose link is cut in the middle of a long message: rank 0 and the first of
// the second half send one there, from and to private memory, at the start and at each SIGUSR2 of
// rank 0, whatever errors they get, until that gets SIGUSR1. The other ranks, in pairs, exchange
// small ones inside their node until they get SIGUSR1, and say so at SIGUSR2.
//
//   long_message BYTES
//
// Each message carries its number. A rank that is told of a cut (FERRY_ERR_LINK_DOWN) prints
// "rank R: cut at NS"; the first exchange after that "rank R: back at NS"; any other error ends it,
// and so does every error inside a node. Both meet anew after a cut: rank 0 sends what round it is
// in, the other one follows. What is sent over a link that has just come back may wait for TCP to
// try again, past the daemon's time-out: until the first exchange FERRY_ERR_TIMEOUT is no more than
// another try.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

using ferry::ranks::NowNs;
using ferry::ranks::Say;
using ferry::ranks::StopOnError;

constexpr int kTag = 1;
constexpr int kUnderWay = 20;            // rounds
constexpr unsigned kPaceUs = 1'000;      // of what must not keep others from the processors
constexpr long kStride = 1'000'000'007;  // between the words of rounds

std::atomic<int> enough{0};  // set by a signal
std::atomic<int> asked{0};   // the same
bool cut = false;
int partner = 0;
size_t count = 0;  // words of a large message

struct Small {
  long round;
  long last;  // 1: the sender stops after this round
};

// False: the link is down, for the first time or still.
bool Passed(int code) {
  if (code == FERRY_SUCCESS) {
    return true;
  }
  if (code != FERRY_ERR_LINK_DOWN && !(cut && code == FERRY_ERR_TIMEOUT)) {
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
  for (size_t i = 0; i < count; ++i) {
    words[i] = round * kStride + static_cast<long>(i);
  }
  if (!Passed(ferry_send(&out, sizeof(out), partner, kTag)) ||
      !Passed(ferry_send(words, count * sizeof(long), partner, kTag))) {
    return false;
  }
  do {  // an answer of before the cut may still come
    if (!Passed(ferry_recv(&in, sizeof(in), partner, kTag, nullptr))) {
      return false;
    }
  } while (in.round < round);
  CHECK_EQ(in.round, round);
  return true;
}

// The other one follows. A message of the other size means that one was lost: it waits for the next
// round.
bool Follow(long* round, bool* last, long* words) {
  ferry_status status{};
  Small in{};
  do {
    if (!Passed(ferry_recv(words, count * sizeof(long), partner, kTag, &status))) {
      return false;
    }
  } while (status.size_bytes != sizeof(in));
  in = *reinterpret_cast<Small*>(words);
  if (!Passed(ferry_recv(words, count * sizeof(long), partner, kTag, &status))) {
    return false;
  }
  CHECK_EQ(status.size_bytes, count * sizeof(long));
  for (size_t i = 0; i < count; ++i) {
    CHECK_EQ(words[i], in.round * kStride + static_cast<long>(i));
  }
  if (!Passed(ferry_send(&in, sizeof(in), partner, kTag))) {
    return false;
  }
  *round = in.round;
  *last = in.last != 0;
  return true;
}

void Endure(long* words) {
  bool last = false;
  int passed = 0;
  for (long round = 0; !last; ++round) {
    while (passed > 0 && !cut && ferry_rank() == 0 && enough == 0 && asked.exchange(0) == 0) {
      usleep(kPaceUs);
    }
    last = ferry_rank() == 0 && enough != 0;
    const bool done = ferry_rank() == 0 ? Lead(round, last, words) : Follow(&round, &last, words);
    if (!done) {
      last = false;
      continue;
    }
    if (cut) {
      cut = false;
      Say("back at", static_cast<long>(NowNs()));
    }
    Say("passed", ++passed);
  }
}

// Small messages there and back between two ranks of a node.
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
  CHECK_EQ(half % 2, 1);  // one of each half endures, the others are pairs
  const int place = ferry_rank() % half;
  if (place == 0) {
    partner = ferry_rank() == 0 ? half : 0;
    count = size_bytes / sizeof(long);
    std::vector<long> words(count);
    Endure(words.data());
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

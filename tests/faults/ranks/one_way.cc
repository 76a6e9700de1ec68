// Rank 0 works with the first rank of another node, its partner, until the first error; the partner
// only waits for messages of rank 0. Both must hear of a cut in any case, so neither of them ends:
// after its error, "rank R: error CODE at NS: text", each stays until SIGUSR1.
//
//   one_way send BYTES    sends messages of that size, which are checked
//   one_way put           puts, each with its quiet
//   one_way get           long gets
//   one_way fetch         atomic operations that find something out
//   one_way ask           sends a small message at the start and at each SIGUSR2, and waits for its
//                         answer
//
// There are 2 ranks on 2 nodes, or 6 on 3. Of the 6, the others are pairs of the third node and the
// first two. Each pair exchanges small messages, and reports "rank R: exchanged ROUND" at SIGUSR2;
// an error ends its ranks.
//
// All print "rank R: under way" after a few rounds.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "ferry/ferry.h"
#include "ferry/one_sided.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

using ferry::ranks::Say;
using ferry::ranks::StopOnError;

constexpr int kTag = 1;
constexpr long kUnderWay = 20;
constexpr size_t kBytes = 1 << 20;   // of the memory that is put to and got from
constexpr unsigned kPaceUs = 1'000;  // of what must not keep others from the processors

std::atomic<bool> is_enough{false};  // set by a signal
std::atomic<int> asked{0};           // the same

// Says the error, and stays.
void StayOnError(int code) {
  if (code == FERRY_SUCCESS) {
    return;
  }
  std::printf("rank %d: error %d at %llu: %s\n", ferry_rank(), code,
              static_cast<unsigned long long>(ferry::ranks::NowNs()), ferry_last_error());
  std::fflush(stdout);
  while (!is_enough) {
    usleep(kPaceUs);
  }
  std::_Exit(3);
}

void Count(long round) {
  if (round == kUnderWay) {
    Say("under way");
  }
}

// The first and the last word of a message in the heap say which it is.
std::span<long> MessageOf(size_t size_bytes) {
  void* words = nullptr;
  StopOnError(ferry_alloc(size_bytes, FERRY_MEMORY_HOST, 0, &words));
  return {static_cast<long*>(words), size_bytes / sizeof(long)};
}

void SendAll(int partner, size_t size_bytes) {
  const std::span<long> words = MessageOf(size_bytes);
  for (long round = 0;; ++round) {
    words.front() = round;
    words.back() = round;
    StayOnError(ferry_send(words.data(), size_bytes, partner, kTag));
    Count(round);
  }
}

void ReceiveAll(size_t size_bytes) {
  const std::span<long> words = MessageOf(size_bytes);
  for (long round = 0;; ++round) {
    ferry_status status{};
    StayOnError(ferry_recv(words.data(), size_bytes, 0, kTag, &status));
    CHECK_EQ(status.size_bytes, size_bytes);
    CHECK_EQ(words.front(), round);
    CHECK_EQ(words.back(), round);
    Count(round);
  }
}

void Ask(int partner) {
  for (long round = 0;; ++round) {
    while (round != 0 && asked.exchange(0) == 0) {
      usleep(kPaceUs);
    }
    long answer = 0;
    StayOnError(ferry_send(&round, sizeof(round), partner, kTag));
    StayOnError(ferry_recv(&answer, sizeof(answer), partner, kTag, nullptr));
    CHECK_EQ(answer, round);
    if (round == 0) {
      Say("under way");
    }
  }
}

void Answer() {
  Say("under way");
  for (long round = 0;; ++round) {
    long question = 0;
    StayOnError(ferry_recv(&question, sizeof(question), 0, kTag, nullptr));
    CHECK_EQ(question, round);
    StayOnError(ferry_send(&question, sizeof(question), 0, kTag));
  }
}

void WorkIn(std::string_view what, int partner) {
  ferry_place place{};
  StopOnError(ferry_recv(&place, sizeof(place), partner, kTag, nullptr));
  std::vector<uint8_t> buffer(kBytes);
  for (long round = 0;; ++round) {
    if (what == "put") {
      StayOnError(ferry_put(0, place, buffer.data(), kBytes));
      StayOnError(ferry_quiet(0));
    } else if (what == "get") {
      StayOnError(ferry_get(0, buffer.data(), place, kBytes));
    } else {
      uint64_t found = 0;
      StayOnError(ferry_atomic_fetch(0, FERRY_ATOMIC_ADD, place, sizeof(found), 1, 0, &found));
      CHECK_EQ(found, static_cast<uint64_t>(round));
    }
    Count(round);
  }
}

// The memory is worked in while its rank waits.
void Lend() {
  void* memory = nullptr;
  StopOnError(ferry_alloc(kBytes, FERRY_MEMORY_HOST, 0, &memory));
  ferry_place place{};
  StopOnError(ferry_locate(memory, kBytes, &place));
  StopOnError(ferry_send(&place, sizeof(place), 0, kTag));
  Say("under way");
  char none = 0;
  StayOnError(ferry_recv(&none, sizeof(none), 0, kTag, nullptr));
}

void Exchange(int partner) {
  const bool leads = ferry_rank() < partner;
  for (long round = 0; !is_enough; ++round) {
    long word = round;
    if (leads) {
      StopOnError(ferry_send(&round, sizeof(round), partner, kTag));
      StopOnError(ferry_recv(&word, sizeof(word), partner, kTag, nullptr));
    } else {
      StopOnError(ferry_recv(&word, sizeof(word), partner, kTag, nullptr));
      StopOnError(ferry_send(&word, sizeof(word), partner, kTag));
    }
    CHECK_EQ(word, round);
    Count(round);
    if (asked.exchange(0) != 0) {
      Say("exchanged", round);
    }
    usleep(kPaceUs);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  std::signal(SIGUSR1, [](int) { is_enough = true; });
  std::signal(SIGUSR2, [](int) { asked = 1; });
  CHECK_EQ(argc >= 2, true);
  const std::string_view what = argv[1];
  const bool sends = what == "send";
  const size_t size_bytes = sends ? static_cast<size_t>(std::atoll(argv[2])) : 0;
  const int rank = ferry_rank();
  const int partner = ferry_size() == 2 ? 1 : 2;
  if (rank == 0) {
    sends ? SendAll(partner, size_bytes) : what == "ask" ? Ask(partner) : WorkIn(what, partner);
  } else if (rank == partner) {
    sends ? ReceiveAll(size_bytes) : what == "ask" ? Answer() : Lend();
  } else {  // 1 and 4, 3 and 5
    constexpr int kPartners[] = {0, 4, 0, 5, 1, 3};
    Exchange(kPartners[rank]);
  }
}

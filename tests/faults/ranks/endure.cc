// Two ranks on two nodes whose link is cut for a while: they go on exchanging messages whatever
// errors they get (reunion.h), until rank 0 gets SIGUSR1. With the argument "timeouts",
// FERRY_ERR_TIMEOUT is a cut too.
#include <atomic>
#include <csignal>
#include <string>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/reunion.h"
#include "tests/faults/ranks/say.h"

namespace {

using ferry::ranks::Reunion;
using ferry::ranks::Say;
using ferry::ranks::StopOnError;
using ferry::ranks::Timeouts;

constexpr int kUnderWay = 20;      // rounds
constexpr size_t kWords = 40'000;  // a large message, in the heap

std::atomic<int> enough{0};  // set by a signal

}  // namespace

int main(int argc, char** argv) {
  const bool endures_timeouts = argc > 1 && argv[1] == std::string("timeouts");
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_EQ(ferry_size(), 2);
  std::signal(SIGUSR1, [](int) { enough = 1; });
  void* words = nullptr;
  CHECK_OK(ferry_alloc(kWords * sizeof(long), FERRY_MEMORY_HOST, 0, &words));
  const bool leads = ferry_rank() == 0;
  Reunion reunion(leads ? 1 : 0, static_cast<long*>(words), kWords,
                  endures_timeouts ? Timeouts::kEndure : Timeouts::kEnd);
  bool last = false;
  int passed = 0;
  for (long round = 0; !last; ++round) {
    last = leads && enough != 0;
    if (!(leads ? reunion.Lead(round, last) : reunion.Follow(&round, &last))) {
      last = false;
      continue;
    }
    if (++passed == kUnderWay) {
      Say("under way");
    }
  }
  Say("all right");
  StopOnError(ferry_finalize());
}

// Ranks that send messages endlessly, until something breaks: each sends to the next one of a ring
// and receives from the previous one. The first error ends it with status 3.
//
//   traffic exchange BYTES    both directions all the time
//   traffic wait              rank 0 stays away, the others sleep in a receive that never matches
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

using ferry::ranks::Say;
using ferry::ranks::StopOnError;

[[noreturn]] void Exchange(size_t size_bytes) {
  const int next = ferry::ranks::Right();
  const int previous = ferry::ranks::Left();
  const std::vector<char> out(size_bytes, 'x');
  std::vector<char> in(size_bytes);
  for (long round = 0;; ++round) {
    ferry_request requests[2];
    StopOnError(ferry_irecv(in.data(), size_bytes, previous, 0, &requests[0]));
    StopOnError(ferry_isend(out.data(), size_bytes, next, 0, &requests[1]));
    StopOnError(ferry_waitall(2, requests, nullptr));
    if (round == 100) {
      Say("under way");
    }
  }
}

[[noreturn]] void Wait() {
  Say("under way");
  char message = 0;
  if (ferry_rank() != 0) {
    StopOnError(ferry_recv(&message, 1, 0, 0, nullptr));
  }
  while (true) {
    pause();
  }
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  if (argc == 3 && argv[1] == std::string_view("exchange")) {
    Exchange(static_cast<size_t>(std::atol(argv[2])));
  }
  Wait();
}

// Ranks exchange messages of all sizes and kinds of memory round a ring, and check each one.
//
//   mixed ROUNDS    0: for ever; -: one for each byte of standard input, each of which is told
//
// Prints "rank R: under way" after a few rounds, "rank R: round N" every now and then, and at the
// end "rank R: all right". The first error ends it with status 3, a wrong byte with status 1.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

constexpr size_t kSizes[] = {8, 0, 4096, 65'536, 33, 8192, 300'001, 8193, 1, 1 << 20, 128'000};
constexpr size_t kLargest = 1 << 20;
constexpr long kUnderWay = 20;
constexpr long kReportEvery = 50;

using ferry::ranks::Say;
using ferry::ranks::StopOnError;

// Private memory and the heap in turn, on either side.
struct Buffers {
  explicit Buffers(size_t size_bytes) : own(size_bytes) {
    StopOnError(ferry_alloc(size_bytes, FERRY_MEMORY_HOST, 0, &heap));
  }
  char* At(bool in_heap) { return in_heap ? static_cast<char*>(heap) : own.data(); }
  std::vector<char> own;
  void* heap = nullptr;
};

uint64_t NameOf(int sender, long round) {
  return static_cast<uint64_t>(round) * 1024 + static_cast<uint64_t>(sender);
}

}  // namespace

int main(int argc, char** argv) {
  const bool on_demand = argc > 1 && std::strcmp(argv[1], "-") == 0;
  const long rounds = argc > 1 && !on_demand ? std::atol(argv[1]) : 0;
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  const int next = ferry::ranks::Right();
  const int previous = ferry::ranks::Left();
  Buffers out(kLargest);
  Buffers in(kLargest);
  for (long round = 0; rounds == 0 || round < rounds; ++round) {
    if (on_demand && std::getchar() == EOF) {
      break;
    }
    const size_t size = kSizes[static_cast<size_t>(round) % std::size(kSizes)];
    char* source = out.At((round & 1) != 0);
    char* target = in.At((round & 2) != 0);
    ferry::ranks::Fill(source, size, NameOf(ferry_rank(), round));
    ferry_request requests[2];
    ferry_status statuses[2];
    StopOnError(ferry_irecv(target, kLargest, previous, 7, &requests[0]));
    StopOnError(ferry_isend(source, size, next, 7, &requests[1]));
    StopOnError(ferry_waitall(2, requests, statuses));
    CHECK_EQ(statuses[0].size_bytes, size);
    CHECK_BYTES(target, size, NameOf(previous, round));
    if (on_demand) {
      Say("round", round);
    } else if (round == kUnderWay) {
      Say("under way");
    } else if (round % kReportEvery == 0) {
      Say("round", round);
    }
  }
  Say("all right");
  StopOnError(ferry_finalize());
}

// bursts FILE ROUNDS: rank 0 sends rank 1, of another node, bursts of short messages and then
// computes, without a call, until all of a burst have come: rank 1 says so in the file. Messages of
// a burst that the library holds back must not wait for rank 0's next call. Rank 0 prints its
// counters of direct links.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "ferry/ferry.h"
#include "shm/atomic.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr int kBurst = 40;
constexpr time_t kLongestS = 20;

// How many messages have come; shared by both ranks.
uint64_t* MapCount(const char* path) {
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  CHECK_EQ(ftruncate(fd, sizeof(uint64_t)), 0);
  void* const count = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK_EQ(count == MAP_FAILED, false);
  close(fd);
  return static_cast<uint64_t*>(count);
}

void ComputeUntil(const uint64_t* count, uint64_t wanted) {
  const time_t end_s = time(nullptr) + kLongestS;
  while (ferry::shm::LoadAcquire(*count) < wanted) {
    if (time(nullptr) > end_s) {
      CHECK_EQ(ferry::shm::LoadAcquire(*count), wanted);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bursts FILE ROUNDS\n");
    return 2;
  }
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  uint64_t* const count = MapCount(argv[1]);
  const auto rounds = static_cast<uint64_t>(std::atoi(argv[2]));
  CHECK_OK(ferry_barrier());
  for (uint64_t round = 0; round < rounds; ++round) {
    for (uint64_t i = round * kBurst; i < (round + 1) * kBurst; ++i) {
      uint64_t message = i;
      if (ferry_rank() == 0) {
        CHECK_OK(ferry_send(&message, sizeof(message), 1, 7));
      } else {
        CHECK_OK(ferry_recv(&message, sizeof(message), 0, 7, nullptr));
        CHECK_EQ(message, i);
        ferry::shm::StoreRelease(*count, i + 1);  // pairs with ComputeUntil
      }
    }
    if (ferry_rank() == 0) {
      ComputeUntil(count, (round + 1) * kBurst);
    }
  }
  if (ferry_rank() == 0) {
    ferry::ranks::PrintLinkCounters();
  }
  CHECK_OK(ferry_finalize());
  return 0;
}

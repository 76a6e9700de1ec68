// windows ROUNDS: each rank sends windows of large messages from its heap to its right neighbour
// while as many come in from its left one, so that ranks and progress worker copy at the same time
// and requests are reused all the time. Every byte of every message is checked.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr int kWindow = 64;
constexpr size_t kBytes = 192 * 1024;  // two chunks, one of them short

uint8_t* Buffers() {
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(kWindow * kBytes, FERRY_MEMORY_HOST, 0, &memory));
  return static_cast<uint8_t*>(memory);
}

void Round(int round, uint8_t* going, uint8_t* coming) {
  const int right = (ferry_rank() + 1) % ferry_size();
  const int left = (ferry_rank() + ferry_size() - 1) % ferry_size();
  std::vector<ferry_request> requests(2 * kWindow);
  for (int i = 0; i < kWindow; ++i) {
    CHECK_OK(ferry_irecv(coming + i * kBytes, kBytes, left, 0, &requests[i]));
  }
  for (int i = 0; i < kWindow; ++i) {
    std::memset(going + i * kBytes, (round + i) & 0xff, kBytes);
    CHECK_OK(ferry_isend(going + i * kBytes, kBytes, right, 0, &requests[kWindow + i]));
  }
  CHECK_OK(ferry_waitall(requests.size(), requests.data(), nullptr));
  for (int i = 0; i < kWindow; ++i) {
    const uint8_t* message = coming + i * kBytes;
    CHECK_EQ(message[0], (round + i) & 0xff);
    CHECK_EQ(std::memcmp(message, message + 1, kBytes - 1), 0);  // all bytes equal the first
  }
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc, 2);
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  uint8_t* going = Buffers();
  uint8_t* coming = Buffers();
  for (int round = 0; round < std::atoi(argv[1]); ++round) {
    Round(round, going, coming);
  }
  CHECK_OK(ferry_finalize());
}

// windows ROUNDS [BYTES]: each rank sends windows of large messages from its heap to its right
// neighbour while as many come in from its left one, so that ranks and progress worker copy at the
// same time and requests are reused all the time. Every byte of every message is checked. With
// BYTES, messages of that size, in ordinary memory.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr int kWindow = 64;
constexpr size_t kHeapBytes = 192 * 1024;  // two chunks, one of them short

uint8_t* HeapBuffers() {
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(kWindow * kHeapBytes, FERRY_MEMORY_HOST, 0, &memory));
  return static_cast<uint8_t*>(memory);
}

void Round(int round, size_t bytes, uint8_t* going, uint8_t* coming) {
  const int right = ferry::ranks::Right();
  const int left = ferry::ranks::Left();
  std::vector<ferry_request> requests(2 * kWindow);
  for (int i = 0; i < kWindow; ++i) {
    CHECK_OK(ferry_irecv(coming + i * bytes, bytes, left, 0, &requests[i]));
  }
  for (int i = 0; i < kWindow; ++i) {
    std::memset(going + i * bytes, (round + i) & 0xff, bytes);
    CHECK_OK(ferry_isend(going + i * bytes, bytes, right, 0, &requests[kWindow + i]));
  }
  CHECK_OK(ferry_waitall(requests.size(), requests.data(), nullptr));
  for (int i = 0; i < kWindow; ++i) {
    const uint8_t* message = coming + i * bytes;
    CHECK_EQ(message[0], (round + i) & 0xff);
    CHECK_EQ(std::memcmp(message, message + 1, bytes - 1), 0);  // all bytes equal the first
  }
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc == 2 || argc == 3, true);
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  const bool in_heap = argc == 2;
  const size_t bytes = in_heap ? kHeapBytes : std::strtoul(argv[2], nullptr, 10);
  std::vector<uint8_t> ordinary(in_heap ? 0 : 2 * kWindow * bytes);
  uint8_t* going = in_heap ? HeapBuffers() : ordinary.data();
  uint8_t* coming = in_heap ? HeapBuffers() : ordinary.data() + kWindow * bytes;
  for (int round = 0; round < std::atoi(argv[1]); ++round) {
    Round(round, bytes, going, coming);
  }
  CHECK_OK(ferry_finalize());
}

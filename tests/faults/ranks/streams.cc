// streams WAITS: two ranks with a matched pair, rank 0 sends to rank 1. Rank WAITS (or with 2 both)
// enqueues its start and its wait, and waits for its queue; the other one waits for a message that
// never comes. Prints the resulting error.
//
// streams exchange: both enqueue a hundred messages from rank 0 to rank 1, one after the other.
//
// streams flood: both send each other long messages without end. Prints the resulting error.
#include <cstdlib>
#include <string>
#include <string_view>

#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

void Exchange(ferry_queue queue, ferry_request request) {
  ferry::ranks::Say("under way");
  for (int round = 0; round < 100; ++round) {
    ferry::ranks::StopOnError(ferry_enqueue_start(queue, request));
    ferry::ranks::StopOnError(ferry_enqueue_wait(queue, request));
    ferry::ranks::StopOnError(ferry_queue_wait(queue));
  }
  ferry::ranks::Say("all right");
}

// Inside a node both streams move each message.
void Flood(int partner) {
  constexpr size_t kLongBytes = 2 << 20;
  constexpr int kRoundsAhead = 16;
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(2 * kLongBytes, FERRY_MEMORY_DEVICE, 0, &memory));
  ferry_request both[2];
  CHECK_OK(ferry_recv_init(memory, kLongBytes, partner, 4, &both[0]));
  CHECK_OK(
      ferry_send_init(static_cast<char*>(memory) + kLongBytes, kLongBytes, partner, 4, &both[1]));
  CHECK_OK(ferry_matchall(2, both));
  ferry_stream stream = nullptr;
  ferry_queue queue = FERRY_QUEUE_NULL;
  CHECK_OK(ferry_stream_create(0, &stream));
  CHECK_OK(ferry_queue_init(FERRY_QUEUE_FERRY, &stream, &queue));
  for (bool is_first = true;; is_first = false) {
    for (int round = 0; round < kRoundsAhead; ++round) {
      ferry::ranks::StopOnError(ferry_enqueue_startall(queue, 2, both));
      CHECK_OK(ferry_enqueue_waitall(queue, 2, both));
    }
    ferry::ranks::StopOnError(ferry_queue_wait(queue));
    if (is_first) {
      ferry::ranks::Say("under way");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool exchanges = argc > 1 && std::string_view(argv[1]) == "exchange";
  const int waits = argc > 1 && !exchanges ? std::atoi(argv[1]) : 2;
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  const int partner = 1 - ferry_rank();
  if (argc > 1 && std::string_view(argv[1]) == "flood") {
    Flood(partner);
  }
  void* memory = nullptr;
  constexpr size_t kBytes = 100'000;  // everywhere, a send of this size waits for its receive
  CHECK_OK(ferry_alloc(kBytes, FERRY_MEMORY_DEVICE, 0, &memory));
  ferry_request requests[2];
  CHECK_OK(ferry_rank() == 0 ? ferry_send_init(memory, kBytes, partner, 1, &requests[0])
                             : ferry_recv_init(memory, kBytes, partner, 1, &requests[0]));
  CHECK_OK(ferry_rank() == 0 ? ferry_recv_init(memory, kBytes, partner, 2, &requests[1])
                             : ferry_send_init(memory, kBytes, partner, 2, &requests[1]));
  CHECK_OK(ferry_matchall(2, requests));
  if (waits != 2 && ferry_rank() != waits) {
    ferry::ranks::Say("under way");
    char byte = 0;
    ferry::ranks::StopOnError(ferry_recv(&byte, 1, partner, 3, nullptr));
  }
  ferry_stream stream = nullptr;
  ferry_queue queue = FERRY_QUEUE_NULL;
  CHECK_OK(ferry_stream_create(0, &stream));
  CHECK_OK(ferry_queue_init(FERRY_QUEUE_FERRY, &stream, &queue));
  if (exchanges) {
    Exchange(queue, requests[0]);
    return 0;
  }
  // If both wait, each waits only for a request that the other has not started.
  const ferry_request request = requests[waits == 2 ? ferry_rank() : 0];
  CHECK_OK(ferry_enqueue_start(queue, request));
  CHECK_OK(ferry_enqueue_wait(queue, request));
  ferry::ranks::Say("under way");
  ferry::ranks::StopOnError(ferry_queue_wait(queue));
  return 0;
}

// Helpers of the rank programs about queues and matched pairs: two ranks, of which the first sends.
#pragma once

#include <atomic>
#include <cstddef>

#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/check.h"

namespace ferry::ranks {

inline int Partner() { return 1 - ferry_rank(); }
inline bool Sends() { return ferry_rank() == 0; }

struct Stream {
  ferry_stream stream = nullptr;
  ferry_queue queue = FERRY_QUEUE_NULL;

  Stream() {
    CHECK_OK(ferry_stream_create(0, &stream));
    CHECK_OK(ferry_queue_init(FERRY_QUEUE_FERRY, &stream, &queue));
  }
  void End() {
    CHECK_OK(ferry_queue_wait(queue));
    CHECK_OK(ferry_queue_free(&queue));
    CHECK_OK(ferry_stream_destroy(&stream));
  }
};

// A send from rank 0 to rank 1, or its receive; matched unless `offered` only.
inline ferry_request Make(void* buffer, size_t size, int tag) {
  ferry_request request = FERRY_REQUEST_NULL;
  CHECK_OK(Sends() ? ferry_send_init(buffer, size, Partner(), tag, &request)
                   : ferry_recv_init(buffer, size, Partner(), tag, &request));
  return request;
}

inline ferry_request MakeMatched(void* buffer, size_t size, int tag) {
  const ferry_request request = Make(buffer, size, tag);
  CHECK_OK(ferry_match(request));
  return request;
}

// A kernel that holds its stream until the gate is opened.
inline std::atomic<int> gate{0};
inline std::atomic<bool> at_gate{false};
inline void AwaitGate(void* /*argument*/) {
  at_gate = true;
  while (gate.load() == 0) {
  }
}

}  // namespace ferry::ranks

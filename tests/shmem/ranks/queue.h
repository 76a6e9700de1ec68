// Helpers for programs with calls on queues.
#pragma once

#include <functional>

#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "tests/shmem/ranks/check.h"

// A stream and a queue on it.
struct Line {
  ferry_stream stream = nullptr;
  ferry_queue queue = FERRY_QUEUE_NULL;

  explicit Line(int device = 0) {
    CHECK(ferry_stream_create(device, &stream) == FERRY_SUCCESS);
    CHECK(ferry_queue_init(FERRY_QUEUE_FERRY, &stream, &queue) == FERRY_SUCCESS);
  }
  // `kernel` outlives its run.
  void Launch(const std::function<void()>* kernel) const {
    CHECK(ferry_stream_launch(
              stream,
              [](void* argument) { (*static_cast<const std::function<void()>*>(argument))(); },
              const_cast<std::function<void()>*>(kernel)) == FERRY_SUCCESS);
  }
  void Wait() const {
    const int error = ferry_queue_wait(queue);
    if (error != FERRY_SUCCESS) {
      fprintf(stderr, "PE %d: %s\n", me, ferry_last_error());
    }
    CHECK(error == FERRY_SUCCESS);
  }
  void End() {
    CHECK(ferry_queue_free(&queue) == FERRY_SUCCESS);
    CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
  }
};

template <typename T>
T* Symmetric(size_t count) {
  return static_cast<T*>(shmem_calloc(count, sizeof(T)));
}

#define ENQUEUE(call) CHECK((call) == 0)

// Checks that the queue's failure is `error`, and that its message contains `sentence`.
inline void CheckFailed(const Line& line, int error, const char* sentence) {
  const int found = ferry_queue_wait(line.queue);
  if (found != error || strstr(ferry_last_error(), sentence) == nullptr) {
    fprintf(stderr, "PE %d: %d, %s\n", me, found, ferry_last_error());
  }
  CHECK(found == error);
  CHECK(strstr(ferry_last_error(), sentence) != nullptr);
  CHECK(ferry_queue_wait(line.queue) == FERRY_SUCCESS);  // it is told once
}

// Two ranks exchange device memory on a Level Zero immediate command list: the half of the example
// that knows nothing of SYCL. The list may be a program's own, or that of a queue of SYCL's
// (main.cc).
#pragma once

#include <ferry/ferry.h>
#include <ferry/stream.h>
#include <level_zero/ze_api.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

inline void Check(const char* call, int error) {
  if (error != FERRY_SUCCESS) {
    std::fprintf(stderr, "%s: %s\n", call, ferry_last_error());
    std::exit(1);
  }
}

class Exchange {
 public:
  // Makes an exchange of `bytes` bytes with one other rank, in memory that lives as long as this.
  // `list` is immediate, and outlives this, too. Blocks until the other rank does the same.
  Exchange(ze_command_list_handle_t list, const void* out, void* in, size_t bytes, int peer)
      : list_(list) {
    constexpr int kTag = 1;
    Check("ferry_queue_init", ferry_queue_init(FERRY_QUEUE_LEVEL_ZERO, &list, &queue_));
    Check("ferry_send_init", ferry_send_init(out, bytes, peer, kTag, &requests_[0]));
    Check("ferry_recv_init", ferry_recv_init(in, bytes, peer, kTag, &requests_[1]));
    Check("ferry_matchall", ferry_matchall(2, requests_));
  }
  ~Exchange() {
    Wait();
    Check("ferry_queue_free", ferry_queue_free(&queue_));
    for (ferry_request& request : requests_) {
      Check("ferry_request_free", ferry_request_free(&request));
    }
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Enqueues one exchange; does not block. The device begins it once all earlier commands of the
  // list are done, and later ones find the other rank's data. The barriers make it so on lists that
  // are not in order by themselves: SYCL orders its own kernels by events.
  void Enqueue() {
    Barrier();
    Check("ferry_enqueue_startall", ferry_enqueue_startall(queue_, 2, requests_));
    Check("ferry_enqueue_waitall", ferry_enqueue_waitall(queue_, 2, requests_));
    Barrier();
  }
  void Wait() { Check("ferry_queue_wait", ferry_queue_wait(queue_)); }

 private:
  void Barrier() {
    if (zeCommandListAppendBarrier(list_, nullptr, 0, nullptr) != ZE_RESULT_SUCCESS) {
      std::fprintf(stderr, "zeCommandListAppendBarrier failed\n");
      std::exit(1);
    }
  }

  ze_command_list_handle_t const list_;
  ferry_queue queue_ = FERRY_QUEUE_NULL;
  ferry_request requests_[2];
};

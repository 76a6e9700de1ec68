// stream.hpp - a thin C++20 wrapper of stream.h: persistent requests that are matched for life,
// streams of the emulated device, and queues on streams.
//
// Header-only; every call behaves as its C counterpart says, and throws ferry::Error instead of
// returning a code. Objects must be gone before the Session ends; a Queue before its Stream.
//
//   ferry::PersistentRequest send = ferry::PersistentRequest::Send(data, bytes, peer, tag);
//   send.Match();
//   ferry::Stream stream;
//   ferry::Queue queue(stream);
//   queue.EnqueueStart(send.handle());
//   queue.EnqueueWait(send.handle());
//   queue.Wait();
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "ferry/ferry.hpp"
#include "ferry/stream.h"

namespace ferry {

// A send or receive that may be started again and again. It must not be active, nor belong to a
// queue, when it is destroyed.
class PersistentRequest {
 public:
  PersistentRequest() = default;
  PersistentRequest(PersistentRequest&& other) noexcept
      : handle_(std::exchange(other.handle_, FERRY_REQUEST_NULL)) {}
  PersistentRequest& operator=(PersistentRequest&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  PersistentRequest(const PersistentRequest&) = delete;
  PersistentRequest& operator=(const PersistentRequest&) = delete;
  ~PersistentRequest() {
    if (handle_ != FERRY_REQUEST_NULL) {
      (void)ferry_request_free(&handle_);
    }
  }

  static PersistentRequest Send(const void* buffer, size_t size_bytes, int destination, int tag) {
    PersistentRequest request;
    Check(ferry_send_init(buffer, size_bytes, destination, tag, &request.handle_));
    return request;
  }
  static PersistentRequest ReadySend(const void* buffer, size_t size_bytes, int destination,
                                     int tag) {
    PersistentRequest request;
    Check(ferry_rsend_init(buffer, size_bytes, destination, tag, &request.handle_));
    return request;
  }
  static PersistentRequest Receive(void* buffer, size_t size_bytes, int source, int tag) {
    PersistentRequest request;
    Check(ferry_recv_init(buffer, size_bytes, source, tag, &request.handle_));
    return request;
  }

  // The C handle, for the calls that take several requests.
  ferry_request handle() const { return handle_; }
  void Match() { Check(ferry_match(handle_)); }
  bool is_matched() const {
    int matched = 0;
    Check(ferry_is_matched(handle_, &matched));
    return matched != 0;
  }
  void Start() { Check(ferry_start(handle_)); }
  ferry_status Wait() {
    ferry_status status{};
    Check(ferry_wait(&handle_, &status));
    return status;
  }

 private:
  ferry_request handle_ = FERRY_REQUEST_NULL;
};

// Matches all requests together, at a small part of the cost of matching them one by one.
inline void MatchAll(std::span<const ferry_request> requests) {
  Check(ferry_matchall(requests.size(), requests.data()));
}

// A stream of the emulated device.
class Stream {
 public:
  explicit Stream(int device = 0) { Check(ferry_stream_create(device, &handle_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { (void)ferry_stream_destroy(&handle_); }

  ferry_stream handle() const { return handle_; }
  // The address that ferry_queue_init takes.
  const void* address() const { return &handle_; }
  void Copy(void* destination, const void* source, size_t size_bytes) {
    Check(ferry_stream_memcpy(handle_, destination, source, size_bytes));
  }
  void Launch(void (*kernel)(void* argument), void* argument) {
    Check(ferry_stream_launch(handle_, kernel, argument));
  }
  void Synchronize() { Check(ferry_stream_synchronize(handle_)); }

 private:
  ferry_stream handle_ = nullptr;
};

// A queue on a stream, which outlives it. Everything that was enqueued must be done, by Wait, when
// it is destroyed.
class Queue {
 public:
  explicit Queue(const Stream& stream) : Queue(FERRY_QUEUE_FERRY, stream.address()) {}
  // Makes a queue on a stream of a vendor's library, given by its address.
  Queue(ferry_queue_type type, const void* stream_address) {
    Check(ferry_queue_init(type, stream_address, &handle_));
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() { (void)ferry_queue_free(&handle_); }

  ferry_queue handle() const { return handle_; }
  void EnqueueStart(ferry_request request) { Check(ferry_enqueue_start(handle_, request)); }
  void EnqueueStart(std::span<const ferry_request> requests) {
    Check(ferry_enqueue_startall(handle_, requests.size(), requests.data()));
  }
  void EnqueueWait(ferry_request request) { Check(ferry_enqueue_wait(handle_, request)); }
  void EnqueueWait(std::span<const ferry_request> requests) {
    Check(ferry_enqueue_waitall(handle_, requests.size(), requests.data()));
  }
  // Blocks until everything enqueued is done. Throws the first failure of a request, once.
  void Wait() { Check(ferry_queue_wait(handle_)); }

 private:
  ferry_queue handle_ = FERRY_QUEUE_NULL;
};

}  // namespace ferry

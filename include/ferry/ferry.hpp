// ferry.hpp - a thin C++ wrapper of ferry.h: exceptions for errors, RAII for memory and the
// session.
//
// Header-only; every call behaves as its C counterpart says, and throws ferry::Error instead of
// returning a code. Objects must be gone before the Session ends.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ferry/ferry.h"

namespace ferry {

// A failed call: its code, and the library's sentence about it.
class Error : public std::runtime_error {
 public:
  explicit Error(int code) : std::runtime_error(ferry_last_error()), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

inline void Check(int code) {
  if (code != FERRY_SUCCESS) {
    throw Error(code);
  }
}

// Between construction and destruction the process is a rank of its job. Blocks in both.
class Session {
 public:
  explicit Session(int thread_level = FERRY_THREAD_SINGLE) {
    Check(ferry_init(thread_level, nullptr));
  }
  ~Session() { (void)ferry_finalize(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return ferry_rank(); }
  int size() const { return ferry_size(); }
  void Barrier() { Check(ferry_barrier()); }
};

// An array of T in memory that Ferry moves without a copy. Zeroed; T must be trivially copyable.
template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t count, ferry_memory_kind kind = FERRY_MEMORY_HOST, int device = 0)
      : count_(count) {
    void* memory = nullptr;
    Check(ferry_alloc(count * sizeof(T), kind, device, &memory));
    data_ = static_cast<T*>(memory);
  }
  ~Buffer() {
    if (data_ != nullptr) {
      (void)ferry_free(data_);
    }
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* data() const { return data_; }
  size_t size() const { return count_; }
  size_t size_bytes() const { return count_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

// An offloaded send buffer: sends of its bytes read what Sync has copied last. The memory must
// outlive it.
class OffloadedBuffer {
 public:
  OffloadedBuffer(const void* buffer, size_t size_bytes) {
    Check(ferry_offload_register(buffer, size_bytes, &handle_));
  }
  ~OffloadedBuffer() {
    if (handle_ != FERRY_OFFLOAD_NULL) {
      (void)ferry_offload_deregister(&handle_);
    }
  }
  OffloadedBuffer(OffloadedBuffer&& other) noexcept
      : handle_(std::exchange(other.handle_, FERRY_OFFLOAD_NULL)) {}
  OffloadedBuffer& operator=(OffloadedBuffer&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  OffloadedBuffer(const OffloadedBuffer&) = delete;
  OffloadedBuffer& operator=(const OffloadedBuffer&) = delete;

  void Sync(size_t offset_bytes = 0, size_t size_bytes = FERRY_OFFLOAD_TO_END) {
    Check(ferry_offload_sync(handle_, offset_bytes, size_bytes));
  }

 private:
  ferry_offload handle_ = FERRY_OFFLOAD_NULL;
};

// A send or receive under way. Wait before it is destroyed; a moved-from request is complete.
class Request {
 public:
  Request() = default;
  Request(Request&& other) noexcept : handle_(std::exchange(other.handle_, FERRY_REQUEST_NULL)) {}
  Request& operator=(Request&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  static Request Send(const void* buffer, size_t size_bytes, int destination, int tag) {
    Request request;
    Check(ferry_isend(buffer, size_bytes, destination, tag, &request.handle_));
    return request;
  }
  static Request Receive(void* buffer, size_t size_bytes, int source, int tag) {
    Request request;
    Check(ferry_irecv(buffer, size_bytes, source, tag, &request.handle_));
    return request;
  }

  ferry_status Wait() {
    ferry_status status{};
    Check(ferry_wait(&handle_, &status));
    return status;
  }
  bool Test(ferry_status* status = nullptr) {
    int done = 0;
    Check(ferry_test(&handle_, &done, status));
    return done != 0;
  }
  void Cancel() { Check(ferry_cancel(handle_)); }

 private:
  ferry_request handle_ = FERRY_REQUEST_NULL;
};

}  // namespace ferry

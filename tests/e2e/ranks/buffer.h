// Memory of all kinds that a rank may have, for programs that must not touch it themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"

namespace ferry::ranks {

enum Kind { kDevice, kHeap, kPinned, kPrivate, kKinds };

// Memory of one kind, reached by ferry_memcpy.
class Buffer {
 public:
  Buffer(Kind kind, size_t size) : kind_(kind), size_(size) {
    if (kind == kPrivate) {
      own_.resize(size);
      data_ = own_.data();
      return;
    }
    const ferry_memory_kind kinds[] = {FERRY_MEMORY_DEVICE, FERRY_MEMORY_HOST, FERRY_MEMORY_PINNED};
    CHECK_OK(ferry_alloc(size, kinds[kind], 0, &data_));
  }
  ~Buffer() {
    if (kind_ != kPrivate) {
      CHECK_OK(ferry_free(data_));
    }
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  uint8_t* at(size_t offset) { return static_cast<uint8_t*>(data_) + offset; }
  void Fill(size_t offset, size_t size, uint64_t message) {
    std::vector<uint8_t> bytes(size);
    ranks::Fill(bytes.data(), size, message);
    CHECK_OK(ferry_memcpy(at(offset), bytes.data(), size));
  }
  void Check(size_t offset, size_t size, uint64_t message) {
    std::vector<uint8_t> bytes(size);
    CHECK_OK(ferry_memcpy(bytes.data(), at(offset), size));
    CHECK_BYTES(bytes.data(), size, message);
  }
  void CheckByte(size_t offset, uint8_t wanted) {
    uint8_t byte = 0;
    CHECK_OK(ferry_memcpy(&byte, at(offset), 1));
    CHECK_EQ(byte, wanted);
  }
  size_t size() const { return size_; }

 private:
  const Kind kind_;
  const size_t size_;
  std::vector<uint8_t> own_;
  void* data_ = nullptr;
};

}  // namespace ferry::ranks

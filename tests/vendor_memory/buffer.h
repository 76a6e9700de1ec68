// A buffer somewhere inside an allocation of the vendor's, as caching allocators hand them out, and
// what a rank does when something is not as it should be.
//
// Calling thread: one for each buffer.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/vendor_memory/vendor.h"

namespace ferry::vendor_memory {

inline std::string step = "the beginning";  // what the rank is doing

[[noreturn]] inline void Fail(const char* file, int line, const char* what) {
  std::fprintf(stderr, "%s:%d, in %s: %s\n", file, line, step.c_str(), what);
  std::fflush(stderr);
  std::exit(1);
}

#define VENDOR_CHECK(condition) \
  ((condition) ? void() : ::ferry::vendor_memory::Fail(__FILE__, __LINE__, #condition))

class Buffer {
 public:
  static constexpr size_t kMargin = 264;  // no multiple of a power of two, beyond elements

  explicit Buffer(const Kind& kind, size_t bytes)
      : kind_(kind),
        bytes_(bytes),
        all_(static_cast<std::byte*>(kind.allocate(bytes + 2 * kMargin))) {
    const std::vector<std::byte> margin(kMargin, kMark);
    Copy(all_, margin.data(), kMargin);
    Copy(all_ + kMargin + bytes, margin.data(), kMargin);
    Clear();
  }
  ~Buffer() {
    CheckMargins();
    kind_.free(all_, bytes_ + 2 * kMargin);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return all_ + kMargin; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data());
  }
  size_t bytes() const { return bytes_; }

  void Clear() { Write(std::vector<std::byte>(bytes_, std::byte{0xCC})); }

  // Values from the buffer's begin on, or from that element.
  template <typename T>
  void Write(const std::vector<T>& values, size_t first = 0) {
    if (!values.empty()) {
      Copy(data() + first * sizeof(T), values.data(), values.size() * sizeof(T));
    }
  }
  template <typename T>
  std::vector<T> Read(size_t count, size_t first = 0) const {
    std::vector<T> values(count);
    if (count != 0) {
      Copy(values.data(), data() + first * sizeof(T), count * sizeof(T));
    }
    return values;
  }

  // Bytes that differ between messages and between places.
  static std::vector<unsigned char> Pattern(size_t bytes, unsigned seed) {
    std::vector<unsigned char> pattern(bytes);
    for (size_t i = 0; i < bytes; ++i) {
      pattern[i] = static_cast<unsigned char>(seed * 31 + i * 7 + (i >> 8));
    }
    return pattern;
  }
  void Fill(unsigned seed) { Write(Pattern(bytes_, seed)); }
  bool IsFilled(unsigned seed) const {
    return Read<unsigned char>(bytes_) == Pattern(bytes_, seed);
  }

  // Nothing has written beside the buffer.
  void CheckMargins() const {
    std::vector<std::byte> margin(kMargin);
    for (const std::byte* at : {all_, all_ + kMargin + bytes_}) {
      Copy(margin.data(), at, kMargin);
      VENDOR_CHECK(margin == std::vector<std::byte>(kMargin, kMark));
    }
  }

 private:
  static constexpr std::byte kMark{0xEE};

  const Kind& kind_;
  const size_t bytes_;
  std::byte* const all_;
};

}  // namespace ferry::vendor_memory

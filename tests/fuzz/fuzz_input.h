// Takes a fuzzer's input apart: beyond its end everything is zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace ferry::fuzz {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : left_(data, size) {}

  bool empty() const { return left_.empty(); }
  std::span<const uint8_t> TakeBytes(size_t count) {
    const auto taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  template <typename T>
  T Take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const auto bytes = TakeBytes(sizeof(T));
    if (!bytes.empty()) {
      std::memcpy(&value, bytes.data(), bytes.size());
    }
    return value;
  }
  // 0 .. bound - 1.
  uint32_t Below(uint32_t bound) { return Take<uint8_t>() % bound; }
  std::string TakeText(size_t count) {
    const auto bytes = TakeBytes(count);
    return {bytes.begin(), bytes.end()};
  }
  // Overwrites some of `value`: a mutation of something correct goes deeper than noise.
  template <typename T>
  void Spoil(T* value) {
    static_assert(std::is_trivially_copyable_v<T>);
    for (uint32_t n = Below(4); n > 0; --n) {
      const size_t offset = Take<uint16_t>() % sizeof(T);
      const auto bytes = TakeBytes(std::min<size_t>(1 + Below(8), sizeof(T) - offset));
      if (!bytes.empty()) {
        std::memcpy(reinterpret_cast<uint8_t*>(value) + offset, bytes.data(), bytes.size());
      }
    }
  }

 private:
  std::span<const uint8_t> left_;
};

}  // namespace ferry::fuzz

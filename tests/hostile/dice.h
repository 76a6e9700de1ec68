// Random choices of a hostile program, all from one seed that is printed: the same seed makes the
// same choices. Other processes' actions differ from run to run.
//
// One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <type_traits>

namespace ferry::hostile {

class Dice {
 public:
  explicit Dice(uint64_t seed) : generator_(seed) {}

  uint64_t Any() { return generator_(); }
  uint64_t Below(uint64_t bound) { return Any() % bound; }
  bool OneIn(uint64_t count) { return Below(count) == 0; }

  // A number that programs stumble over, or a small one, or any.
  uint64_t Number() {
    constexpr uint64_t kEdges[] = {0,          1,          63,         64,         255,
                                   256,        4095,       4096,       8192,       65'536,
                                   0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1ULL << 32, 1ULL << 40,
                                   1ULL << 47, 1ULL << 63, ~0ULL - 1,  ~0ULL};
    switch (Below(3)) {
      case 0:
        return kEdges[Below(std::size(kEdges))];
      case 1:
        return Below(8);
      default:
        return Any() >> Below(64);
    }
  }
  // Mostly `good`.
  template <typename T>
  T Mostly(T good) {
    return OneIn(8) ? static_cast<T>(Number()) : good;
  }
  std::string Text(size_t most) {
    std::string text(Below(most + 1), '\0');
    for (char& c : text) {
      c = static_cast<char>(OneIn(4) ? Any() : 'a' + Below(26));
    }
    return text;
  }
  // Overwrites some bytes of it, or none.
  template <typename T>
  void Spoil(T* value) {
    static_assert(std::is_trivially_copyable_v<T>);
    for (uint64_t count = OneIn(2) ? 0 : 1 + Below(3); count > 0; --count) {
      const uint64_t number = Number();
      const size_t size = std::min<size_t>(sizeof(T), size_t{1} << Below(4));
      const size_t at = Below(sizeof(T) - size + 1);
      std::memcpy(reinterpret_cast<uint8_t*>(value) + at, &number, std::min(size, sizeof(number)));
    }
  }

 private:
  std::mt19937_64 generator_;
};

}  // namespace ferry::hostile

// Which bytes of a stretch of the file ranks have given: one mark for each *grain*, a piece of a
// power of two of bytes that all their places are multiples of. So several ranks mark at once, by
// plain stores, and what lies between the marked grains is never written.
//
// Units: bytes of the stretch, from its beginning on. Calling thread: any; different grains may be
// marked at once, everything else needs the caller's order. Nothing blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ferry::mpi {

class Coverage {
 public:
  // `marks`: memory of the caller's, one byte for each grain of the stretch, all of them 0.
  Coverage(std::byte* marks, int grain_shift) : marks_(marks), shift_(grain_shift) {}

  // Marks bytes [begin, begin + length), which are whole grains.
  void Mark(int64_t begin, int64_t length) {
    std::byte* const first = marks_ + (begin >> shift_);
    const int64_t grains = length >> shift_;
    if (grains == 1) [[likely]] {
      *first = kMarked;
    } else {
      std::memset(first, static_cast<int>(kMarked), static_cast<size_t>(grains));
    }
  }

  // Calls run(begin, length) for each run of marked bytes within [begin, end), which are multiples
  // of the grain, from the first on, and takes the marks away.
  template <typename Run>
  void Take(int64_t begin, int64_t end, Run&& run) {
    const std::byte* const last = marks_ + (end >> shift_);
    std::byte* at = marks_ + (begin >> shift_);
    while ((at = Find(at, last, kMarked)) != nullptr) {
      std::byte* const gap = Find(at, last, std::byte{0});
      const auto grains = (gap == nullptr ? last : gap) - at;
      std::memset(at, 0, static_cast<size_t>(grains));
      run((at - marks_) << shift_, static_cast<int64_t>(grains) << shift_);
      at += grains;
    }
  }

 private:
  static constexpr std::byte kMarked{1};

  static std::byte* Find(std::byte* from, const std::byte* end, std::byte what) {
    return from == end ? nullptr
                       : static_cast<std::byte*>(std::memchr(from, static_cast<int>(what),
                                                             static_cast<size_t>(end - from)));
  }

  std::byte* const marks_;
  const int shift_;
};

}  // namespace ferry::mpi

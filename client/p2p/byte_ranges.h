// A set of bytes of one buffer, by their offsets, held as ranges that neither touch nor overlap.
//
// Not thread-safe: the caller locks.
#pragma once

#include <cstdint>
#include <map>

namespace ferry::client {

class ByteRanges {
 public:
  // Adds [begin, end), which may be empty.
  void Add(uint64_t begin, uint64_t end);
  void Remove(uint64_t begin, uint64_t end);
  // Returns the first byte of [begin, end) that is not in the set, or `end`.
  uint64_t FirstMissing(uint64_t begin, uint64_t end) const;

 private:
  std::map<uint64_t, uint64_t> ends_;  // begin -> end
};

}  // namespace ferry::client

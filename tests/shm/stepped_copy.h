// Records the stores of a copy, and how often each comes: the copy is run instruction by
// instruction, and each word is taken away as soon as it has come, as a program does that polls it.
//
// Linux ptrace: see step_kill.h.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tests/shm/step_kill.h"

namespace ferry::shm {

using SteppedCopy = std::function<void(std::byte* to, const std::byte* from, size_t bytes)>;

// A copy to an offset in a room, from a row that begins at an offset from what CPUs like, or from
// so many bytes before the destination.
struct CopyPlaces {
  size_t bytes;
  size_t to;
  size_t from = 0;
  size_t overlap = 0;
};

// Describes the fault of the copy; empty if each naturally aligned word of 1, 2, 4 or 8 bytes of
// the destination is stored once and whole.
std::string FaultOf(const SteppedCopy& copy, const CopyPlaces& places);

// The byte of such a row at place i, never 0.
inline std::byte ByteAt(size_t i) { return static_cast<std::byte>(1 + i % 200); }
// A row of so many bytes behind `offset` others.
std::vector<std::byte> RowOf(size_t offset, size_t bytes);

}  // namespace ferry::shm

// Pairs of numbers: a constant or a handle of the standard's binary interface ("ours"), and what it
// is in the other one ("theirs").
//
// Calling thread: any. Nothing here waits or allocates.
#pragma once

#include <mpi.h>

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>

#include "mpi/foreign/calls.h"

namespace ferry::foreign {

// The functions of libmpi_abi (library.cc).
extern __attribute__((visibility("hidden"))) Calls abi;

// ---- Constants ----------------------------------------------------------------------------------

struct Pair {
  int ours;
  int theirs;
};

// No constant of any kind: calls refuse it.
inline constexpr int kNoConstant = INT_MIN + 1;

// A number that is not in the pairs stays what it is (keyvals that programs make, MPI_UNDEFINED),
// unless it would become another constant by that.
template <size_t kCount>
int Ours(const Pair (&pairs)[kCount], int theirs) {
  bool is_ours = false;
  for (const Pair& pair : pairs) {
    if (pair.theirs == theirs) {
      return pair.ours;
    }
    is_ours |= pair.ours == theirs;
  }
  return is_ours ? kNoConstant : theirs;
}

template <size_t kCount>
int Theirs(const Pair (&pairs)[kCount], int ours) {
  for (const Pair& pair : pairs) {
    if (pair.ours == ours) {
      return pair.theirs;
    }
  }
  return ours;
}

// Modes, which are added up. A bit that is none of theirs becomes one that is none of ours.
template <size_t kCount>
int OurBits(const Pair (&pairs)[kCount], int theirs) {
  constexpr int kNoBit = 1 << 30;
  int ours = 0;
  for (const Pair& pair : pairs) {
    if ((theirs & pair.theirs) != 0) {
      ours |= pair.ours;
      theirs &= ~pair.theirs;
    }
  }
  return theirs == 0 ? ours : ours | kNoBit;
}

template <size_t kCount>
int TheirBits(const Pair (&pairs)[kCount], int ours) {
  int theirs = 0;
  for (const Pair& pair : pairs) {
    theirs |= (ours & pair.ours) != 0 ? pair.theirs : 0;
  }
  return theirs;
}

// ---- Handles ------------------------------------------------------------------------------------
//
// Theirs are numbers of 32 bits: two bits that say how the handle came to be (0 null, 1 and 2
// predefined, 3 made at run time), four for the kind, and an index. A handle of ours that has no
// number there gets 3, its kind, and the number that MPI_Comm_toint and its like give it.

struct HandlePair {
  uint16_t ours;
  uint32_t theirs;
};

inline constexpr int kKindShift = 26;
inline constexpr uint32_t kIndexMask = (1U << kKindShift) - 1;
inline constexpr uint32_t kMade = 3U << 30;

// Where the pair of a predefined handle stands: their indices are small, and unlike among those
// that came to be in one way.
inline constexpr size_t SlotOf(uint32_t theirs) {
  constexpr std::array<uint8_t, 4> kFirst = {0x60, 0x00, 0x50, 0x70};
  return kFirst[theirs >> 30] + (theirs & 0x7f);
}

struct HandleTable {
  std::array<uint32_t, 256> theirs{};      // by slot; 0: no handle
  std::array<uint16_t, 256> ours{};        // of the same
  std::array<uint32_t, 1024> to_theirs{};  // by ours; 0: none
};

template <size_t kCount>
consteval HandleTable MakeTable(const HandlePair (&pairs)[kCount]) {
  HandleTable table;
  for (const HandlePair& pair : pairs) {
    const size_t slot = SlotOf(pair.theirs);
    if (table.theirs[slot] != 0) {
      throw "two handles have one slot";
    }
    table.theirs[slot] = pair.theirs;
    table.ours[slot] = pair.ours;
    table.to_theirs[pair.ours] = pair.theirs;
  }
  return table;
}

template <typename Handle>
struct HandleKind;

// NOLINTBEGIN(bugprone-macro-parentheses): a type, an array, a part of names.
#define FERRY_FOREIGN_HANDLE(Handle, bits, pairs, name)                       \
  template <>                                                                 \
  struct HandleKind<Handle> {                                                 \
    static constexpr uint32_t kMark = kMade | uint32_t{bits} << kKindShift;   \
    static constexpr HandleTable kTable = MakeTable(pairs);                   \
    static int NumberOf(Handle ours) { return abi.name##_toint(ours); }       \
    static Handle HandleOf(int number) { return abi.name##_fromint(number); } \
  };
// NOLINTEND(bugprone-macro-parentheses)

// A number that is no handle there becomes none of ours, and comes back as it was.
inline constexpr uintptr_t kNoHandle = uintptr_t{0xfeed} << 48;

template <typename Handle>
__attribute__((noinline)) Handle OursMade(uint32_t theirs) {
  if ((theirs & ~kIndexMask) == HandleKind<Handle>::kMark) {
    const auto number = static_cast<int>(theirs & kIndexMask);
    if (const Handle made = HandleKind<Handle>::HandleOf(number); made != nullptr) {
      return made;
    }
  }
  return reinterpret_cast<Handle>(kNoHandle | theirs);
}

template <typename Handle>
__attribute__((noinline)) int TheirsMade(Handle ours) {
  const auto word = reinterpret_cast<uintptr_t>(ours);
  if (word >> 48 == kNoHandle >> 48) {
    return static_cast<int>(static_cast<uint32_t>(word));
  }
  const int number = HandleKind<Handle>::NumberOf(ours);
  return number == 0 ? 0
                     : static_cast<int>(HandleKind<Handle>::kMark | static_cast<uint32_t>(number));
}

template <typename Handle>
Handle Ours(int theirs) {
  constexpr const HandleTable& kTable = HandleKind<Handle>::kTable;
  const auto word = static_cast<uint32_t>(theirs);
  const size_t slot = SlotOf(word);
  return kTable.theirs[slot] == word && word != 0
             ? reinterpret_cast<Handle>(uintptr_t{kTable.ours[slot]})
             : OursMade<Handle>(word);
}

template <typename Handle>
int Theirs(Handle ours) {
  constexpr const HandleTable& kTable = HandleKind<Handle>::kTable;
  const auto word = reinterpret_cast<uintptr_t>(ours);
  if (word < kTable.to_theirs.size() && kTable.to_theirs[word] != 0) {
    return static_cast<int>(kTable.to_theirs[word]);
  }
  return TheirsMade(ours);
}

}  // namespace ferry::foreign

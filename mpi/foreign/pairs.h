// Pairs of numbers: a constant or a handle of the standard's binary interface ("ours"), and what it
// is in the other one ("theirs").
//
// Calling thread: any. Nothing here waits or allocates.
#pragma once

#include <mpi.h>

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

// The numbers that libmpi_abi has for handles of ours: predefined ones are their own, others are
// larger than all of those; 0: none.
template <typename Handle>
struct Numbered;

#define FERRY_NUMBERED(Kind, name)                                            \
  template <>                                                                 \
  struct Numbered<MPI_##Kind> {                                               \
    static int Of(MPI_##Kind ours) { return abi.name##_toint(ours); }         \
    static MPI_##Kind From(int number) { return abi.name##_fromint(number); } \
  };
FERRY_NUMBERED(Comm, Comm)
FERRY_NUMBERED(Datatype, Type)
FERRY_NUMBERED(Errhandler, Errhandler)
FERRY_NUMBERED(File, File)
FERRY_NUMBERED(Group, Group)
FERRY_NUMBERED(Info, Info)
FERRY_NUMBERED(Message, Message)
FERRY_NUMBERED(Op, Op)
FERRY_NUMBERED(Request, Request)
FERRY_NUMBERED(Session, Session)
FERRY_NUMBERED(Win, Win)
#undef FERRY_NUMBERED

// A predefined handle of ours, and its number there.
struct HandlePair {
  uint16_t ours;
  uint32_t theirs;
};

}  // namespace ferry::foreign

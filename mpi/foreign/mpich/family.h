// MPICH 3 and 4, and the libraries of its binary interface. See mpi/foreign/convert.h.
//
// Calling thread: any. Nothing here waits or allocates.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "mpi/foreign/mpich/numbers.h"
#include "mpi/foreign/pairs.h"

namespace ferry::foreign {

// ---- Names --------------------------------------------------------------------------------------

inline constexpr char kFamilyLibrary[] = "libmpi.so.12";
// The text of MPI_Get_library_version before the version of Ferry, and after it.
inline constexpr char kBeforeVersion[] = "MPICH Version:      4.2.1\nMPICH Device:       ";
inline constexpr char kAfterVersion[] = "\n";
inline constexpr int kTheirVersion = 4;  // of MPICH 4.2, whose functions these are
inline constexpr int kTheirSubversion = 1;

// Addresses that are the numbers of the standard's interface, since libmpi.so.12 defines them
// (other_names.cc).
inline constexpr int kTheirUnweighted = 10;
inline constexpr int kTheirWeightsEmpty = 11;
inline constexpr int kTheirTPvarAllHandles = 1;

// ---- Handles ------------------------------------------------------------------------------------
//
// Theirs are numbers of 32 bits: two bits that say how the handle came to be (0 null, 1 and 2
// predefined, 3 made at run time), four for the kind, and an index. A handle of ours that has no
// number there gets 3, its kind, and the number that MPI_Comm_toint and its like give it.

using TheirHandle = int;

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

// FERRY_HANDLE(kind, bits): MPI_Kind, with the bits that this kind has in their numbers. A message
// has the bits of requests there; here it has its own, so that mistakes are told apart.
#define FERRY_HANDLE(kind, bits)                                            \
  template <>                                                               \
  struct HandleKind<MPI_##kind> {                                           \
    static constexpr uint32_t kMark = kMade | uint32_t{bits} << kKindShift; \
    static constexpr HandleTable kTable = MakeTable(k##kind##Pairs);        \
  };
FERRY_HANDLE(Comm, 1)
FERRY_HANDLE(Group, 2)
FERRY_HANDLE(Datatype, 3)
FERRY_HANDLE(Errhandler, 5)
FERRY_HANDLE(Op, 6)
FERRY_HANDLE(Info, 7)
FERRY_HANDLE(Win, 8)
FERRY_HANDLE(Request, 11)
FERRY_HANDLE(Session, 14)
FERRY_HANDLE(Message, 15)
#undef FERRY_HANDLE

// A number that is no handle there becomes none of ours, and comes back as it was.
inline constexpr uintptr_t kNoHandle = uintptr_t{0xfeed} << 48;

template <typename Handle>
__attribute__((noinline)) Handle OursMade(uint32_t theirs) {
  if ((theirs & ~kIndexMask) == HandleKind<Handle>::kMark) {
    const auto number = static_cast<int>(theirs & kIndexMask);
    if (const Handle made = Numbered<Handle>::From(number); made != nullptr) {
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
  const int number = Numbered<Handle>::Of(ours);
  return number == 0 ? 0
                     : static_cast<int>(HandleKind<Handle>::kMark | static_cast<uint32_t>(number));
}

template <typename Handle>
Handle Ours(TheirHandle theirs) {
  constexpr const HandleTable& kTable = HandleKind<Handle>::kTable;
  const auto word = static_cast<uint32_t>(theirs);
  const size_t slot = SlotOf(word);
  return kTable.theirs[slot] == word && word != 0
             ? reinterpret_cast<Handle>(uintptr_t{kTable.ours[slot]})
             : OursMade<Handle>(word);
}

template <typename Handle>
TheirHandle Theirs(Handle ours) {
  constexpr const HandleTable& kTable = HandleKind<Handle>::kTable;
  const auto word = reinterpret_cast<uintptr_t>(ours);
  if (word < kTable.to_theirs.size() && kTable.to_theirs[word] != 0) {
    return static_cast<int>(kTable.to_theirs[word]);
  }
  return TheirsMade(ours);
}

// Files are pointers in both interfaces; the null file is 0 in theirs.
using File = void*;
inline MPI_File OurFile(File theirs) {
  return theirs == nullptr ? MPI_FILE_NULL : static_cast<MPI_File>(theirs);
}
inline File TheirFile(MPI_File ours) { return ours == MPI_FILE_NULL ? nullptr : ours; }

// Datatypes that the standard has no more: they mark where a struct begins and ends.
inline bool IsLowerBound(TheirHandle theirs) { return theirs == 0x4c000010; }
inline bool IsUpperBound(TheirHandle theirs) { return theirs == 0x4c000011; }

// In Fortran, handles are the same numbers.
template <typename Handle>
int FortranOf(TheirHandle theirs) {
  return theirs;
}
template <typename Handle>
TheirHandle OfFortran(int number) {
  return number;
}

// ---- Callbacks ----------------------------------------------------------------------------------

// MPI_COMM_DUP_FN and its like are this in their interface (other_names.cc).
extern "C" int MPIR_Dup_fn(int, int, void*, void* in, void* out, int* flag);

inline bool CopiesAsItIs(int (*copy)(TheirHandle, int, void*, void*, void*, int*)) {
  return copy == MPIR_Dup_fn;
}

// ---- Statuses -----------------------------------------------------------------------------------

struct MpichStatus {
  int count_lo;
  int count_hi_and_cancelled;  // the lowest bit: it was cancelled
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;

  int64_t bytes() const {
    return int64_t{count_hi_and_cancelled >> 1} << 32 | static_cast<uint32_t>(count_lo);
  }
  bool is_cancelled() const { return (count_hi_and_cancelled & 1) != 0; }
  void Set(int64_t bytes, bool is_cancelled) {
    count_lo = static_cast<int>(bytes & 0xffffffff);
    count_hi_and_cancelled = static_cast<int>(bytes >> 32 << 1) | (is_cancelled ? 1 : 0);
  }
};
static_assert(sizeof(MpichStatus) == 20);
using Status = MpichStatus;

// Other names of functions: none (see the other family).
#define FERRY_PERSISTENT(name)

}  // namespace ferry::foreign

// Open MPI 4 and 5. See mpi/foreign/convert.h.
//
// Calling thread: any. Nothing here waits or allocates.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mpi/foreign/openmpi/numbers.h"
#include "mpi/foreign/pairs.h"

namespace ferry::foreign {

// ---- Names --------------------------------------------------------------------------------------

inline constexpr char kFamilyLibrary[] = "libmpi.so.40";
// The text of MPI_Get_library_version before the version of Ferry, and after it.
inline constexpr char kBeforeVersion[] = "Open MPI v4.1.4 (";
inline constexpr char kAfterVersion[] = ")";
inline constexpr int kTheirVersion = 3;  // of Open MPI 4, whose functions these are
inline constexpr int kTheirSubversion = 1;

// Open MPI has no MPI_BUFFER_AUTOMATIC: a null pointer, which is no buffer.
inline constexpr int kTheirBufferAutomatic = 0;

// ---- Handles ------------------------------------------------------------------------------------
//
// Theirs are addresses. Those of predefined handles are addresses of objects that libmpi.so.40
// defines (objects.cc), or of the copies that a program has of them: their first word is the number
// of our handle, whichever of the two it is. All other handles are ours. They are addresses too, of
// cells of which the first word is an address or null, and that stay readable when a handle is
// freed (mpi/base/handle_table.h).

struct TheirObject {
  std::atomic<uintptr_t> number;  // the library writes it in cells
};
using TheirHandle = TheirObject*;

// Handles of ours that are predefined lie below this.
inline constexpr uintptr_t kPredefined = 1024;
// No object lies below this address.
inline constexpr uintptr_t kFirstAddress = 4096;

// By our number; null: there is none.
extern __attribute__((visibility("hidden"))) const std::array<TheirHandle, kPredefined> objects;

// A number where a handle belongs becomes none of ours, and comes back as it was.
inline constexpr uintptr_t kNoHandle = uintptr_t{0xfeed} << 48;

template <typename Handle>
Handle Ours(TheirHandle theirs) {
  const auto word = reinterpret_cast<uintptr_t>(theirs);
  if (word < kFirstAddress) [[unlikely]] {
    return reinterpret_cast<Handle>(kNoHandle | word);
  }
  // Another thread may make or free the handle of such a cell.
  const uintptr_t number = theirs->number.load(std::memory_order_relaxed);
  return reinterpret_cast<Handle>(number - 1 < kPredefined - 1 ? number : word);
}

template <typename Handle>
TheirHandle Theirs(Handle ours) {
  const auto word = reinterpret_cast<uintptr_t>(ours);
  if (word < kPredefined) {
    return objects[word];
  }
  return reinterpret_cast<TheirHandle>(word >> 48 == kNoHandle >> 48 ? word & ~kNoHandle : word);
}

using File = TheirHandle;
inline MPI_File OurFile(File theirs) { return Ours<MPI_File>(theirs); }
inline File TheirFile(MPI_File ours) { return Theirs(ours); }

// Datatypes that the standard has no more: they mark where a struct begins and ends.
inline bool Is(uintptr_t number, TheirHandle theirs) {
  return reinterpret_cast<uintptr_t>(theirs) >= kFirstAddress &&
         theirs->number.load(std::memory_order_relaxed) == number;
}
inline bool IsLowerBound(TheirHandle theirs) { return Is(kLbHandle, theirs); }
inline bool IsUpperBound(TheirHandle theirs) { return Is(kUbHandle, theirs); }

// ---- Handles in Fortran -------------------------------------------------------------------------
//
// Predefined ones have small numbers there, which begin at 0 for each kind. All others have the
// numbers that libmpi_abi gives them, which are larger than its predefined handles.

struct FortranTable {
  std::array<int16_t, kPredefined> number{};  // by our handle
  std::array<int16_t, kPredefined> ours{};    // by number
};

template <size_t kCount>
consteval FortranTable MakeFortranTable(const HandlePair (&pairs)[kCount]) {
  FortranTable table;
  for (size_t i = 0; i < kPredefined; ++i) {
    table.number[i] = table.ours[i] = static_cast<int16_t>(i);
  }
  for (const HandlePair& pair : pairs) {
    if (table.ours[pair.theirs] != static_cast<int16_t>(pair.theirs)) {
      throw "two handles have one number";
    }
    table.number[pair.ours] = static_cast<int16_t>(pair.theirs);
    table.ours[pair.theirs] = static_cast<int16_t>(pair.ours);
  }
  return table;
}

template <typename Handle>
struct FortranNumbers;

#define FERRY_NUMBERS_OF(Kind)                                                 \
  template <>                                                                  \
  struct FortranNumbers<MPI_##Kind> {                                          \
    static constexpr FortranTable kTable = MakeFortranTable(k##Kind##Fortran); \
  };
FERRY_NUMBERS_OF(Comm)
FERRY_NUMBERS_OF(Datatype)
FERRY_NUMBERS_OF(Errhandler)
FERRY_NUMBERS_OF(File)
FERRY_NUMBERS_OF(Group)
FERRY_NUMBERS_OF(Info)
FERRY_NUMBERS_OF(Message)
FERRY_NUMBERS_OF(Op)
FERRY_NUMBERS_OF(Request)
FERRY_NUMBERS_OF(Session)
FERRY_NUMBERS_OF(Win)
#undef FERRY_NUMBERS_OF

// -1: it is no handle.
template <typename Handle>
int FortranOf(TheirHandle theirs) {
  const auto ours = Ours<Handle>(theirs);
  const int number = Numbered<Handle>::Of(ours);
  if (number == 0) {
    return -1;
  }
  return number < static_cast<int>(kPredefined)
             ? FortranNumbers<Handle>::kTable.number[static_cast<size_t>(number)]
             : number;
}

// Null: no handle has this number.
template <typename Handle>
TheirHandle OfFortran(int number) {
  if (number >= 0 && number < static_cast<int>(kPredefined)) {
    number = FortranNumbers<Handle>::kTable.ours[static_cast<size_t>(number)];
  }
  return Theirs(Numbered<Handle>::From(number));
}

// ---- Callbacks ----------------------------------------------------------------------------------

using CopyFunction = int(TheirHandle, int, void*, void*, void*, int*);

// MPI_COMM_DUP_FN and its like are these (other_names.cc).
extern "C" CopyFunction OMPI_C_MPI_COMM_DUP_FN, OMPI_C_MPI_DUP_FN, OMPI_C_MPI_TYPE_DUP_FN,
    OMPI_C_MPI_WIN_DUP_FN;

inline bool CopiesAsItIs(CopyFunction* copy) {
  return copy == OMPI_C_MPI_COMM_DUP_FN || copy == OMPI_C_MPI_TYPE_DUP_FN ||
         copy == OMPI_C_MPI_WIN_DUP_FN || copy == OMPI_C_MPI_DUP_FN;
}

// ---- Statuses -----------------------------------------------------------------------------------

struct OpenMpiStatus {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int cancelled;
  size_t size_bytes;

  int64_t bytes() const { return static_cast<int64_t>(size_bytes); }
  bool is_cancelled() const { return cancelled != 0; }
  void Set(int64_t bytes, bool is_cancelled) {
    size_bytes = static_cast<size_t>(bytes);
    cancelled = is_cancelled ? 1 : 0;
  }
};
static_assert(sizeof(OpenMpiStatus) == 24);
using Status = OpenMpiStatus;

// Other names of functions: Open MPI 4 shows the standard's persistent collectives with this
// beginning.
#define FERRY_PERSISTENT(name)                                                          \
  asm(".globl PMPIX_" #name "\n.set PMPIX_" #name ", PMPI_" #name "\n.weak MPIX_" #name \
      "\n.set MPIX_" #name ", PMPI_" #name);

}  // namespace ferry::foreign

// The procedures of Fortran call C's by means of this: handles that are integers, truth values,
// strings with blanks at their end, and the constants that are recognised by their address
// (MPI 5.0, chapter 19).
//
// Calling thread: any. Nothing here waits, takes a lock, or allocates, but for arrays of more than
// kFew elements and strings of more than kShort characters.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "mpi/fortran/sentinels.h"

#define FERRY_SHOWN __attribute__((visibility("default")))
// Converters are part of each procedure that calls them, so that they call C's function directly.
#define FERRY_INLINE inline __attribute__((always_inline))

// A second name of a function. Compilers write the names of Fortran's procedures in four ways; and
// many of the names in capital letters are macros of mpi.h, so no declaration could have them.
#define FERRY_NAME(name, target) asm(".globl " name "\n.set " name ", " target)
#define FERRY_NAMES(low, capital, target) \
  FERRY_NAME(low, target);                \
  FERRY_NAME(low "__", target);           \
  FERRY_NAME(capital, target)

// ---- Constants that are recognised by their address ---------------------------------------------
//
// Each is a common block. A program has it as a symbol of its own, to which those of this library
// are bound when it is loaded; libraries that were opened may have others (sentinels.h). Their
// contents are not for reading: all bits are set. They are aligned as compilers align common
// blocks: the linker warns otherwise.

#define FERRY_COMMON alignas(32) FERRY_SHOWN extern

// The library for Fortran of another binary interface (mpi/foreign) is compiled of the same
// sources, with a header of C's functions that has the types and constants of that interface and
// defines this. Its blocks have other names.
#ifdef FERRY_MPI_OF_OPENMPI
#define ferry_mpi_bottom_ mpi_fortran_bottom_
#define ferry_mpi_in_place_ mpi_fortran_in_place_
#define ferry_mpi_buffer_automatic_ mpi_fortran_buffer_automatic_
#define ferry_mpi_status_ignore_ mpi_fortran_status_ignore_
#define ferry_mpi_statuses_ignore_ mpi_fortran_statuses_ignore_
#define ferry_mpi_errcodes_ignore_ mpi_fortran_errcodes_ignore_
#define ferry_mpi_unweighted_ mpi_fortran_unweighted_
#define ferry_mpi_weights_empty_ mpi_fortran_weights_empty_
#define ferry_mpi_argv_null_ mpi_fortran_argv_null_
#define ferry_mpi_argvs_null_ mpi_fortran_argvs_null_
#endif

extern "C" {
FERRY_COMMON const int ferry_mpi_bottom_[1];
FERRY_COMMON const int ferry_mpi_in_place_[1];
FERRY_COMMON const int ferry_mpi_buffer_automatic_[1];
FERRY_COMMON const int ferry_mpi_status_ignore_[8];
FERRY_COMMON const int ferry_mpi_statuses_ignore_[8];
FERRY_COMMON const int ferry_mpi_errcodes_ignore_[1];
FERRY_COMMON const int ferry_mpi_unweighted_[1];
FERRY_COMMON const int ferry_mpi_weights_empty_[1];
FERRY_COMMON const char ferry_mpi_argv_null_[1];
FERRY_COMMON const char ferry_mpi_argvs_null_[1];
}

namespace ferry::fortran {

// Any procedure of a program.
using Function = void();

// Defined for each constant: true if an address is it.
#define FERRY_SENTINEL(Name, block)                                                            \
  inline bool Is##Name(const void* address) {                                                  \
    return address == block || (MayBeOthers() && IsOfOtherObject(address, Sentinel::k##Name)); \
  }
FERRY_SENTINEL(InPlace, ferry_mpi_in_place_)
FERRY_SENTINEL(StatusIgnore, ferry_mpi_status_ignore_)
FERRY_SENTINEL(StatusesIgnore, ferry_mpi_statuses_ignore_)
FERRY_SENTINEL(ErrcodesIgnore, ferry_mpi_errcodes_ignore_)
FERRY_SENTINEL(Unweighted, ferry_mpi_unweighted_)
FERRY_SENTINEL(WeightsEmpty, ferry_mpi_weights_empty_)
FERRY_SENTINEL(ArgvNull, ferry_mpi_argv_null_)
FERRY_SENTINEL(ArgvsNull, ferry_mpi_argvs_null_)
#undef FERRY_SENTINEL

// The buffer that a constant of another object stands for, or the buffer itself.
inline void* BufferOfOthers(void* buffer) {
  if (IsOfOtherObject(buffer, Sentinel::kBottom)) {
    return MPI_BOTTOM;
  }
  if (IsOfOtherObject(buffer, Sentinel::kInPlace)) {
    return MPI_IN_PLACE;
  }
  return IsOfOtherObject(buffer, Sentinel::kBufferAutomatic) ? MPI_BUFFER_AUTOMATIC : buffer;
}

inline void* Buffer(void* buffer) {
  if (buffer == ferry_mpi_bottom_) {
    return MPI_BOTTOM;
  }
  if (buffer == ferry_mpi_in_place_) {
    return MPI_IN_PLACE;
  }
  if (buffer == ferry_mpi_buffer_automatic_) {
    return MPI_BUFFER_AUTOMATIC;
  }
  return MayBeOthers() ? BufferOfOthers(buffer) : buffer;
}

// A buffer that MPI gives back.
inline void* Detached(void* buffer) {
  return buffer == MPI_BUFFER_AUTOMATIC ? const_cast<int*>(ferry_mpi_buffer_automatic_) : buffer;
}

inline MPI_Status* Status(int* status) {
  return IsStatusIgnore(status) ? MPI_STATUS_IGNORE : reinterpret_cast<MPI_Status*>(status);
}

inline MPI_Status* Statuses(int* statuses) {
  return IsStatusesIgnore(statuses) ? MPI_STATUSES_IGNORE : reinterpret_cast<MPI_Status*>(statuses);
}

inline int* Weights(int* weights) {
  if (IsUnweighted(weights)) {
    return MPI_UNWEIGHTED;
  }
  return IsWeightsEmpty(weights) ? MPI_WEIGHTS_EMPTY : weights;
}

// The result of a call. In mpi_f08 the argument may be absent.
inline void Give(int* ierror, int code) {
  if (ierror != nullptr) {
    *ierror = code;
  }
}

// ---- Handles ------------------------------------------------------------------------------------

// Numbers below it are predefined handles, in both languages (MPI 5.0, section 20.4.5).
#ifdef FERRY_MPI_OF_OPENMPI
inline constexpr int kPredefined = 0;  // C has addresses
#else
inline constexpr int kPredefined = 4096;
#endif

template <typename Handle>
Handle HandleOf(int number);

#define FERRY_FORTRAN_HANDLE(kind, Handle)                                            \
  template <>                                                                         \
  inline Handle HandleOf<Handle>(int number) {                                        \
    return number >= 0 && number < kPredefined                                        \
               ? reinterpret_cast<Handle>(static_cast<uintptr_t>(number))             \
               : PMPI_##kind##_fromint(number);                                       \
  }                                                                                   \
  inline int NumberOf(Handle handle) {                                                \
    const auto word = reinterpret_cast<uintptr_t>(handle);                            \
    return word < kPredefined ? static_cast<int>(word) : PMPI_##kind##_toint(handle); \
  }

FERRY_FORTRAN_HANDLE(Comm, MPI_Comm)
FERRY_FORTRAN_HANDLE(Errhandler, MPI_Errhandler)
FERRY_FORTRAN_HANDLE(File, MPI_File)
FERRY_FORTRAN_HANDLE(Group, MPI_Group)
FERRY_FORTRAN_HANDLE(Info, MPI_Info)
FERRY_FORTRAN_HANDLE(Message, MPI_Message)
FERRY_FORTRAN_HANDLE(Op, MPI_Op)
FERRY_FORTRAN_HANDLE(Request, MPI_Request)
FERRY_FORTRAN_HANDLE(Session, MPI_Session)
FERRY_FORTRAN_HANDLE(Type, MPI_Datatype)
FERRY_FORTRAN_HANDLE(Win, MPI_Win)

#undef FERRY_FORTRAN_HANDLE

// So many elements of an array need no allocation.
inline constexpr int kFew = 64;

// Elements that live as long as this: of the stack, if they are few.
template <typename T>
class Elements {
 public:
  explicit Elements(MPI_Count count)
      : count_(std::max(count, MPI_Count{0})),
        many_(count_ > kFew ? new T[static_cast<size_t>(count_)] : few_) {}
  ~Elements() {
    if (many_ != few_) {
      delete[] many_;
    }
  }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;
  T* get() { return many_; }
  MPI_Count count() const { return count_; }

 private:
  T few_[kFew];
  MPI_Count count_;
  T* many_;
};

template <typename Handle>
class Handles : public Elements<Handle> {
 public:
  Handles(const int* numbers, MPI_Count count) : Elements<Handle>(count) {
    for (MPI_Count i = 0; i < this->count(); ++i) {
      this->get()[i] = HandleOf<Handle>(numbers[i]);
    }
  }
  void Store(int* numbers) {
    for (MPI_Count i = 0; i < this->count(); ++i) {
      numbers[i] = NumberOf(this->get()[i]);
    }
  }
};

// ---- Truth values -------------------------------------------------------------------------------
//
// The lowest bit decides, as for gfortran and flang (1) and for ifx and nvfortran (-1).

inline int IsTrue(int logical) { return logical & 1; }
inline int Logical(int is_true) { return is_true != 0 ? 1 : 0; }

class Logicals : public Elements<int> {
 public:
  Logicals(const int* logicals, MPI_Count count) : Elements<int>(count) {
    for (MPI_Count i = 0; i < this->count(); ++i) {
      get()[i] = IsTrue(logicals[i]);
    }
  }
};

// ---- Indices, which count from 1 in Fortran -----------------------------------------------------

inline int FromOne(int index) { return index == MPI_UNDEFINED ? index : index + 1; }

// The first `count` of them, which may be MPI_UNDEFINED.
inline void CountFromOne(int* indices, int count) {
  for (int i = 0; i < count; ++i) {
    ++indices[i];
  }
}

// ---- Strings ------------------------------------------------------------------------------------

inline constexpr size_t kShort = 1024;

// A string that C can read: without the blanks at its end.
class String {
 public:
  String(const char* text, size_t length) {
    while (length > 0 && text[length - 1] == ' ') {
      --length;
    }
    char* to = short_;
    if (length > kShort) {
      long_.reset(new char[length + 1]);
      to = long_.get();
    }
    std::memcpy(to, text, length);
    to[length] = '\0';
  }
  const char* get() const { return long_ ? long_.get() : short_; }

 private:
  char short_[kShort + 1];
  std::unique_ptr<char[]> long_;
};

// Without those in front either.
class StrippedString : public String {
 public:
  StrippedString(const char* text, size_t length)
      : String(text + Blanks(text, length), length - Blanks(text, length)) {}

 private:
  static size_t Blanks(const char* text, size_t length) {
    size_t blanks = 0;
    while (blanks < length && text[blanks] == ' ') {
      ++blanks;
    }
    return blanks;
  }
};

// Gives a string back: as much as there is room for, and blanks.
inline void Fill(char* text, size_t length, const char* value) {
  const size_t given = std::min(length, std::strlen(value));
  std::memcpy(text, value, given);
  std::memset(text + given, ' ', length - given);
}

}  // namespace ferry::fortran

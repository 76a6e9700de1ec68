// The functions of a library of another binary interface call libmpi_abi's by means of this: what a
// program passes becomes what the standard's interface has for it, and back.
//
// A family is the libraries of one binary interface. The sources of this folder are compiled once
// for each family, with its folder in the path of headers. Its family.h says: the names of its
// library; how its handles are made of ours (TheirHandle, Ours, Theirs, and the numbers that
// Fortran has for them); what its statuses are; and which numbers its constants have.
//
// Calling thread: any. Nothing here waits, takes a lock, or allocates, but for arrays of more than
// kFew elements.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "family.h"  // of the family
#include "mpi/foreign/pairs.h"

#define FERRY_SHOWN __attribute__((visibility("default")))

// Defines PMPI_x, which the library never calls by that name, with MPI_x as a weak name of it that
// a tool may replace. In C++ the function has another name: mpi.h has declared these two with the
// arguments of the standard's interface.
#define FERRY_FOREIGN(result, name, parameters)                               \
  extern "C" FERRY_SHOWN result foreign_##name parameters asm("PMPI_" #name); \
  asm(".weak MPI_" #name "\n.set MPI_" #name ", PMPI_" #name);                \
  extern "C" result foreign_##name parameters

// Defines PMPIX_x and MPIX_x likewise.
#define FERRY_EXTENSION(result, name, parameters)                                \
  extern "C" FERRY_SHOWN result foreign_x_##name parameters asm("PMPIX_" #name); \
  asm(".weak MPIX_" #name "\n.set MPIX_" #name ", PMPIX_" #name);                \
  extern "C" result foreign_x_##name parameters

namespace ferry::foreign {

// ---- Numbers ------------------------------------------------------------------------------------

inline int OurRank(int theirs) {
  if (theirs >= 0) [[likely]] {
    return theirs;
  }
  switch (theirs) {
    case kTheirProcNull:
      return MPI_PROC_NULL;
    case kTheirAnySource:
      return MPI_ANY_SOURCE;
    case kTheirRoot:
      return MPI_ROOT;
    default:  // a mistake, which must not become one of ours
      return theirs == MPI_ROOT || theirs == MPI_PROC_NULL ? kNoConstant : theirs;
  }
}

inline int TheirRank(int ours) {
  if (ours >= 0) [[likely]] {
    return ours;
  }
  switch (ours) {
    case MPI_PROC_NULL:
      return kTheirProcNull;
    case MPI_ANY_SOURCE:
      return kTheirAnySource;
    case MPI_ROOT:
      return kTheirRoot;
    default:
      return ours;
  }
}

inline int OurTag(int theirs) {
  if (theirs >= 0) [[likely]] {
    return theirs;
  }
  if (theirs == kTheirAnyTag) {
    return MPI_ANY_TAG;
  }
  return theirs == MPI_ANY_TAG ? kNoConstant : theirs;
}

inline int TheirTag(int ours) { return ours == MPI_ANY_TAG ? kTheirAnyTag : ours; }

// Classes by the table; codes that the program has added keep their distance from the last class.
inline int OurCode(int theirs) {
  return theirs >= kTheirErrLastcode ? theirs - kTheirErrLastcode + MPI_ERR_LASTCODE
                                     : Ours(kErrors, theirs);
}

__attribute__((noinline)) inline int TheirFailure(int ours) {
  if (ours >= MPI_ERR_LASTCODE) {
    return ours - MPI_ERR_LASTCODE + kTheirErrLastcode;
  }
  for (const Pair& pair : kErrors) {
    if (pair.ours == ours) {
      return pair.theirs;
    }
  }
  // A class that they do not have is another error; any other number is the program's own.
  const bool is_class = (ours > 0 && ours < 100) || (ours > 1000 && ours < 1100);
  return is_class ? Theirs(kErrors, MPI_ERR_OTHER) : ours;
}

inline int TheirCode(int ours) { return ours == MPI_SUCCESS ? MPI_SUCCESS : TheirFailure(ours); }

// After a call that has succeeded: what stands behind `place` becomes theirs.
template <typename Convert>
void Translate(int code, int* place, Convert convert) {
  if (code == MPI_SUCCESS && place != nullptr) {
    *place = convert(*place);
  }
}

// ---- Buffers ------------------------------------------------------------------------------------

inline bool IsInPlace(const void* theirs) {
  return reinterpret_cast<intptr_t>(theirs) == kTheirInPlace;
}
inline const void* OurBuffer(const void* theirs) {
  return IsInPlace(theirs) ? MPI_IN_PLACE : theirs;
}
inline void* OurBuffer(void* theirs) { return IsInPlace(theirs) ? MPI_IN_PLACE : theirs; }

// Weights of a graph's edges, of which there may be none.
template <typename Weights>
Weights* OurWeights(Weights* theirs) {
  switch (reinterpret_cast<intptr_t>(theirs)) {
    case kTheirUnweighted:
      return MPI_UNWEIGHTED;
    case kTheirWeightsEmpty:
      return MPI_WEIGHTS_EMPTY;
    default:
      return theirs;
  }
}

inline MPI_T_pvar_handle OurPvarHandle(MPI_T_pvar_handle theirs) {
  return reinterpret_cast<intptr_t>(theirs) == kTheirTPvarAllHandles ? MPI_T_PVAR_ALL_HANDLES
                                                                     : theirs;
}

// Where a view of a file begins.
inline MPI_Offset OurDisplacement(MPI_Offset theirs) {
  return theirs == kTheirDisplacementCurrent ? MPI_DISPLACEMENT_CURRENT : theirs;
}

// ---- Arrays -------------------------------------------------------------------------------------

// So many elements of an array need no allocation.
inline constexpr int kFew = 64;

// Elements that live as long as this: of the stack, if they are few. There are none where the
// program has no array.
template <typename T>
class Elements {
 public:
  Elements(const void* theirs, int64_t count)
      : count_(theirs == nullptr || count < 0 ? 0 : count),
        elements_(theirs == nullptr ? nullptr
                  : count_ > kFew   ? new T[static_cast<size_t>(count_)]
                                    : few_) {}
  ~Elements() {
    if (elements_ != few_) {
      delete[] elements_;
    }
  }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;
  T* get() const { return elements_; }
  int64_t count() const { return count_; }

 private:
  T few_[kFew];
  int64_t count_;
  T* elements_;
};

template <typename Handle>
class HandlesIn : public Elements<Handle> {
 public:
  HandlesIn(const TheirHandle* theirs, int64_t count) : Elements<Handle>(theirs, count) {
    for (int64_t i = 0; i < this->count(); ++i) {
      this->get()[i] = Ours<Handle>(theirs[i]);
    }
  }
};

template <typename Handle>
class HandlesInOut : public HandlesIn<Handle> {
 public:
  HandlesInOut(TheirHandle* theirs, int64_t count)
      : HandlesIn<Handle>(theirs, count), theirs_(theirs) {}
  void Give() {
    for (int64_t i = 0; i < this->count(); ++i) {
      theirs_[i] = Theirs(this->get()[i]);
    }
  }

 private:
  TheirHandle* theirs_;
};

// ---- Single handles behind a pointer ------------------------------------------------------------

template <typename Handle>
class HandleInOut {
 public:
  explicit HandleInOut(TheirHandle* theirs)
      : theirs_(theirs), ours_(theirs == nullptr ? nullptr : Ours<Handle>(*theirs)) {}
  Handle* get() { return theirs_ == nullptr ? nullptr : &ours_; }
  void Give() {
    if (theirs_ != nullptr) {
      *theirs_ = Theirs(ours_);
    }
  }

 private:
  TheirHandle* theirs_;
  Handle ours_;
};

// A handle that a call does not write stays as it was.
template <typename Handle>
class HandleOut {
 public:
  explicit HandleOut(TheirHandle* theirs) : theirs_(theirs) {}
  Handle* get() { return theirs_ == nullptr ? nullptr : &ours_; }
  void Give() {
    if (theirs_ != nullptr && ours_ != Unwritten()) {
      *theirs_ = Theirs(ours_);
    }
  }

 private:
  static Handle Unwritten() { return reinterpret_cast<Handle>(UINTPTR_MAX); }

  TheirHandle* theirs_;
  Handle ours_ = Unwritten();
};

class FileInOut {
 public:
  explicit FileInOut(File* theirs)
      : theirs_(theirs), ours_(theirs == nullptr ? MPI_FILE_NULL : OurFile(*theirs)) {}
  MPI_File* get() { return theirs_ == nullptr ? nullptr : &ours_; }
  void Give() {
    if (theirs_ != nullptr) {
      *theirs_ = TheirFile(ours_);
    }
  }

 private:
  File* theirs_;
  MPI_File ours_;
};

class KeyvalInOut {
 public:
  explicit KeyvalInOut(int* theirs)
      : theirs_(theirs), ours_(theirs == nullptr ? 0 : Ours(kKeyvals, *theirs)) {}
  int* get() { return theirs_ == nullptr ? nullptr : &ours_; }
  void Give() {
    if (theirs_ != nullptr && ours_ != kNoConstant) {
      *theirs_ = Theirs(kKeyvals, ours_);
    }
  }

 private:
  int* theirs_;
  int ours_;
};

// ---- Statuses -----------------------------------------------------------------------------------

// The words of ours that hold the bytes that came (two words), and whether it was cancelled.
// library.cc compares them with what libmpi_abi does.
inline constexpr int kOurBytes = 0;
inline constexpr int kOurCancelled = 2;

// Stands in a status that a call has not written.
inline constexpr int kUnwritten = INT_MIN;

inline void MarkUnwritten(MPI_Status* ours) {
  ours->MPI_SOURCE = kUnwritten;
  ours->MPI_ERROR = kUnwritten;
}

inline MPI_Status OurStatus(const Status& theirs) {
  MPI_Status ours{};
  ours.MPI_SOURCE = OurRank(theirs.MPI_SOURCE);
  ours.MPI_TAG = OurTag(theirs.MPI_TAG);
  ours.MPI_ERROR = OurCode(theirs.MPI_ERROR);
  const int64_t bytes = theirs.bytes();
  ours.MPI_internal[kOurBytes] = static_cast<int>(bytes & 0xffffffff);
  ours.MPI_internal[kOurBytes + 1] = static_cast<int>(bytes >> 32);
  ours.MPI_internal[kOurCancelled] = theirs.is_cancelled() ? 1 : 0;
  return ours;
}

// MPI_ERROR is only written where the call has written it.
inline void GiveStatus(const MPI_Status& ours, Status* theirs) {
  if (ours.MPI_SOURCE != kUnwritten) {
    theirs->MPI_SOURCE = TheirRank(ours.MPI_SOURCE);
    theirs->MPI_TAG = TheirTag(ours.MPI_TAG);
    theirs->Set(int64_t{ours.MPI_internal[kOurBytes + 1]} << 32 |
                    static_cast<uint32_t>(ours.MPI_internal[kOurBytes]),
                ours.MPI_internal[kOurCancelled] != 0);
  }
  if (ours.MPI_ERROR != kUnwritten) {
    theirs->MPI_ERROR = TheirCode(ours.MPI_ERROR);
  }
}

inline bool IsStatus(const Status* theirs) {
  return reinterpret_cast<intptr_t>(theirs) != kTheirStatusIgnore && theirs != nullptr;
}

class StatusOut {
 public:
  explicit StatusOut(Status* theirs) : theirs_(IsStatus(theirs) ? theirs : nullptr) {
    MarkUnwritten(&ours_);
  }
  MPI_Status* get() { return theirs_ == nullptr ? MPI_STATUS_IGNORE : &ours_; }
  void Give() {
    if (theirs_ != nullptr) {
      GiveStatus(ours_, theirs_);
    }
  }

 private:
  Status* theirs_;
  MPI_Status ours_;
};

class StatusesOut : public Elements<MPI_Status> {
 public:
  StatusesOut(Status* theirs, int64_t count)
      : Elements(IsStatus(theirs) ? theirs : nullptr, count), theirs_(theirs) {
    std::for_each(get(), get() + this->count(), [](MPI_Status& one) { MarkUnwritten(&one); });
  }
  void Give() {
    for (int64_t i = 0; i < count(); ++i) {
      GiveStatus(get()[i], &theirs_[i]);
    }
  }

 private:
  Status* theirs_;
};

class StatusIn {
 public:
  explicit StatusIn(const Status* theirs) : is_there_(IsStatus(theirs)) {
    if (is_there_) {
      ours_ = OurStatus(*theirs);
    }
  }
  const MPI_Status* get() const { return is_there_ ? &ours_ : nullptr; }

 private:
  bool is_there_;
  MPI_Status ours_;
};

class StatusInOut {
 public:
  explicit StatusInOut(Status* theirs) : theirs_(IsStatus(theirs) ? theirs : nullptr) {
    if (theirs_ != nullptr) {
      ours_ = OurStatus(*theirs_);
    }
  }
  MPI_Status* get() { return theirs_ == nullptr ? nullptr : &ours_; }
  void Give() {
    if (theirs_ != nullptr) {
      GiveStatus(ours_, theirs_);
    }
  }

 private:
  Status* theirs_;
  MPI_Status ours_;
};

// ---- Arrays whose length stands in a communicator (by_hand.cc) ----------------------------------

int Peers(TheirHandle comm);
struct Neighbours {
  int in = 0;
  int out = 0;
};
Neighbours NeighboursOf(TheirHandle comm);
bool IsRoot(TheirHandle comm, int root);

}  // namespace ferry::foreign

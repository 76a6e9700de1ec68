// Values of attributes in Fortran (MPI 5.0, sections 7.7 and 19.3.7): integers, where C has
// pointers.
//
// A value that Fortran sets is a pointer for C, to an integer of this library; what C sets is for
// Fortran the pointer itself. So each integer that Fortran ever set stands in a place of its own,
// once, and its place says of a pointer that Fortran set it: a copy of the attribute is the same
// pointer, and nothing needs to be freed.
//
// Any thread. Places take a lock, and memory at the first use of a value.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace ferry::fortran {

class Places {
 public:
  void* Of(MPI_Aint value) {
    std::lock_guard lock(mutex_);
    MPI_Aint*& place = places_[value];
    if (place == nullptr) {
      place = new MPI_Aint(value);
      known_.insert(place);
    }
    return place;
  }
  bool Has(const void* place) {
    std::lock_guard lock(mutex_);
    return known_.contains(place);
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::unordered_map<MPI_Aint, MPI_Aint*> places_;
  std::unordered_set<const void*> known_;
};

// Is never destroyed: programs may delete attributes until the process has ended.
inline Places& AllPlaces() {
  static Places& places = *new Places();
  return places;
}

// Returns the value that Fortran has of an attribute whose value C has.
inline MPI_Aint FromC(void* value) {
  return AllPlaces().Has(value) ? *static_cast<const MPI_Aint*>(value)
                                : reinterpret_cast<MPI_Aint>(value);
}

// Of any attribute: predefined ones are integers in C too, behind a pointer.
inline MPI_Aint FromC(int keyval, void* value) {
  switch (keyval) {
    case MPI_TAG_UB:
    case MPI_IO:
    case MPI_HOST:
    case MPI_WTIME_IS_GLOBAL:
    case MPI_APPNUM:
    case MPI_LASTUSEDCODE:
    case MPI_UNIVERSE_SIZE:
    case MPI_WIN_DISP_UNIT:
    case MPI_WIN_CREATE_FLAVOR:
    case MPI_WIN_MODEL:
      return *static_cast<const int*>(value);
    case MPI_WIN_SIZE:
      return *static_cast<const MPI_Aint*>(value);
    case MPI_WIN_BASE:
      return reinterpret_cast<MPI_Aint>(value);
    default:
      return FromC(value);
  }
}

}  // namespace ferry::fortran

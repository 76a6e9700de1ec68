// Datatypes of sections, kept for the next call that hands over a section of the same form: making
// one takes longer than sending a kilobyte with it.
//
// A datatype is kept only if it was made from a predefined one. A program may free its own, and
// another may then have the same number. There is room for 128; beyond that, new ones replace old
// ones that no call is using. MPI_Finalize frees them, with the attributes of MPI_COMM_SELF: in a
// process that has opened sessions alone, none is kept.
//
// Calling thread: any. Nothing waits but at MPI_Finalize: a thread that finds another one at the
// table does as if nothing were kept.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace ferry::fortran {

// All that a datatype depends on, in numbers.
class Recipe {
 public:
  void Add(MPI_Count number) {
    numbers_[length_++] = number;
    hash_ = (hash_ ^ static_cast<uint64_t>(number)) * 0x9E3779B97F4A7C15;
    hash_ ^= hash_ >> 32;
  }
  uint64_t hash() const { return hash_; }
  bool operator==(const Recipe& other) const {
    return hash_ == other.hash_ && length_ == other.length_ &&
           std::equal(numbers_, numbers_ + length_, other.numbers_);
  }

 private:
  static constexpr int kMost = 4 + 2 * 15;  // two of each dimension

  uint64_t hash_ = 0;
  int length_ = 0;
  MPI_Count numbers_[kMost];
};

struct KeptType {
  Recipe recipe;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int number = 0;  // in Fortran
  std::atomic<int> users = 0;
};

// Returns what is kept of this recipe, for the caller to use until Release. Null: nothing.
KeptType* FindKept(const Recipe& recipe);
// Keeps a committed datatype, which the caller uses until Release. Null: it is not kept, and is
// still the caller's own.
KeptType* Keep(const Recipe& recipe, MPI_Datatype type);
void Release(KeptType* kept);

}  // namespace ferry::fortran

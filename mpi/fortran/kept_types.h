// Datatypes of sections, kept for the next call that hands over a section of the same form: making
// one takes longer than sending a kilobyte with it.
//
// A datatype is kept only if it was made from a predefined one. A program may free its own, and
// another may then have the same number. There is room for 128; beyond that, new ones replace old
// ones that no call is using. MPI_Finalize frees them, with the attributes of MPI_COMM_SELF: in a
// process that has opened sessions alone, none is kept.
//
// Calling thread: any. Finding takes no lock. Nothing waits but at MPI_Finalize: a thread that
// wants to keep one while another does so leaves it.
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

// An entry of the table, closed while it changes: only users may read it, but for its hash.
class KeptType {
 public:
  MPI_Datatype type() const { return type_; }
  int number() const { return number_; }  // in Fortran

  // Makes the caller a user, if this is of the recipe.
  bool Enter(const Recipe& recipe) {
    if (hash_.load(std::memory_order_relaxed) != recipe.hash()) {
      return false;
    }
    // Pairs with Open: the entry is read as it was then.
    if (users_.fetch_add(1, std::memory_order_acquire) >= 0 && recipe_ == recipe &&
        type_ != MPI_DATATYPE_NULL) [[likely]] {
      return true;
    }
    Leave();
    return false;
  }
  // Pairs with Close: users have read the entry before it changes.
  void Leave() { users_.fetch_sub(1, std::memory_order_release); }

  // Frees the datatype, and closes the entry. False: it has users.
  bool Close();
  // Opens a closed one for a datatype, of which the caller is a user.
  void Open(const Recipe& recipe, MPI_Datatype type);

 private:
  static constexpr int kClosed = -(1 << 30);

  std::atomic<int> users_ = 0;  // kClosed, and those who look in vain, while it is closed
  std::atomic<uint64_t> hash_ = 0;
  Recipe recipe_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  int number_ = 0;
};

// Returns what is kept of this recipe, for the caller to use until KeptType::Leave. Null: nothing.
KeptType* FindKept(const Recipe& recipe);
// Keeps a committed datatype, which the caller uses until KeptType::Leave. Null: it is not kept,
// and is still the caller's own.
KeptType* Keep(const Recipe& recipe, MPI_Datatype type);

}  // namespace ferry::fortran

// Predefined datatypes without a name, which a program asks for by their contents: pairs of any
// value and index (MPI_Type_get_value_index, MPI 5.0, section 6.9.4), and numbers of a precision
// and range (MPI_Type_create_f90_..., section 19.1.5; by gfortran's kinds). Also numbers of a size
// (MPI_Type_match_size), which have names.
//
// Equal requests give one object, which lives as long as the process. Calling thread: any. Blocks:
// on a lock, briefly.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "mpi/datatype/datatype.h"

namespace ferry::mpi {

class UnnamedTypes {
 public:
  // `find` gives the object of a predefined handle.
  using Find = std::function<Datatype*(MPI_Datatype)>;
  explicit UnnamedTypes(Find find) : find_(std::move(find)) {}

  // Null: Ferry has no such pair (the value has no order, or the index is no integer).
  // MPI_ERR_TYPE: one of the two is not predefined.
  Result<Datatype*> ValueIndex(Datatype& value, Datatype& index);
  // MPI_ERR_ARG: there is no such number. `precision` and `range` may be MPI_UNDEFINED, but not
  // both.
  Result<Datatype*> Fortran(int combiner, int precision, int range);

 private:
  using Key = std::vector<uintptr_t>;
  Datatype* Keep(const Key& key, BasicType basic, DatatypeContents contents);

  const Find find_;
  std::mutex mutex_;
  std::map<Key, Ref<Datatype>> types_;
  std::vector<std::unique_ptr<const BasicType>> basics_;
};

// Returns the answer of MPI_Type_match_size; null: none.
MPI_Datatype TypeOfSize(int type_class, int size_bytes);

}  // namespace ferry::mpi

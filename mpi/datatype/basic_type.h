// The predefined datatypes of MPI 5.0 as one table: their names, sizes, how the machine counts with
// them, and the class that says which reductions MPI permits (sections 3.2.2, 6.9.2, 6.9.4, 15.5.2,
// 20.3).
//
// The Fortran types have the sizes that gfortran gives them. Programs in C may use them, too, to
// describe data of Fortran programs.
//
// Calling thread: any. Blocks: never.
#pragma once

#include <cstdint>
#include <span>

#include "common/reduction/number_kind.h"
#include "ferry/mpi/mpi.h"

namespace ferry::mpi {

using reduction::NumberKind;

// MPI's groups of types, by which it says which types a reduction takes.
enum class TypeClass : uint8_t {
  kCInteger,
  kFortranInteger,
  kFloatingPoint,
  kLogical,
  kComplex,
  kByte,
  kMultiLanguage,
  kText,    // characters: no reduction takes them
  kPacked,  // no reduction
  kPair,    // a value and an index, for MPI_MINLOC and MPI_MAXLOC
};

struct BasicType {
  MPI_Datatype handle = nullptr;  // null: a pair that has no name, of MPI_Type_get_value_index
  const char* name = "";
  TypeClass type_class = TypeClass::kByte;
  NumberKind kind = NumberKind::kUint8;  // of a pair: the value's
  NumberKind index_kind = NumberKind::kUint8;
  int64_t size_bytes = 0;            // of the data, gaps left out
  int64_t extent_bytes = 0;          // from one element to the next
  int64_t alignment = 0;             // bytes
  int64_t index_offset = 0;          // of a pair's index
  int64_t external_bytes = 0;        // in "external32"
  const BasicType* value = nullptr;  // of a pair
  const BasicType* index = nullptr;

  bool IsPair() const { return type_class == TypeClass::kPair; }
};

std::span<const BasicType> BasicTypes();

// Null: the handle names no predefined datatype.
const BasicType* FindBasicType(MPI_Datatype handle);

// The layout of a structure of `value` and `index`, which are of the table and no pairs.
BasicType MakePairType(MPI_Datatype handle, const char* name, const BasicType& value,
                       const BasicType& index);

}  // namespace ferry::mpi

#include "mpi/datatype/unnamed_types.h"

#include <string>

namespace ferry::mpi {
namespace {

bool IsInteger(const BasicType& type) {
  return type.type_class == TypeClass::kCInteger || type.type_class == TypeClass::kFortranInteger ||
         type.type_class == TypeClass::kMultiLanguage;
}

// The pair that has a name, or null.
const BasicType* NamedPair(const BasicType& value, const BasicType& index) {
  for (const BasicType& type : BasicTypes()) {
    if (type.IsPair() && type.value == &value && type.index == &index) {
      return &type;
    }
  }
  return nullptr;
}

struct Precision {
  int digits;
  int exponent;
  MPI_Datatype real;
  MPI_Datatype complex;
};

struct Range {
  int digits;
  MPI_Datatype type;
};

// Null: none has so many digits.
MPI_Datatype IntegerOf(int range) {
  for (const Range& type : {Range{2, MPI_INTEGER1}, Range{4, MPI_INTEGER2}, Range{9, MPI_INTEGER4},
                            Range{18, MPI_INTEGER8}, Range{38, MPI_INTEGER16}}) {
    if (range <= type.digits) {
      return type.type;
    }
  }
  return MPI_DATATYPE_NULL;
}

MPI_Datatype RealOf(bool complex, int precision, int range) {
  for (const Precision& type :
       {Precision{6, 37, MPI_REAL4, MPI_COMPLEX8}, Precision{15, 307, MPI_REAL8, MPI_COMPLEX16},
        Precision{33, 4931, MPI_REAL16, MPI_COMPLEX32}}) {
    if ((precision == MPI_UNDEFINED || precision <= type.digits) &&
        (range == MPI_UNDEFINED || range <= type.exponent)) {
      return complex ? type.complex : type.real;
    }
  }
  return MPI_DATATYPE_NULL;
}

}  // namespace

Datatype* UnnamedTypes::Keep(const Key& key, BasicType basic, DatatypeContents contents) {
  std::lock_guard lock(mutex_);
  Ref<Datatype>& type = types_[key];
  if (!type) {
    basics_.push_back(std::make_unique<const BasicType>(std::move(basic)));
    type = MakeRef<Datatype>(*basics_.back(), std::move(contents));
    type->set_handle(nullptr);
  }
  return type.get();
}

Result<Datatype*> UnnamedTypes::ValueIndex(Datatype& value, Datatype& index) {
  const BasicType* const first = value.predefined();
  const BasicType* const second = index.predefined();
  if (first == nullptr || second == nullptr) {
    return Failure{MPI_ERR_TYPE, std::string(first == nullptr ? "value_type" : "index_type") +
                                     " is not a predefined datatype"};
  }
  if (const BasicType* const named = NamedPair(*first, *second); named != nullptr) {
    return find_(named->handle);
  }
  if (!(IsInteger(*first) || first->type_class == TypeClass::kFloatingPoint) ||
      !IsInteger(*second)) {
    return static_cast<Datatype*>(nullptr);
  }
  DatatypeContents contents;
  contents.combiner = MPI_COMBINER_VALUE_INDEX;
  contents.types = {Ref<Datatype>::Share(&value), Ref<Datatype>::Share(&index)};
  const Key key = {MPI_COMBINER_VALUE_INDEX, reinterpret_cast<uintptr_t>(first),
                   reinterpret_cast<uintptr_t>(second)};
  return Keep(key, MakePairType(nullptr, "", *first, *second), std::move(contents));
}

Result<Datatype*> UnnamedTypes::Fortran(int combiner, int precision, int range) {
  const bool is_integer = combiner == MPI_COMBINER_F90_INTEGER;
  MPI_Datatype named = MPI_DATATYPE_NULL;
  if (is_integer) {
    named = IntegerOf(range);
  } else if (precision != MPI_UNDEFINED || range != MPI_UNDEFINED) {
    named = RealOf(combiner == MPI_COMBINER_F90_COMPLEX, precision, range);
  }
  if (named == MPI_DATATYPE_NULL) {
    const std::string r = "r " + std::to_string(range);
    return Failure{MPI_ERR_ARG,
                   "there is no Fortran number with " +
                       (is_integer ? r : "p " + std::to_string(precision) + " and " + r)};
  }
  DatatypeContents contents;
  contents.combiner = combiner;
  contents.integers = {range};
  if (!is_integer) {
    contents.integers.insert(contents.integers.begin(), precision);
  }
  BasicType basic = *FindBasicType(named);
  basic.name = "";
  const Key key = {static_cast<uintptr_t>(combiner), static_cast<uintptr_t>(precision),
                   static_cast<uintptr_t>(range)};
  return Keep(key, basic, std::move(contents));
}

MPI_Datatype TypeOfSize(int type_class, int size_bytes) {
  TypeClass wanted = TypeClass::kFortranInteger;
  if (type_class == MPI_TYPECLASS_REAL) {
    wanted = TypeClass::kFloatingPoint;
  } else if (type_class == MPI_TYPECLASS_COMPLEX) {
    wanted = TypeClass::kComplex;
  } else if (type_class != MPI_TYPECLASS_INTEGER) {
    return MPI_DATATYPE_NULL;
  }
  for (const MPI_Datatype handle :
       {MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_INTEGER16, MPI_REAL2, MPI_REAL4,
        MPI_REAL8, MPI_REAL16, MPI_COMPLEX4, MPI_COMPLEX8, MPI_COMPLEX16, MPI_COMPLEX32}) {
    const BasicType* const type = FindBasicType(handle);
    if (type->type_class == wanted && type->size_bytes == size_bytes) {
      return handle;
    }
  }
  return MPI_DATATYPE_NULL;
}

}  // namespace ferry::mpi

#include "mpi/datatype/basic_type.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace ferry::mpi {
namespace {

using Class = TypeClass;
using Kind = NumberKind;

int64_t AlignmentOf(Kind kind) {
  switch (kind) {
    case Kind::kComplex16:
      return 2;
    case Kind::kComplex32:
      return alignof(float);
    case Kind::kComplex64:
      return alignof(double);
    case Kind::kComplexLongDouble:
    case Kind::kComplex128:
      return alignof(long double);
    default:
      return SizeOf(kind);  // the rest is aligned to its size
  }
}

template <typename Integer>
constexpr Kind IntegerKind() {
  constexpr bool kSigned = static_cast<Integer>(-1) < static_cast<Integer>(0);
  switch (sizeof(Integer)) {
    case 1:
      return kSigned ? Kind::kInt8 : Kind::kUint8;
    case 2:
      return kSigned ? Kind::kInt16 : Kind::kUint16;
    case 4:
      return kSigned ? Kind::kInt32 : Kind::kUint32;
    default:
      return kSigned ? Kind::kInt64 : Kind::kUint64;
  }
}

struct Row {
  MPI_Datatype handle;
  const char* name;
  Class type_class;
  Kind kind;
  int64_t external_bytes = 0;  // where it is not the size
};

// The name is the constant's own.
#define NAMED(constant) constant, #constant

std::vector<Row> SingleRows() {
  constexpr int64_t kExternalLong = 4;
  constexpr int64_t kExternalWide = 2;
  return {
      {NAMED(MPI_AINT), Class::kMultiLanguage, IntegerKind<MPI_Aint>(), 8},
      {NAMED(MPI_COUNT), Class::kMultiLanguage, IntegerKind<MPI_Count>(), 8},
      {NAMED(MPI_OFFSET), Class::kMultiLanguage, IntegerKind<MPI_Offset>(), 8},
      {NAMED(MPI_PACKED), Class::kPacked, Kind::kUint8},
      {NAMED(MPI_SHORT), Class::kCInteger, IntegerKind<short>()},
      {NAMED(MPI_INT), Class::kCInteger, IntegerKind<int>()},
      {NAMED(MPI_LONG), Class::kCInteger, IntegerKind<long>(), kExternalLong},
      {NAMED(MPI_LONG_LONG), Class::kCInteger, IntegerKind<long long>()},
      {NAMED(MPI_UNSIGNED_SHORT), Class::kCInteger, IntegerKind<unsigned short>()},
      {NAMED(MPI_UNSIGNED), Class::kCInteger, IntegerKind<unsigned>()},
      {NAMED(MPI_UNSIGNED_LONG), Class::kCInteger, IntegerKind<unsigned long>(), kExternalLong},
      {NAMED(MPI_UNSIGNED_LONG_LONG), Class::kCInteger, IntegerKind<unsigned long long>()},
      {NAMED(MPI_FLOAT), Class::kFloatingPoint, Kind::kFloat32},
      {NAMED(MPI_C_FLOAT_COMPLEX), Class::kComplex, Kind::kComplex32},
      {NAMED(MPI_CXX_FLOAT_COMPLEX), Class::kComplex, Kind::kComplex32},
      {NAMED(MPI_DOUBLE), Class::kFloatingPoint, Kind::kFloat64},
      {NAMED(MPI_C_DOUBLE_COMPLEX), Class::kComplex, Kind::kComplex64},
      {NAMED(MPI_CXX_DOUBLE_COMPLEX), Class::kComplex, Kind::kComplex64},
      {NAMED(MPI_LONG_DOUBLE), Class::kFloatingPoint, Kind::kLongDouble},
      {NAMED(MPI_C_LONG_DOUBLE_COMPLEX), Class::kComplex, Kind::kComplexLongDouble},
      {NAMED(MPI_CXX_LONG_DOUBLE_COMPLEX), Class::kComplex, Kind::kComplexLongDouble},
      {NAMED(MPI_C_BOOL), Class::kLogical, IntegerKind<bool>()},
      {NAMED(MPI_CXX_BOOL), Class::kLogical, IntegerKind<bool>()},
      {NAMED(MPI_WCHAR), Class::kText, IntegerKind<wchar_t>(), kExternalWide},
      {NAMED(MPI_INT8_T), Class::kCInteger, Kind::kInt8},
      {NAMED(MPI_UINT8_T), Class::kCInteger, Kind::kUint8},
      // MPI says that it is for text and not for reductions; every other library computes with it.
      {NAMED(MPI_CHAR), Class::kCInteger, IntegerKind<char>()},
      {NAMED(MPI_SIGNED_CHAR), Class::kCInteger, Kind::kInt8},
      {NAMED(MPI_UNSIGNED_CHAR), Class::kCInteger, Kind::kUint8},
      {NAMED(MPI_BYTE), Class::kByte, Kind::kUint8},
      {NAMED(MPI_INT16_T), Class::kCInteger, Kind::kInt16},
      {NAMED(MPI_UINT16_T), Class::kCInteger, Kind::kUint16},
      {NAMED(MPI_INT32_T), Class::kCInteger, Kind::kInt32},
      {NAMED(MPI_UINT32_T), Class::kCInteger, Kind::kUint32},
      {NAMED(MPI_INT64_T), Class::kCInteger, Kind::kInt64},
      {NAMED(MPI_UINT64_T), Class::kCInteger, Kind::kUint64},
      // Fortran
      {NAMED(MPI_LOGICAL), Class::kLogical, Kind::kInt32},
      {NAMED(MPI_INTEGER), Class::kFortranInteger, Kind::kInt32},
      {NAMED(MPI_REAL), Class::kFloatingPoint, Kind::kFloat32},
      {NAMED(MPI_COMPLEX), Class::kComplex, Kind::kComplex32},
      {NAMED(MPI_DOUBLE_PRECISION), Class::kFloatingPoint, Kind::kFloat64},
      {NAMED(MPI_DOUBLE_COMPLEX), Class::kComplex, Kind::kComplex64},
      {NAMED(MPI_CHARACTER), Class::kText, IntegerKind<char>()},
      {NAMED(MPI_LOGICAL1), Class::kLogical, Kind::kInt8},
      {NAMED(MPI_LOGICAL2), Class::kLogical, Kind::kInt16},
      {NAMED(MPI_LOGICAL4), Class::kLogical, Kind::kInt32},
      {NAMED(MPI_LOGICAL8), Class::kLogical, Kind::kInt64},
      {NAMED(MPI_LOGICAL16), Class::kLogical, Kind::kInt128},
      {NAMED(MPI_INTEGER1), Class::kFortranInteger, Kind::kInt8},
      {NAMED(MPI_INTEGER2), Class::kFortranInteger, Kind::kInt16},
      {NAMED(MPI_INTEGER4), Class::kFortranInteger, Kind::kInt32},
      {NAMED(MPI_INTEGER8), Class::kFortranInteger, Kind::kInt64},
      {NAMED(MPI_INTEGER16), Class::kFortranInteger, Kind::kInt128},
      {NAMED(MPI_REAL2), Class::kFloatingPoint, Kind::kFloat16},
      {NAMED(MPI_REAL4), Class::kFloatingPoint, Kind::kFloat32},
      {NAMED(MPI_REAL8), Class::kFloatingPoint, Kind::kFloat64},
      {NAMED(MPI_REAL16), Class::kFloatingPoint, Kind::kFloat128},
      {NAMED(MPI_COMPLEX4), Class::kComplex, Kind::kComplex16},
      {NAMED(MPI_COMPLEX8), Class::kComplex, Kind::kComplex32},
      {NAMED(MPI_COMPLEX16), Class::kComplex, Kind::kComplex64},
      {NAMED(MPI_COMPLEX32), Class::kComplex, Kind::kComplex128},
  };
}

struct PairRow {
  MPI_Datatype handle;
  const char* name;
  MPI_Datatype value;
  MPI_Datatype index;
};

std::vector<PairRow> PairRows() {
  return {
      {NAMED(MPI_FLOAT_INT), MPI_FLOAT, MPI_INT},
      {NAMED(MPI_DOUBLE_INT), MPI_DOUBLE, MPI_INT},
      {NAMED(MPI_LONG_INT), MPI_LONG, MPI_INT},
      {NAMED(MPI_2INT), MPI_INT, MPI_INT},
      {NAMED(MPI_SHORT_INT), MPI_SHORT, MPI_INT},
      {NAMED(MPI_LONG_DOUBLE_INT), MPI_LONG_DOUBLE, MPI_INT},
      {NAMED(MPI_2REAL), MPI_REAL, MPI_REAL},
      {NAMED(MPI_2DOUBLE_PRECISION), MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION},
      {NAMED(MPI_2INTEGER), MPI_INTEGER, MPI_INTEGER},
  };
}

#undef NAMED

BasicType MakeSingle(const Row& row) {
  BasicType type;
  type.handle = row.handle;
  type.name = row.name;
  type.type_class = row.type_class;
  type.kind = row.kind;
  type.size_bytes = type.extent_bytes = SizeOf(row.kind);
  type.alignment = AlignmentOf(row.kind);
  type.external_bytes = row.external_bytes != 0 ? row.external_bytes : type.size_bytes;
  return type;
}

// The ABI gives each predefined datatype a number from here on, fewer than kHandles of them.
constexpr uintptr_t kFirstHandle = 0x200;
constexpr size_t kHandles = 0x100;

class Table {
 public:
  Table() {
    const std::vector<Row> singles = SingleRows();
    const std::vector<PairRow> pairs = PairRows();
    types_.reserve(singles.size() + pairs.size());  // what points into it stays valid
    for (const Row& row : singles) {
      Add(MakeSingle(row));
    }
    for (const PairRow& row : pairs) {
      Add(MakePairType(row.handle, row.name, *Find(row.value), *Find(row.index)));
    }
  }

  const BasicType* Find(MPI_Datatype handle) const {
    const uintptr_t place = reinterpret_cast<uintptr_t>(handle) - kFirstHandle;
    return place < kHandles ? by_handle_[place] : nullptr;
  }
  std::span<const BasicType> types() const { return types_; }

 private:
  void Add(const BasicType& type) {
    types_.push_back(type);
    by_handle_[reinterpret_cast<uintptr_t>(type.handle) - kFirstHandle] = &types_.back();
  }

  std::vector<BasicType> types_;
  std::array<const BasicType*, kHandles> by_handle_{};
};

const Table& TheTable() {
  static const Table& table = *new Table();
  return table;
}

}  // namespace

std::span<const BasicType> BasicTypes() { return TheTable().types(); }

const BasicType* FindBasicType(MPI_Datatype handle) { return TheTable().Find(handle); }

BasicType MakePairType(MPI_Datatype handle, const char* name, const BasicType& value,
                       const BasicType& index) {
  const auto round_up = [](int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; };
  BasicType pair;
  pair.handle = handle;
  pair.name = name;
  pair.type_class = Class::kPair;
  pair.kind = value.kind;
  pair.index_kind = index.kind;
  pair.size_bytes = value.size_bytes + index.size_bytes;
  pair.alignment = std::max(value.alignment, index.alignment);
  pair.index_offset = round_up(value.size_bytes, index.alignment);
  pair.extent_bytes = round_up(pair.index_offset + index.size_bytes, pair.alignment);
  pair.external_bytes = value.external_bytes + index.external_bytes;
  pair.value = &value;
  pair.index = &index;
  return pair;
}

}  // namespace ferry::mpi

// The datatypes that no call makes: those with names, and those that only their properties name.
#include "mpi/datatype/basic_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <set>
#include <string>

#include "mpi/datatype/constructors.h"
#include "mpi/datatype/datatype.h"
#include "mpi/datatype/unnamed_types.h"

namespace ferry::mpi {
namespace {

using ::testing::ElementsAre;

struct Expected {
  MPI_Datatype handle;
  const char* name;
  int64_t size_bytes;
  int64_t extent;
  int64_t true_extent;
};

template <typename T>
Expected Single(MPI_Datatype handle, const char* name) {
  return {handle, name, sizeof(T), sizeof(T), sizeof(T)};
}

template <typename Value>
Expected Pair(MPI_Datatype handle, const char* name) {
  struct Both {
    Value value;
    int index;
  };
  return {handle, name, sizeof(Value) + sizeof(int), sizeof(Both),
          offsetof(Both, index) + sizeof(int)};
}

// The sizes of the C types are the compiler's.
TEST(BasicTypeTest, CTypesHaveTheCompilersSizes) {
  const Expected kTypes[] = {
      Single<char>(MPI_CHAR, "MPI_CHAR"),
      Single<signed char>(MPI_SIGNED_CHAR, "MPI_SIGNED_CHAR"),
      Single<unsigned char>(MPI_UNSIGNED_CHAR, "MPI_UNSIGNED_CHAR"),
      Single<char>(MPI_BYTE, "MPI_BYTE"),
      Single<char>(MPI_PACKED, "MPI_PACKED"),
      Single<wchar_t>(MPI_WCHAR, "MPI_WCHAR"),
      Single<short>(MPI_SHORT, "MPI_SHORT"),
      Single<unsigned short>(MPI_UNSIGNED_SHORT, "MPI_UNSIGNED_SHORT"),
      Single<int>(MPI_INT, "MPI_INT"),
      Single<unsigned>(MPI_UNSIGNED, "MPI_UNSIGNED"),
      Single<long>(MPI_LONG, "MPI_LONG"),
      Single<unsigned long>(MPI_UNSIGNED_LONG, "MPI_UNSIGNED_LONG"),
      Single<long long>(MPI_LONG_LONG, "MPI_LONG_LONG"),
      Single<long long>(MPI_LONG_LONG_INT, "MPI_LONG_LONG"),
      Single<unsigned long long>(MPI_UNSIGNED_LONG_LONG, "MPI_UNSIGNED_LONG_LONG"),
      Single<int8_t>(MPI_INT8_T, "MPI_INT8_T"),
      Single<int16_t>(MPI_INT16_T, "MPI_INT16_T"),
      Single<int32_t>(MPI_INT32_T, "MPI_INT32_T"),
      Single<int64_t>(MPI_INT64_T, "MPI_INT64_T"),
      Single<uint8_t>(MPI_UINT8_T, "MPI_UINT8_T"),
      Single<uint16_t>(MPI_UINT16_T, "MPI_UINT16_T"),
      Single<uint32_t>(MPI_UINT32_T, "MPI_UINT32_T"),
      Single<uint64_t>(MPI_UINT64_T, "MPI_UINT64_T"),
      Single<float>(MPI_FLOAT, "MPI_FLOAT"),
      Single<double>(MPI_DOUBLE, "MPI_DOUBLE"),
      Single<long double>(MPI_LONG_DOUBLE, "MPI_LONG_DOUBLE"),
      Single<bool>(MPI_C_BOOL, "MPI_C_BOOL"),
      Single<bool>(MPI_CXX_BOOL, "MPI_CXX_BOOL"),
      Single<std::complex<float>>(MPI_C_COMPLEX, "MPI_C_FLOAT_COMPLEX"),
      Single<std::complex<float>>(MPI_CXX_FLOAT_COMPLEX, "MPI_CXX_FLOAT_COMPLEX"),
      Single<std::complex<double>>(MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX"),
      Single<std::complex<double>>(MPI_CXX_DOUBLE_COMPLEX, "MPI_CXX_DOUBLE_COMPLEX"),
      Single<std::complex<long double>>(MPI_C_LONG_DOUBLE_COMPLEX, "MPI_C_LONG_DOUBLE_COMPLEX"),
      Single<std::complex<long double>>(MPI_CXX_LONG_DOUBLE_COMPLEX, "MPI_CXX_LONG_DOUBLE_COMPLEX"),
      Single<MPI_Aint>(MPI_AINT, "MPI_AINT"),
      Single<MPI_Offset>(MPI_OFFSET, "MPI_OFFSET"),
      Single<MPI_Count>(MPI_COUNT, "MPI_COUNT"),
      Pair<float>(MPI_FLOAT_INT, "MPI_FLOAT_INT"),
      Pair<double>(MPI_DOUBLE_INT, "MPI_DOUBLE_INT"),
      Pair<long>(MPI_LONG_INT, "MPI_LONG_INT"),
      Pair<int>(MPI_2INT, "MPI_2INT"),
      Pair<short>(MPI_SHORT_INT, "MPI_SHORT_INT"),
      Pair<long double>(MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT"),
  };
  for (const Expected& expected : kTypes) {
    SCOPED_TRACE(expected.name);
    const BasicType* const basic = FindBasicType(expected.handle);
    ASSERT_NE(basic, nullptr);
    EXPECT_STREQ(basic->name, expected.name);
    const Ref<Datatype> type = MakeRef<Datatype>(*basic);
    EXPECT_EQ(type->size_bytes(), expected.size_bytes);
    EXPECT_EQ(type->lower_bound(), 0);
    EXPECT_EQ(type->extent(), expected.extent);
    EXPECT_EQ(type->true_lower_bound(), 0);
    EXPECT_EQ(type->true_extent(), expected.true_extent);
    EXPECT_TRUE(type->IsCommitted());
    EXPECT_EQ(type->basic(), basic);
    EXPECT_EQ(type->handle(), expected.handle);
    EXPECT_EQ(type->name(), expected.name);
    EXPECT_EQ(type->contents().combiner, MPI_COMBINER_NAMED);
  }
}

// The ABI's number of a type of fixed size gives its length: bits 3 to 5 are the logarithm (MPI
// 5.0, section 20.3).
TEST(BasicTypeTest, FixedSizesAreThoseInTheHandles) {
  int checked = 0;
  for (const BasicType& type : BasicTypes()) {
    const auto handle = reinterpret_cast<uintptr_t>(type.handle);
    const bool fixed = (handle >= 0x240 && handle < 0x280) || (handle >= 0x2c0 && handle < 0x300);
    if (fixed) {
      EXPECT_EQ(type.size_bytes, int64_t{1} << (handle >> 3 & 7)) << type.name;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 12 + 18);
}

TEST(BasicTypeTest, EachHasItsHandleAndName) {
  std::set<std::string> names;
  std::set<MPI_Datatype> handles;
  for (const BasicType& type : BasicTypes()) {
    names.insert(type.name);
    handles.insert(type.handle);
    EXPECT_EQ(FindBasicType(type.handle), &type) << type.name;
  }
  EXPECT_EQ(names.size(), BasicTypes().size());
  EXPECT_EQ(handles.size(), BasicTypes().size());
}

TEST(BasicTypeTest, OtherHandlesNameNone) {
  EXPECT_EQ(FindBasicType(MPI_DATATYPE_NULL), nullptr);
  EXPECT_EQ(FindBasicType(nullptr), nullptr);
  EXPECT_EQ(FindBasicType(reinterpret_cast<MPI_Datatype>(0x204)), nullptr);
  EXPECT_EQ(FindBasicType(reinterpret_cast<MPI_Datatype>(0x300)), nullptr);
  EXPECT_EQ(FindBasicType(reinterpret_cast<MPI_Datatype>(~uintptr_t{0})), nullptr);
}

TEST(BasicTypeTest, ExternalSizesAreThoseOfExternal32) {
  EXPECT_EQ(FindBasicType(MPI_LONG)->external_bytes, 4);
  EXPECT_EQ(FindBasicType(MPI_UNSIGNED_LONG)->external_bytes, 4);
  EXPECT_EQ(FindBasicType(MPI_LONG_LONG)->external_bytes, 8);
  EXPECT_EQ(FindBasicType(MPI_WCHAR)->external_bytes, 2);
  EXPECT_EQ(FindBasicType(MPI_LONG_DOUBLE)->external_bytes, 16);
  EXPECT_EQ(FindBasicType(MPI_AINT)->external_bytes, 8);
  EXPECT_EQ(FindBasicType(MPI_LONG_INT)->external_bytes, 8);
}

class UnnamedTypesTest : public ::testing::Test {
 protected:
  UnnamedTypesTest() {
    for (const BasicType& basic : BasicTypes()) {
      named_[basic.handle] = MakeRef<Datatype>(basic);
    }
  }
  Datatype& Named(MPI_Datatype handle) { return *named_.at(handle); }
  Datatype* Pair(MPI_Datatype value, MPI_Datatype index) {
    const auto pair = types_.ValueIndex(Named(value), Named(index));
    EXPECT_TRUE(pair.ok());
    return pair.value();
  }

  std::map<MPI_Datatype, Ref<Datatype>> named_;
  UnnamedTypes types_{[this](MPI_Datatype handle) { return named_.at(handle).get(); }};
};

TEST_F(UnnamedTypesTest, PairsWithNamesAreThose) {
  EXPECT_EQ(Pair(MPI_FLOAT, MPI_INT), &Named(MPI_FLOAT_INT));
  EXPECT_EQ(Pair(MPI_INT, MPI_INT), &Named(MPI_2INT));
  EXPECT_EQ(Pair(MPI_LONG_DOUBLE, MPI_INT), &Named(MPI_LONG_DOUBLE_INT));
  EXPECT_EQ(Pair(MPI_REAL, MPI_REAL), &Named(MPI_2REAL));
}

TEST_F(UnnamedTypesTest, OtherPairsAreMadeOnce) {
  Datatype* const pair = Pair(MPI_DOUBLE, MPI_INT64_T);
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(Pair(MPI_DOUBLE, MPI_INT64_T), pair);
  EXPECT_NE(Pair(MPI_DOUBLE, MPI_UINT64_T), pair);
  EXPECT_NE(Pair(MPI_CHAR, MPI_INT), nullptr);
  EXPECT_EQ(pair->size_bytes(), 16);
  EXPECT_TRUE(pair->IsPredefined());
  EXPECT_TRUE(pair->IsCommitted());
  EXPECT_EQ(pair->contents().combiner, MPI_COMBINER_VALUE_INDEX);
  ASSERT_EQ(pair->contents().types.size(), 2U);
  EXPECT_EQ(pair->contents().types[0].get(), &Named(MPI_DOUBLE));
  EXPECT_EQ(pair->contents().types[1].get(), &Named(MPI_INT64_T));
  EXPECT_EQ(pair->handle(), nullptr);
}

TEST_F(UnnamedTypesTest, ThereAreNoPairsWithoutOrderOrIndex) {
  EXPECT_EQ(Pair(MPI_C_DOUBLE_COMPLEX, MPI_INT), nullptr);
  EXPECT_EQ(Pair(MPI_DOUBLE, MPI_FLOAT), nullptr);
  EXPECT_EQ(Pair(MPI_BYTE, MPI_INT), nullptr);
  EXPECT_EQ(Pair(MPI_2INT, MPI_INT), nullptr);
  const Ref<Datatype> derived = MakeContiguous(CountForm::kInt, 1, Named(MPI_INT)).value();
  EXPECT_EQ(types_.ValueIndex(*derived, Named(MPI_INT)).failure().error_class, MPI_ERR_TYPE);
  EXPECT_EQ(types_.ValueIndex(Named(MPI_INT), *derived).failure().error_class, MPI_ERR_TYPE);
}

TEST_F(UnnamedTypesTest, FortranNumbersHaveTheirDigits) {
  const auto size = [&](int combiner, int p, int r) {
    const auto type = types_.Fortran(combiner, p, r);
    return type.ok() ? type.value()->size_bytes() : -1;
  };
  EXPECT_EQ(size(MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, 2), 1);
  EXPECT_EQ(size(MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, 3), 2);
  EXPECT_EQ(size(MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, 9), 4);
  EXPECT_EQ(size(MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, 10), 8);
  EXPECT_EQ(size(MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, 38), 16);
  EXPECT_EQ(size(MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, 39), -1);
  EXPECT_EQ(size(MPI_COMBINER_F90_REAL, 6, MPI_UNDEFINED), 4);
  EXPECT_EQ(size(MPI_COMBINER_F90_REAL, 6, 38), 8);
  EXPECT_EQ(size(MPI_COMBINER_F90_REAL, MPI_UNDEFINED, 308), 16);
  EXPECT_EQ(size(MPI_COMBINER_F90_REAL, 34, 1), -1);
  EXPECT_EQ(size(MPI_COMBINER_F90_REAL, MPI_UNDEFINED, MPI_UNDEFINED), -1);
  EXPECT_EQ(size(MPI_COMBINER_F90_COMPLEX, 15, 307), 16);
  Datatype* const real = types_.Fortran(MPI_COMBINER_F90_REAL, 7, 100).value();
  EXPECT_EQ(types_.Fortran(MPI_COMBINER_F90_REAL, 7, 100).value(), real);
  EXPECT_THAT(real->contents().integers, ElementsAre(7, 100));
  EXPECT_TRUE(real->IsPredefined());
  EXPECT_EQ(real->signature(), Named(MPI_REAL8).signature());
  Datatype* const integer = types_.Fortran(MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, 5).value();
  EXPECT_THAT(integer->contents().integers, ElementsAre(5));
}

TEST_F(UnnamedTypesTest, SizesNameTypes) {
  EXPECT_EQ(TypeOfSize(MPI_TYPECLASS_INTEGER, 4), MPI_INTEGER4);
  EXPECT_EQ(TypeOfSize(MPI_TYPECLASS_REAL, 8), MPI_REAL8);
  EXPECT_EQ(TypeOfSize(MPI_TYPECLASS_COMPLEX, 16), MPI_COMPLEX16);
  EXPECT_EQ(TypeOfSize(MPI_TYPECLASS_INTEGER, 3), MPI_DATATYPE_NULL);
  EXPECT_EQ(TypeOfSize(MPI_TYPECLASS_REAL, 1), MPI_DATATYPE_NULL);
  EXPECT_EQ(TypeOfSize(0, 4), MPI_DATATYPE_NULL);
}

}  // namespace
}  // namespace ferry::mpi

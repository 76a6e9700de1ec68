#include "client/mpi/datatype/unnamed_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/mpi/datatype/constructors.h"

namespace ferry::mpi {
namespace {

using ::testing::ElementsAre;

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

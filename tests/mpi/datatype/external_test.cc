#include "mpi/datatype/external.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <limits>

#include "mpi/datatype/constructors.h"
#include "tests/mpi/datatype/random_type.h"

namespace ferry::mpi {
namespace {

using ::testing::HasSubstr;

using Bytes = std::vector<unsigned char>;

Ref<Datatype> Type(MPI_Datatype handle) { return MakeRef<Datatype>(*FindBasicType(handle)); }

template <typename T>
Bytes External(MPI_Datatype handle, const T& value) {
  const Ref<Datatype> type = Type(handle);
  Bytes external(static_cast<size_t>(type->signature().external_bytes));
  const Failure failure = PackExternal(&value, 1, *type, external.data());
  EXPECT_TRUE(failure.ok()) << failure.text;
  return external;
}

// Encodings that follow from the formats of section 15.5.2.
TEST(ExternalTest, NumbersAreBigEndian) {
  EXPECT_EQ(External(MPI_INT, 0x01020304), (Bytes{1, 2, 3, 4}));
  EXPECT_EQ(External(MPI_SHORT, short{-2}), (Bytes{0xff, 0xfe}));
  EXPECT_EQ(External(MPI_CHAR, 'A'), (Bytes{'A'}));
  EXPECT_EQ(External(MPI_C_BOOL, true), (Bytes{1}));
  EXPECT_EQ(External(MPI_LONG_LONG, 1LL << 40), (Bytes{0, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(External(MPI_FLOAT, 1.0F), (Bytes{0x3f, 0x80, 0, 0}));
  EXPECT_EQ(External(MPI_DOUBLE, -2.0), (Bytes{0xc0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(External(MPI_C_FLOAT_COMPLEX, std::complex<float>(1, -2)),
            (Bytes{0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0}));
}

// A long double has 80 bits here, and the 128 bits of IEEE in the external format.
TEST(ExternalTest, LongDoublesAreQuadruple) {
  Bytes one(16);
  one[0] = 0x3f;
  one[1] = 0xff;
  EXPECT_EQ(External(MPI_LONG_DOUBLE, 1.0L), one);
  Bytes minus_one_and_half = one;
  minus_one_and_half[0] = 0xbf;
  minus_one_and_half[2] = 0x80;
  EXPECT_EQ(External(MPI_LONG_DOUBLE, -1.5L), minus_one_and_half);
  const long double third = 1.0L / 3;
  const Bytes external = External(MPI_LONG_DOUBLE, third);
  long double back = 0;
  UnpackExternal(external.data(), &back, 1, *Type(MPI_LONG_DOUBLE));
  EXPECT_EQ(back, third);
}

TEST(ExternalTest, LongsHaveFourBytes) {
  EXPECT_EQ(External(MPI_LONG, -3L), (Bytes{0xff, 0xff, 0xff, 0xfd}));
  EXPECT_EQ(External(MPI_UNSIGNED_LONG, 0xfffffffdUL), (Bytes{0xff, 0xff, 0xff, 0xfd}));
  EXPECT_EQ(External(MPI_WCHAR, L'\u20ac'), (Bytes{0x20, 0xac}));
  for (const long value : {-3L, 0L, (1L << 31) - 1, -(1L << 31)}) {
    const Bytes external = External(MPI_LONG, value);
    long back = 1;
    UnpackExternal(external.data(), &back, 1, *Type(MPI_LONG));
    EXPECT_EQ(back, value);
  }
  unsigned long unsigned_back = 0;
  UnpackExternal(External(MPI_UNSIGNED_LONG, 0xfffffffdUL).data(), &unsigned_back, 1,
                 *Type(MPI_UNSIGNED_LONG));
  EXPECT_EQ(unsigned_back, 0xfffffffdUL);
}

TEST(ExternalTest, WhatDoesNotFitIsRefused) {
  Bytes external(8);
  for (const long value : {1L << 31, -(1L << 31) - 1, std::numeric_limits<long>::min()}) {
    const Failure failure = PackExternal(&value, 1, *Type(MPI_LONG), external.data());
    EXPECT_EQ(failure.error_class, MPI_ERR_CONVERSION);
    EXPECT_THAT(failure.text, HasSubstr("MPI_LONG"));
  }
  const unsigned long large = 1UL << 32;
  EXPECT_EQ(PackExternal(&large, 1, *Type(MPI_UNSIGNED_LONG), external.data()).error_class,
            MPI_ERR_CONVERSION);
  const wchar_t rare = 0x1f600;
  EXPECT_EQ(PackExternal(&rare, 1, *Type(MPI_WCHAR), external.data()).error_class,
            MPI_ERR_CONVERSION);
}

TEST(ExternalTest, PairsAreTheirNumbers) {
  struct {
    long value;
    int index;
  } pairs[2] = {{1, 2}, {-1, 3}};
  const Ref<Datatype> type = Type(MPI_LONG_INT);
  ASSERT_EQ(type->signature().external_bytes, 8);
  Bytes external(16);
  ASSERT_TRUE(PackExternal(pairs, 2, *type, external.data()).ok());
  EXPECT_EQ(external, (Bytes{0, 0, 0, 1, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 3}));
}

// The data is longer than a block, of mixed types, with gaps.
TEST(ExternalTest, StructuresKeepTheirOrder) {
  struct Item {
    double d;
    char c;
    short s;
    long l;
  };
  const Ref<Datatype> d = Type(MPI_DOUBLE);
  const Ref<Datatype> c = Type(MPI_CHAR);
  const Ref<Datatype> s = Type(MPI_SHORT);
  const Ref<Datatype> l = Type(MPI_LONG);
  const Ref<Datatype> type =
      MakeStruct(CountForm::kInt, {1, 1, 1, 1},
                 {offsetof(Item, l), offsetof(Item, c), offsetof(Item, s), offsetof(Item, d)},
                 {l.get(), c.get(), s.get(), d.get()})
          .value();
  ASSERT_EQ(type->extent(), static_cast<int64_t>(sizeof(Item)));
  ASSERT_EQ(type->signature().external_bytes, 4 + 1 + 2 + 8);
  std::vector<Item> items(1000);
  for (int i = 0; i < 1000; ++i) {
    items[static_cast<size_t>(i)] = {i * 0.5, static_cast<char>(i), static_cast<short>(-i), -i};
  }
  Bytes external(15 * items.size() + 1, 0x77);
  ASSERT_TRUE(PackExternal(items.data(), 1000, *type, external.data()).ok());
  EXPECT_EQ(external.back(), 0x77);
  EXPECT_EQ(Bytes(external.begin() + 15, external.begin() + 30),
            (Bytes{0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0x3f, 0xe0, 0, 0, 0, 0, 0, 0}));
  std::vector<Item> back(1000);
  UnpackExternal(external.data(), back.data(), 1000, *type);
  for (size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(back[i].d, items[i].d);
    ASSERT_EQ(back[i].c, items[i].c);
    ASSERT_EQ(back[i].s, items[i].s);
    ASSERT_EQ(back[i].l, items[i].l);
  }
}

// Random types, except those whose values may not fit: unpacking gives back the packed values.
TEST(ExternalTest, RandomTypesComeBack) {
  RandomTypes types(5);
  constexpr int64_t kReach = 4 * RandomTypes::kMaxDistance;
  int checked = 0;
  for (int i = 0; i < 2000; ++i) {
    const TypeSample sample = types.Next(3);
    const BasicType* const basic = sample.type->basic();
    if (basic == nullptr || basic->external_bytes != basic->size_bytes ||
        basic->kind == NumberKind::kLongDouble || basic->kind == NumberKind::kComplexLongDouble) {
      continue;
    }
    ++checked;
    const std::vector<int64_t> places = sample.map.PackedBytes(2);
    std::vector<char> memory(2 * kReach);
    for (const int64_t place : places) {
      memory[static_cast<size_t>(kReach + place)] = static_cast<char>(types.Between(-128, 127));
    }
    Bytes external(places.size());
    ASSERT_TRUE(PackExternal(memory.data() + kReach, 2, *sample.type, external.data()).ok());
    std::vector<char> back(2 * kReach);
    UnpackExternal(external.data(), back.data() + kReach, 2, *sample.type);
    ASSERT_EQ(back, memory);
  }
  EXPECT_GT(checked, 500);
}

}  // namespace
}  // namespace ferry::mpi

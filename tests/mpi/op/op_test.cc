#include "mpi/op/op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "mpi/datatype/constructors.h"
#include "tests/support/machine_floats.h"

namespace ferry::mpi {
namespace {

using ::testing::HasSubstr;

Ref<Datatype> Type(MPI_Datatype handle) { return MakeRef<Datatype>(*FindBasicType(handle)); }

Ref<Op> Predefined(MPI_Op handle) {
  for (const PredefinedOp& op : PredefinedOps()) {
    if (op.handle == handle) {
      return MakeRef<Op>(op.kind, op.handle, op.name);
    }
  }
  return nullptr;
}

// ---- the result of each operation, computed in another way than by the kernels ----

// Of elements of one type, wherever they lie; without the type, so that one table serves all.
using Computation = void (*)(const void* a, const void* b, void* result);
using Expected = std::map<MPI_Op, Computation>;

template <typename T>
T Load(const void* from) {
  T value;
  std::memcpy(static_cast<void*>(&value), from, sizeof(T));
  return value;
}

// `function` computes a T from two.
template <typename T, typename Function>
Expected::value_type By(MPI_Op op, Function /*function*/) {
  return {op, [](const void* a, const void* b, void* result) {
            const T value = Function{}(Load<T>(a), Load<T>(b));
            std::memcpy(result, static_cast<const void*>(&value), sizeof(T));
          }};
}

template <typename T>
T Wrap(__int128 value) {
  T result;
  std::memcpy(&result, &value, sizeof(T));  // the low bytes: little-endian
  return result;
}

template <typename T>
Expected OrderOf() {
  return {By<T>(MPI_MIN, [](T a, T b) { return std::min(a, b); }),
          By<T>(MPI_MAX, [](T a, T b) { return std::max(a, b); })};
}

template <typename T>
Expected LogicOf() {
  return {By<T>(MPI_LAND, [](T a, T b) { return T(a != 0 ? (b != 0 ? 1 : 0) : 0); }),
          By<T>(MPI_LOR, [](T a, T b) { return T(a != 0 ? 1 : (b != 0 ? 1 : 0)); }),
          By<T>(MPI_LXOR, [](T a, T b) { return T((a != 0 ? 1 : 0) + (b != 0 ? 1 : 0) == 1); })};
}

template <typename T>
Expected BitsOf() {
  return {By<T>(MPI_BAND, [](T a, T b) { return T(~(~a | ~b)); }),
          By<T>(MPI_BOR, [](T a, T b) { return T(~(~a & ~b)); }),
          By<T>(MPI_BXOR, [](T a, T b) { return T((a & ~b) | (~a & b)); })};
}

template <typename T>
Expected IntegerSumsOf() {
  using Big = unsigned __int128;
  return {By<T>(MPI_SUM, [](T a, T b) { return Wrap<T>(__int128(Big(a) + Big(b))); }),
          By<T>(MPI_PROD, [](T a, T b) { return Wrap<T>(__int128(Big(a) * Big(b))); })};
}

template <typename T>
Expected SumsOf() {
  return {By<T>(MPI_SUM, [](T a, T b) { return T(a + b); }),
          By<T>(MPI_PROD, [](T a, T b) { return T(a * b); })};
}

Expected All(std::initializer_list<Expected> sets) {
  Expected all;
  for (const Expected& set : sets) {
    all.insert(set.begin(), set.end());
  }
  return all;
}

template <typename T>
Expected CInteger() {
  return All({IntegerSumsOf<T>(), OrderOf<T>(), LogicOf<T>(), BitsOf<T>()});
}
template <typename T>
Expected FortranInteger() {
  return All({IntegerSumsOf<T>(), OrderOf<T>(), BitsOf<T>()});
}
template <typename T>
Expected Floating() {
  return All({SumsOf<T>(), OrderOf<T>()});
}

template <typename V, typename I>
struct Located {
  V value;
  I index;
};
template <typename T>
T Chosen(T a, T b, bool a_first) {
  if (a.value == b.value) {
    return T{a.value, std::min(a.index, b.index)};
  }
  return a_first ? a : b;
}
template <typename V, typename I>
Expected Locations() {
  using T = Located<V, I>;
  return {By<T>(MPI_MINLOC, [](T a, T b) { return Chosen(a, b, a.value < b.value); }),
          By<T>(MPI_MAXLOC, [](T a, T b) { return Chosen(a, b, a.value > b.value); })};
}

// ---- values ----

class Values {
 public:
  template <typename T>
  void Fill(T& value) {
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, __int128>) {
      Integer(value);
    } else {
      value = static_cast<T>(static_cast<int>(random_() % 2001) - 1000) / static_cast<T>(8);
    }
  }
  template <typename T>
  void Fill(std::complex<T>& value) {
    T parts[2];
    Fill(parts[0]);
    Fill(parts[1]);
    value = {parts[0], parts[1]};
  }
  template <typename V, typename I>
  void Fill(Located<V, I>& value) {
    value.value = static_cast<V>(random_() % 3);  // ties are frequent
    value.index = static_cast<I>(random_() % 100);
  }

 private:
  template <typename T>
  void Integer(T& value) {
    switch (random_() % 4) {
      case 0:
        value = static_cast<T>(random_() % 3);
        break;
      case 1:
        value = std::numeric_limits<T>::max();
        break;
      case 2:
        value = std::numeric_limits<T>::min();
        break;
      default:
        value = static_cast<T>(random_());
    }
  }
  std::mt19937_64 random_{7};
};

template <typename T>
bool Same(const T& a, const T& b) {
  return a == b;
}
template <typename V, typename I>
bool Same(const Located<V, I>& a, const Located<V, I>& b) {
  return a.value == b.value && a.index == b.index;
}

// An odd count, so that a vectorised loop has a rest; the data is a byte off any alignment.
constexpr size_t kCount = 133;
constexpr size_t kOffset = 1;

template <typename T>
class Buffer {
 public:
  explicit Buffer(Values& values) {
    for (size_t i = 0; i < kCount; ++i) {
      T value{};
      values.Fill(value);
      Set(i, value);
    }
  }
  void* data() { return bytes_.data() + kOffset; }
  T Get(size_t i) const { return Load<T>(At(i)); }
  const char* At(size_t i) const { return bytes_.data() + kOffset + i * sizeof(T); }
  void Set(size_t i, const T& value) {
    std::memcpy(bytes_.data() + kOffset + i * sizeof(T), static_cast<const void*>(&value),
                sizeof(T));
  }
  bool EdgesAreWhole() const { return bytes_.front() == '#' && bytes_.back() == '#'; }

 private:
  std::vector<char> bytes_ = std::vector<char>(kCount * sizeof(T) + 2 * kOffset, '#');
};

template <typename T>
void ExpectResults(Computation expected, const Buffer<T>& a, const Buffer<T>& b,
                   const Buffer<T>& out) {
  for (size_t i = 0; i < kCount; ++i) {
    T result{};
    expected(a.At(i), b.At(i), &result);
    ASSERT_TRUE(Same(out.Get(i), result)) << "element " << i;
  }
  EXPECT_TRUE(out.EdgesAreWhole());
}

template <typename T>
void CheckOp(const Op& op, const Datatype& type, Computation expected) {
  static Values values;
  const Buffer<T> a(values);
  const Buffer<T> b(values);
  Buffer<T> out(values);
  op.Combine(Buffer<T>(a).data(), Buffer<T>(b).data(), out.data(), kCount, type);
  ExpectResults(expected, a, b, out);
  Buffer<T> inout = b;
  op.Apply(Buffer<T>(a).data(), inout.data(), kCount, type);
  ExpectResults(expected, a, b, inout);
  Buffer<T> out_and_a = a;
  op.Combine(out_and_a.data(), Buffer<T>(b).data(), out_and_a.data(), kCount, type);
  ExpectResults(expected, a, b, out_and_a);
}

class OpTest : public ::testing::Test {
 protected:
  // All predefined operations on one type: those in the table give the right result, the others are
  // refused by name.
  template <typename T>
  void CheckType(MPI_Datatype handle, const Expected& expected) {
    const Ref<Datatype> type = Type(handle);
    SCOPED_TRACE(type->name());
    EXPECT_TRUE(checked_.insert(handle).second) << "twice";
    for (const PredefinedOp& predefined : PredefinedOps()) {
      SCOPED_TRACE(predefined.name);
      const Ref<Op> op = Predefined(predefined.handle);
      const Failure failure = op->Check(*type);
      const auto found = expected.find(predefined.handle);
      if (found == expected.end()) {
        ASSERT_EQ(failure.error_class, MPI_ERR_OP);
        EXPECT_THAT(failure.text, HasSubstr(std::string(predefined.name)));
        continue;
      }
      ASSERT_TRUE(failure.ok()) << failure.text;
      CheckOp<T>(*op, *type, found->second);
    }
  }

  std::set<MPI_Datatype> checked_;
};

TEST_F(OpTest, AllTypesGiveWhatTheStandardSays) {
  CheckType<short>(MPI_SHORT, CInteger<short>());
  CheckType<int>(MPI_INT, CInteger<int>());
  CheckType<long>(MPI_LONG, CInteger<long>());
  CheckType<long long>(MPI_LONG_LONG, CInteger<long long>());
  CheckType<unsigned short>(MPI_UNSIGNED_SHORT, CInteger<unsigned short>());
  CheckType<unsigned>(MPI_UNSIGNED, CInteger<unsigned>());
  CheckType<unsigned long>(MPI_UNSIGNED_LONG, CInteger<unsigned long>());
  CheckType<unsigned long long>(MPI_UNSIGNED_LONG_LONG, CInteger<unsigned long long>());
  CheckType<char>(MPI_CHAR, CInteger<char>());  // beyond the standard, as the logic of MPI_AINT
  CheckType<signed char>(MPI_SIGNED_CHAR, CInteger<signed char>());
  CheckType<unsigned char>(MPI_UNSIGNED_CHAR, CInteger<unsigned char>());
  CheckType<int8_t>(MPI_INT8_T, CInteger<int8_t>());
  CheckType<int16_t>(MPI_INT16_T, CInteger<int16_t>());
  CheckType<int32_t>(MPI_INT32_T, CInteger<int32_t>());
  CheckType<int64_t>(MPI_INT64_T, CInteger<int64_t>());
  CheckType<uint8_t>(MPI_UINT8_T, CInteger<uint8_t>());
  CheckType<uint16_t>(MPI_UINT16_T, CInteger<uint16_t>());
  CheckType<uint32_t>(MPI_UINT32_T, CInteger<uint32_t>());
  CheckType<uint64_t>(MPI_UINT64_T, CInteger<uint64_t>());
  CheckType<int>(MPI_INTEGER, FortranInteger<int>());
  CheckType<int8_t>(MPI_INTEGER1, FortranInteger<int8_t>());
  CheckType<int16_t>(MPI_INTEGER2, FortranInteger<int16_t>());
  CheckType<int32_t>(MPI_INTEGER4, FortranInteger<int32_t>());
  CheckType<int64_t>(MPI_INTEGER8, FortranInteger<int64_t>());
  CheckType<__int128>(MPI_INTEGER16, FortranInteger<__int128>());
  CheckType<MPI_Aint>(MPI_AINT, CInteger<MPI_Aint>());
  CheckType<MPI_Offset>(MPI_OFFSET, CInteger<MPI_Offset>());
  CheckType<MPI_Count>(MPI_COUNT, CInteger<MPI_Count>());
  CheckType<float>(MPI_FLOAT, Floating<float>());
  CheckType<double>(MPI_DOUBLE, Floating<double>());
  CheckType<long double>(MPI_LONG_DOUBLE, Floating<long double>());
  CheckType<float>(MPI_REAL, Floating<float>());
  CheckType<double>(MPI_DOUBLE_PRECISION, Floating<double>());
  CheckType<float>(MPI_REAL4, Floating<float>());
  CheckType<double>(MPI_REAL8, Floating<double>());
  CheckType<tests::Float128>(MPI_REAL16, Floating<tests::Float128>());
  CheckType<std::complex<float>>(MPI_C_FLOAT_COMPLEX, SumsOf<std::complex<float>>());
  CheckType<std::complex<double>>(MPI_C_DOUBLE_COMPLEX, SumsOf<std::complex<double>>());
  CheckType<std::complex<long double>>(MPI_C_LONG_DOUBLE_COMPLEX,
                                       SumsOf<std::complex<long double>>());
  CheckType<std::complex<float>>(MPI_CXX_FLOAT_COMPLEX, SumsOf<std::complex<float>>());
  CheckType<std::complex<double>>(MPI_CXX_DOUBLE_COMPLEX, SumsOf<std::complex<double>>());
  CheckType<std::complex<long double>>(MPI_CXX_LONG_DOUBLE_COMPLEX,
                                       SumsOf<std::complex<long double>>());
  CheckType<std::complex<float>>(MPI_COMPLEX, SumsOf<std::complex<float>>());
  CheckType<std::complex<double>>(MPI_DOUBLE_COMPLEX, SumsOf<std::complex<double>>());
  CheckType<std::complex<float>>(MPI_COMPLEX8, SumsOf<std::complex<float>>());
  CheckType<std::complex<double>>(MPI_COMPLEX16, SumsOf<std::complex<double>>());
  CheckType<std::complex<tests::Float128>>(MPI_COMPLEX32, SumsOf<std::complex<tests::Float128>>());
  CheckType<uint8_t>(MPI_C_BOOL, LogicOf<uint8_t>());
  CheckType<uint8_t>(MPI_CXX_BOOL, LogicOf<uint8_t>());
  CheckType<int>(MPI_LOGICAL, LogicOf<int>());
  CheckType<int8_t>(MPI_LOGICAL1, LogicOf<int8_t>());
  CheckType<int16_t>(MPI_LOGICAL2, LogicOf<int16_t>());
  CheckType<int32_t>(MPI_LOGICAL4, LogicOf<int32_t>());
  CheckType<int64_t>(MPI_LOGICAL8, LogicOf<int64_t>());
  CheckType<__int128>(MPI_LOGICAL16, LogicOf<__int128>());
  CheckType<uint8_t>(MPI_BYTE, BitsOf<uint8_t>());
  CheckType<Located<float, int>>(MPI_FLOAT_INT, Locations<float, int>());
  CheckType<Located<double, int>>(MPI_DOUBLE_INT, Locations<double, int>());
  CheckType<Located<long, int>>(MPI_LONG_INT, Locations<long, int>());
  CheckType<Located<int, int>>(MPI_2INT, Locations<int, int>());
  CheckType<Located<short, int>>(MPI_SHORT_INT, Locations<short, int>());
  CheckType<Located<long double, int>>(MPI_LONG_DOUBLE_INT, Locations<long double, int>());
  CheckType<Located<float, float>>(MPI_2REAL, Locations<float, float>());
  CheckType<Located<double, double>>(MPI_2DOUBLE_PRECISION, Locations<double, double>());
  CheckType<Located<int, int>>(MPI_2INTEGER, Locations<int, int>());
  for (const MPI_Datatype none : {MPI_WCHAR, MPI_PACKED, MPI_CHARACTER}) {
    CheckType<char>(none, {});
  }
#ifdef FERRY_TEST_HAS_FLOAT16
  CheckType<tests::Float16>(MPI_REAL2, Floating<tests::Float16>());
  using Complex = Located<tests::Float16, tests::Float16>;
  CheckType<Complex>(
      MPI_COMPLEX4,
      {By<Complex>(
           MPI_SUM,
           [](Complex a, Complex b) {
             return Complex{tests::Float16(a.value + b.value), tests::Float16(a.index + b.index)};
           }),
       By<Complex>(MPI_PROD, [](Complex a, Complex b) {
         return Complex{tests::Float16(a.value * b.value - a.index * b.index),
                        tests::Float16(a.value * b.index + a.index * b.value)};
       })});
  EXPECT_EQ(checked_.size(), BasicTypes().size());
#endif
}

// Pairs that have no name: MPI_Type_get_value_index.
TEST_F(OpTest, AnyOrderedValueHasALocation) {
  const BasicType pair =
      MakePairType(nullptr, "", *FindBasicType(MPI_INT8_T), *FindBasicType(MPI_UINT64_T));
  const Ref<Datatype> type = MakeRef<Datatype>(pair);
  EXPECT_EQ(type->size_bytes(), 9);
  EXPECT_EQ(type->extent(), 16);
  for (const auto& [handle, expected] : Locations<int8_t, uint64_t>()) {
    const Ref<Op> op = Predefined(handle);
    ASSERT_TRUE(op->Check(*type).ok());
    CheckOp<Located<int8_t, uint64_t>>(*op, *type, expected);
  }
  const BasicType complex =
      MakePairType(nullptr, "", *FindBasicType(MPI_C_COMPLEX), *FindBasicType(MPI_INT));
  EXPECT_EQ(Predefined(MPI_MINLOC)->Check(*MakeRef<Datatype>(complex)).error_class, MPI_ERR_OP);
}

// The buffer may end behind the last element's data.
TEST_F(OpTest, PairsLeaveTheirGapsAlone) {
  const Ref<Datatype> type = Type(MPI_SHORT_INT);
  char a[16] = {};
  char b[16];
  std::memset(b, 0x55, sizeof(b));
  Predefined(MPI_MINLOC)->Apply(a, b, 2, *type);
  const std::string expected("\0\0\x55\x55\0\0\0\0\0\0\x55\x55\0\0\0\0", 16);
  EXPECT_EQ(std::string(b, 16), expected);
  const Ref<Datatype> wide = Type(MPI_DOUBLE_INT);
  const std::vector<char> in(28);
  std::vector<char> inout(28, 0x55);  // tight: AddressSanitizer reports any byte more
  Predefined(MPI_MAXLOC)->Apply(in.data(), inout.data(), 2, *wide);
  EXPECT_EQ(inout[12], 0x55);
}

TEST_F(OpTest, DerivedTypesAreRefusedByPredefinedOps) {
  const Ref<Datatype> type = MakeContiguous(CountForm::kInt, 2, *Type(MPI_INT)).value();
  const Failure failure = Predefined(MPI_SUM)->Check(*type);
  EXPECT_EQ(failure.error_class, MPI_ERR_OP);
  EXPECT_THAT(failure.text, HasSubstr("MPI_SUM"));
  type->set_name("two ints");
  EXPECT_THAT(Predefined(MPI_SUM)->Check(*type).text, HasSubstr("two ints"));
}

TEST_F(OpTest, MismatchesNameOpAndType) {
  const Failure failure = Predefined(MPI_BAND)->Check(*Type(MPI_DOUBLE));
  EXPECT_EQ(failure.error_class, MPI_ERR_OP);
  EXPECT_EQ(failure.text, "op MPI_BAND is not defined for MPI_DOUBLE");
}

TEST_F(OpTest, AccumulateOpsCopyOrKeep) {
  const Ref<Datatype> type = Type(MPI_INT);
  const int a[2] = {1, 2};
  const int b[2] = {3, 4};
  int out[2] = {};
  Predefined(MPI_REPLACE)->Combine(a, b, out, 2, *type);
  EXPECT_THAT(out, ::testing::ElementsAre(1, 2));
  Predefined(MPI_NO_OP)->Combine(a, b, out, 2, *type);
  EXPECT_THAT(out, ::testing::ElementsAre(3, 4));
}

TEST_F(OpTest, AllButAccumulateOpsCommute) {
  for (const PredefinedOp& op : PredefinedOps()) {
    EXPECT_EQ(Predefined(op.handle)->IsCommutative(),
              op.handle != MPI_REPLACE && op.handle != MPI_NO_OP)
        << op.name;
  }
}

// ---- a program's own operations ----

// in - inout: neither commutative nor symmetric, so that a swap shows.
void Subtract(void* in, void* inout, int* length, MPI_Datatype* type) {
  EXPECT_EQ(*type, MPI_INT);
  for (int i = 0; i < *length; ++i) {
    static_cast<int*>(inout)[i] = static_cast<int*>(in)[i] - static_cast<int*>(inout)[i];
  }
}

void SubtractLarge(void* in, void* inout, MPI_Count* length, MPI_Datatype* type) {
  int count = static_cast<int>(*length);
  Subtract(in, inout, &count, type);
}

TEST_F(OpTest, FunctionsAreCalledInOrder) {
  const Ref<Datatype> type = Type(MPI_INT);
  for (const Ref<Op>& op : {MakeRef<Op>(&Subtract, false), MakeRef<Op>(&SubtractLarge, false)}) {
    EXPECT_FALSE(op->IsPredefined());
    EXPECT_FALSE(op->IsCommutative());
    EXPECT_TRUE(op->Check(*type).ok());
    const int a[3] = {10, 20, 30};
    int b[3] = {1, 2, 3};
    int out[3] = {};
    op->Combine(a, b, out, 3, *type);
    EXPECT_THAT(out, ::testing::ElementsAre(9, 18, 27));
    EXPECT_THAT(b, ::testing::ElementsAre(1, 2, 3));
    op->Apply(a, b, 3, *type);
    EXPECT_THAT(b, ::testing::ElementsAre(9, 18, 27));
    op->Apply(nullptr, nullptr, 0, *type);
  }
  EXPECT_TRUE(MakeRef<Op>(&Subtract, true)->IsCommutative());
}

// A datatype without its own handle is lent one for the call.
int g_lent;
void ExpectLent(void* /*in*/, void* /*inout*/, int* /*length*/, MPI_Datatype* type) {
  EXPECT_EQ(*type, reinterpret_cast<MPI_Datatype>(0x5000));
  EXPECT_EQ(g_lent, 1);
}

TEST_F(OpTest, HandlesAreLentToFunctions) {
  const HandleLender lender = {[](const Datatype&) {
                                 ++g_lent;
                                 return reinterpret_cast<MPI_Datatype>(0x5000);
                               },
                               [](MPI_Datatype handle) {
                                 EXPECT_EQ(handle, reinterpret_cast<MPI_Datatype>(0x5000));
                                 --g_lent;
                               }};
  const Ref<Datatype> type = MakeContiguous(CountForm::kInt, 1, *Type(MPI_INT)).value();
  int a = 1;
  int b = 2;
  MakeRef<Op>(&ExpectLent, true, lender)->Apply(&a, &b, 1, *type);
  EXPECT_EQ(g_lent, 0);
}

int64_t g_elements;
int g_calls;
void CountElements(void* in, void* inout, int* length, MPI_Datatype* /*type*/) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(in), 4096 + 2 * static_cast<uintptr_t>(g_elements));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(inout), 8192 + 2 * static_cast<uintptr_t>(g_elements));
  g_elements += *length;
  ++g_calls;
}

// A function whose length is an int gets many elements in several calls.
TEST_F(OpTest, LongBuffersAreCutForFunctionsOfInt) {
  const Ref<Datatype> type = Type(MPI_SHORT);
  const Ref<Op> op = MakeRef<Op>(&CountElements, true);
  const int64_t count = 5'000'000'000;
  op->Apply(reinterpret_cast<void*>(4096), reinterpret_cast<void*>(8192), count, *type);
  EXPECT_EQ(g_elements, count);
  EXPECT_EQ(g_calls, 3);
}

void AddEverySecond(void* in, void* inout, int* length, MPI_Datatype* /*type*/) {
  for (int i = 0; i < 4 * *length; i += 2) {
    static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
  }
}

TEST_F(OpTest, FunctionsTakeDerivedTypes) {
  const Ref<Datatype> vector = MakeVector(CountForm::kInt, 2, 1, 2, *Type(MPI_INT)).value();
  const Ref<Datatype> type = MakeResized(CountForm::kInt, 0, 16, *vector).value();
  const Ref<Op> op = MakeRef<Op>(&AddEverySecond, true);
  const int a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const int b[8] = {10, 20, 30, 40, 50, 60, 70, 80};
  int out[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  op->Combine(a, b, out, 2, *type);
  EXPECT_THAT(out, ::testing::ElementsAre(11, -1, 33, -1, 55, -1, 77, -1));
}

}  // namespace
}  // namespace ferry::mpi

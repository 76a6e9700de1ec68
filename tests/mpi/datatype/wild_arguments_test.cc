// Constructors with arguments of any size and sign: each makes a datatype whose numbers agree with
// each other, or says why not. Sanitizers watch.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "mpi/datatype/constructors.h"

namespace ferry::mpi {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

class WildArgumentsTest : public ::testing::Test {
 protected:
  int64_t Number() {
    constexpr int64_t kEdges[] = {0,        1,        2,        3,        -1,
                                  -2,       kMax,     kMin,     kMax - 1, kMin + 1,
                                  kMax / 2, kMin / 2, kMax / 8, 1LL << 31};
    switch (random_() % 4) {
      case 0:
        return static_cast<int64_t>(random_());
      case 1:
        return static_cast<int64_t>(random_() % 200) - 100;
      case 2:
        return static_cast<int64_t>(random_() % 4);
      default:
        return kEdges[random_() % std::size(kEdges)];
    }
  }
  Counts Numbers(size_t count) {
    Counts numbers(count);
    for (int64_t& number : numbers) {
      number = Number();
    }
    return numbers;
  }
  Datatype& Any() { return *types_[random_() % types_.size()]; }

  MadeDatatype Make() {
    const CountForm form = random_() % 2 == 0 ? CountForm::kInt : CountForm::kLarge;
    const size_t count = random_() % 5;
    switch (random_() % 12) {
      case 0:
        return MakeContiguous(form, Number(), Any());
      case 1:
        return MakeVector(form, Number(), Number(), Number(), Any());
      case 2:
        return MakeHvector(form, Number(), Number(), Number(), Any());
      case 3:
        return MakeIndexed(form, Numbers(count), Numbers(count), Any());
      case 4:
        return MakeHindexed(form, Numbers(count), Numbers(count), Any());
      case 5:
        return MakeIndexedBlock(form, Number(), Numbers(count), Any());
      case 6:
        return MakeHindexedBlock(form, Number(), Numbers(count), Any());
      case 7:
        return Struct(form, count);
      case 8:
        return MakeSubarray(form, Numbers(count), Numbers(count), Numbers(count), Order(), Any());
      case 9:
        return Darray(form, count);
      case 10:
        return MakeResized(form, Number(), Number(), Any());
      default:
        return MakeDuplicate(Any());
    }
  }

  std::mt19937_64 random_{3};
  std::vector<Ref<Datatype>> types_;

 private:
  int Order() {
    const int orders[] = {MPI_ORDER_C, MPI_ORDER_FORTRAN, 77};
    return orders[random_() % 8 == 0 ? 2 : random_() % 2];
  }
  MadeDatatype Struct(CountForm form, size_t count) {
    std::vector<Datatype*> types(count);
    for (Datatype*& type : types) {
      type = &Any();
    }
    return MakeStruct(form, Numbers(count), Numbers(count), types);
  }
  MadeDatatype Darray(CountForm form, size_t count) {
    DarrayArguments arguments;
    arguments.order = Order();
    arguments.gsizes = Numbers(count);
    arguments.size = 1;
    for (size_t i = 0; i < count; ++i) {
      const int64_t distributions[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
                                       MPI_DISTRIBUTE_NONE, Number()};
      arguments.distributions.push_back(distributions[random_() % 4]);
      arguments.arguments.push_back(random_() % 2 == 0 ? int64_t{MPI_DISTRIBUTE_DFLT_DARG}
                                                       : Number());
      arguments.psizes.push_back(random_() % 2 == 0 ? 1 : Number());
      if (__builtin_mul_overflow(arguments.size, arguments.psizes.back(), &arguments.size)) {
        arguments.size = Number();
      }
    }
    arguments.rank = random_() % 2 == 0 ? 0 : Number();
    return MakeDarray(form, arguments, Any());
  }
};

void ExpectSense(const Datatype& type) {
  ASSERT_GE(type.size_bytes(), 0);
  ASSERT_GE(type.true_extent(), 0);
  ASSERT_GE(type.signature().elements, 0);
  ASSERT_LE(type.signature().elements, type.size_bytes());
  ASSERT_EQ(type.signature().elements == 0, type.size_bytes() == 0);
  ASSERT_EQ(type.ElementCount(type.size_bytes()), type.size_bytes() == 0 ? 0 : 1);
  ASSERT_EQ(type.BasicElementCount(type.size_bytes()), type.signature().elements);
  ASSERT_EQ(type.BytesOfBasicElements(type.signature().elements), type.size_bytes());
  const Bounds span = type.Span(1);
  ASSERT_EQ(span.high - span.low, type.size_bytes() == 0 ? 0 : type.true_extent());
  // The first and last packed bytes lie within the type's true bounds.
  for (const int64_t at : {int64_t{0}, type.size_bytes() - 1}) {
    if (type.size_bytes() == 0) {
      break;
    }
    type.ForEachRun(1, at, 1, [&](int64_t displacement, int64_t length) {
      EXPECT_EQ(length, 1);
      EXPECT_GE(displacement, span.low);
      EXPECT_LT(displacement, span.high);
    });
  }
}

TEST_F(WildArgumentsTest, MakeSenseOrFail) {
  int made = 0;
  int refused = 0;
  for (int round = 0; round < 100000; ++round) {
    if (types_.size() < 8 || types_.size() > 200) {
      types_.clear();
      for (const MPI_Datatype handle : {MPI_INT, MPI_DOUBLE, MPI_CHAR, MPI_SHORT_INT}) {
        types_.push_back(MakeRef<Datatype>(*FindBasicType(handle)));
      }
      for (int i = 0; i < 4; ++i) {  // small ones, as components for others
        types_.push_back(MakeVector(CountForm::kInt, 3, 2, 4, *types_[random_() % 4]).value());
      }
    }
    MadeDatatype result = Make();
    if (!result.ok()) {
      ++refused;
      ASSERT_TRUE(result.failure().error_class == MPI_ERR_COUNT ||
                  result.failure().error_class == MPI_ERR_ARG);
      ASSERT_FALSE(result.failure().text.empty());
      continue;
    }
    ++made;
    types_.push_back(std::move(result).value());
    ASSERT_NO_FATAL_FAILURE(ExpectSense(*types_.back())) << "round " << round;
    const Result<int64_t> bytes = types_.back()->PackedBytes(Number());
    ASSERT_TRUE(!bytes.ok() || bytes.value() >= 0);
  }
  EXPECT_GT(made, 10000);
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace ferry::mpi

#include "mpi/datatype/constructors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace ferry::mpi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr CountForm kInt = CountForm::kInt;
constexpr CountForm kLarge = CountForm::kLarge;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

Datatype& Named(MPI_Datatype handle) {
  static std::vector<Ref<Datatype>> types;
  for (const Ref<Datatype>& type : types) {
    if (type->handle() == handle) {
      return *type;
    }
  }
  types.push_back(MakeRef<Datatype>(*FindBasicType(handle)));
  return *types.back();
}

Ref<Datatype> Take(MadeDatatype made) {
  EXPECT_TRUE(made.ok()) << made.failure().text;
  return std::move(made).value();
}

using Runs = std::vector<std::pair<int64_t, int64_t>>;

Runs RunsOf(const Datatype& type, int64_t count = 1) {
  Runs runs;
  type.ForEachRun(count, 0, count * type.size_bytes(),
                  [&](int64_t at, int64_t length) { runs.emplace_back(at, length); });
  return runs;
}

// ---- bounds, by the examples of the standard ----

// MPI 5.0, example 5.1: {(double, 0), (char, 8)} has extent 16.
TEST(ConstructorsTest, ExtentIsRoundedUpToTheAlignment) {
  const Ref<Datatype> type =
      Take(MakeStruct(kInt, {1, 1}, {0, 8}, {&Named(MPI_DOUBLE), &Named(MPI_CHAR)}));
  EXPECT_EQ(type->size_bytes(), 9);
  EXPECT_EQ(type->extent(), 16);
  EXPECT_EQ(type->true_extent(), 9);
  EXPECT_EQ(RunsOf(*type, 2), (Runs{{0, 9}, {16, 9}}));
}

// Section 5.1.7: only the marks of the components count, and of them the lowest and the highest.
TEST(ConstructorsTest, MarksOfComponentsCountAlone) {
  const Ref<Datatype> resized = Take(MakeResized(kInt, -3, 9, Named(MPI_INT)));
  EXPECT_EQ(resized->lower_bound(), -3);
  EXPECT_EQ(resized->extent(), 9);
  EXPECT_EQ(resized->true_lower_bound(), 0);
  EXPECT_EQ(resized->true_extent(), 4);
  const Ref<Datatype> two = Take(MakeContiguous(kInt, 2, *resized));
  EXPECT_EQ(two->lower_bound(), -3);
  EXPECT_EQ(two->extent(), 18);
  EXPECT_EQ(RunsOf(*two), (Runs{{0, 4}, {9, 4}}));
  const Ref<Datatype> with_more =
      Take(MakeStruct(kInt, {1, 1}, {0, 100}, {resized.get(), &Named(MPI_DOUBLE)}));
  EXPECT_EQ(with_more->lower_bound(), -3);
  EXPECT_EQ(with_more->extent(), 9);
  EXPECT_EQ(with_more->true_extent(), 108);
}

TEST(ConstructorsTest, NothingHasNoBounds) {
  const Ref<Datatype> nothing = Take(MakeContiguous(kInt, 0, Named(MPI_INT)));
  EXPECT_EQ(nothing->size_bytes(), 0);
  EXPECT_EQ(nothing->extent(), 0);
  EXPECT_TRUE(nothing->IsDense(5));
  EXPECT_EQ(nothing->basic(), nullptr);
  const Ref<Datatype> marked = Take(MakeResized(kInt, 4, 12, *nothing));
  EXPECT_EQ(marked->lower_bound(), 4);
  EXPECT_EQ(marked->extent(), 12);
  EXPECT_EQ(marked->true_extent(), 0);
  const Ref<Datatype> empty_struct = Take(MakeStruct(kInt, {}, {}, {}));
  EXPECT_EQ(empty_struct->extent(), 0);
}

// ---- layouts stay small ----

TEST(ConstructorsTest, AVectorIsOneLoop) {
  const Ref<Datatype> column = Take(MakeVector(kInt, 1000000, 1, 1000, Named(MPI_DOUBLE)));
  EXPECT_EQ(column->shape().layout.kind, LayoutNode::Kind::kLoop);
  EXPECT_EQ(column->shape().layout.count, 1000000);
  EXPECT_TRUE(column->shape().layout.body->IsBlock());
}

TEST(ConstructorsTest, WhatTouchesIsMerged) {
  EXPECT_TRUE(Take(MakeVector(kInt, 10, 3, 3, Named(MPI_INT)))->IsDense(7));
  EXPECT_TRUE(
      Take(MakeIndexed(kInt, {2, 3, 1}, {4, 6, 9}, Named(MPI_INT)))->shape().layout.IsBlock());
  const Ref<Datatype> structure =
      Take(MakeStruct(kInt, {1, 2}, {0, 4}, {&Named(MPI_INT), &Named(MPI_SHORT)}));
  EXPECT_TRUE(structure->IsDense(3));
  const Counts all = {4, 5};
  EXPECT_TRUE(Take(MakeSubarray(kInt, all, all, {0, 0}, MPI_ORDER_C, Named(MPI_INT)))->IsDense(2));
  // Whole rows are one block.
  EXPECT_EQ(RunsOf(*Take(MakeSubarray(kInt, {4, 5}, {2, 5}, {1, 0}, MPI_ORDER_C, Named(MPI_BYTE)))),
            (Runs{{5, 10}}));
}

TEST(ConstructorsTest, RegularListsBecomeLoops) {
  Counts displacements;
  for (int64_t i = 0; i < 1000; ++i) {
    displacements.push_back(3 * i);
  }
  const Ref<Datatype> type = Take(MakeIndexedBlock(kInt, 2, displacements, Named(MPI_INT)));
  EXPECT_EQ(type->shape().layout.kind, LayoutNode::Kind::kLoop);
  EXPECT_EQ(type->shape().layout.count, 1000);
}

TEST(ConstructorsTest, LoopsOfLoopsAreJoined) {
  const Ref<Datatype> vector = Take(MakeVector(kInt, 4, 1, 2, Named(MPI_INT)));
  const Ref<Datatype> resized = Take(MakeResized(kInt, 0, 32, *vector));
  const Ref<Datatype> many = Take(MakeContiguous(kInt, 100, *resized));
  EXPECT_EQ(many->shape().layout.count, 400);
  EXPECT_TRUE(many->shape().layout.body->IsBlock());
}

// Members of structures are packed in loops of their own, with and without runs that cross from one
// structure to the next.
TEST(ConstructorsTest, ArraysOfStructuresArePackedInOrder) {
  struct Crossing {
    int32_t i;
    double d;
  };
  struct Apart {
    char c;
    int16_t s;
    char tail[5];
    double d;
    int32_t i;
  };
  Datatype& i = Named(MPI_INT);
  Datatype& d = Named(MPI_DOUBLE);
  const auto check = [](const Datatype& type, size_t stride, const Runs& members) {
    constexpr int64_t kCount = 57;
    std::vector<char> memory(kCount * stride);
    for (size_t at = 0; at < memory.size(); ++at) {
      memory[at] = static_cast<char>(at * 131 >> 3);
    }
    std::vector<char> expected;
    for (int64_t element = 0; element < kCount; ++element) {
      for (const auto& [at, length] : members) {
        const auto from = memory.begin() + element * static_cast<int64_t>(stride) + at;
        expected.insert(expected.end(), from, from + length);
      }
    }
    std::vector<char> packed(expected.size());
    type.Pack(memory.data(), kCount, 0, static_cast<int64_t>(packed.size()), packed.data());
    EXPECT_EQ(packed, expected);
    std::vector<char> back(memory.size());
    type.Unpack(back.data(), kCount, 0, static_cast<int64_t>(packed.size()), packed.data());
    std::fill(packed.begin(), packed.end(), '\0');
    type.Pack(back.data(), kCount, 0, static_cast<int64_t>(packed.size()), packed.data());
    EXPECT_EQ(packed, expected);
  };
  check(*Take(MakeStruct(kInt, {1, 1}, {0, 8}, {&i, &d})), sizeof(Crossing), {{0, 4}, {8, 8}});
  check(*Take(MakeStruct(kInt, {1, 1}, {8, 0}, {&d, &i})), sizeof(Crossing), {{8, 8}, {0, 4}});
  check(*Take(MakeStruct(kInt, {1, 1, 5, 1, 1},
                         {offsetof(Apart, c), offsetof(Apart, s), offsetof(Apart, tail),
                          offsetof(Apart, d), offsetof(Apart, i)},
                         {&Named(MPI_CHAR), &Named(MPI_SHORT), &Named(MPI_CHAR), &d, &i})),
        sizeof(Apart), {{0, 1}, {2, 7}, {16, 12}});
}

// ---- distributed arrays ----

struct DarrayCase {
  DarrayArguments arguments;
  std::string text;
};

bool IsMine(const DarrayArguments& a, const Counts& index) {
  int64_t rank = a.rank;
  for (size_t i = a.gsizes.size(); i-- > 0;) {
    const int64_t place = rank % a.psizes[i];
    rank /= a.psizes[i];
    int64_t block = a.arguments[i];
    if (a.distributions[i] == MPI_DISTRIBUTE_NONE) {
      continue;
    }
    if (block == MPI_DISTRIBUTE_DFLT_DARG) {
      block = a.distributions[i] == MPI_DISTRIBUTE_CYCLIC
                  ? 1
                  : (a.gsizes[i] + a.psizes[i] - 1) / a.psizes[i];
    }
    if (index[i] / block % a.psizes[i] != place) {
      return false;
    }
  }
  return true;
}

// The displacements in bytes of this process's elements, in the order of the array.
std::vector<int64_t> Mine(const DarrayArguments& a, int64_t extent) {
  int64_t elements = 1;
  for (const int64_t size : a.gsizes) {
    elements *= size;
  }
  std::vector<int64_t> mine;
  for (int64_t element = 0; element < elements; ++element) {
    Counts index(a.gsizes.size());
    int64_t left = element;
    for (size_t i = 0; i < a.gsizes.size(); ++i) {
      const size_t dimension = a.order == MPI_ORDER_FORTRAN ? i : a.gsizes.size() - 1 - i;
      index[dimension] = left % a.gsizes[dimension];
      left /= a.gsizes[dimension];
    }
    if (IsMine(a, index)) {
      mine.push_back(element * extent);
    }
  }
  return mine;
}

// All combinations of some sizes, distributions and block sizes in one and two dimensions.
TEST(ConstructorsTest, DarraysAreWhatTheirDistributionsSay) {
  struct One {
    int64_t size, processes, distribution, argument;
  };
  std::vector<One> ones;
  for (const int64_t size : {1, 5, 12}) {
    ones.push_back({size, 1, MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_DFLT_DARG});
    for (const int64_t processes : {1, 2, 3}) {
      for (const int64_t argument :
           {int64_t{MPI_DISTRIBUTE_DFLT_DARG}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{40}}) {
        ones.push_back({size, processes, MPI_DISTRIBUTE_CYCLIC, argument});
        if (argument == MPI_DISTRIBUTE_DFLT_DARG || argument * processes >= size) {
          ones.push_back({size, processes, MPI_DISTRIBUTE_BLOCK, argument});
        }
      }
    }
  }
  const Ref<Datatype> old = Take(MakeResized(kInt, 0, 6, Named(MPI_INT)));
  const auto check = [&](const std::vector<One>& dimensions, int order) {
    DarrayArguments arguments;
    arguments.size = 1;
    arguments.order = order;
    int64_t elements = 1;
    for (const One& one : dimensions) {
      arguments.gsizes.push_back(one.size);
      arguments.psizes.push_back(one.processes);
      arguments.distributions.push_back(one.distribution);
      arguments.arguments.push_back(one.argument);
      arguments.size *= one.processes;
      elements *= one.size;
    }
    for (arguments.rank = 0; arguments.rank < arguments.size; ++arguments.rank) {
      const Ref<Datatype> type = Take(MakeDarray(kInt, arguments, *old));
      ASSERT_EQ(type->lower_bound(), 0);
      ASSERT_EQ(type->extent(), elements * 6);
      std::vector<int64_t> places;
      type->ForEachRun(1, 0, type->size_bytes(), [&](int64_t at, int64_t length) {
        for (int64_t byte = 0; byte < length; byte += 4) {
          places.push_back(at + byte);
        }
      });
      ASSERT_EQ(places, Mine(arguments, 6));
    }
  };
  for (const One& one : ones) {
    check({one}, MPI_ORDER_C);
    for (const One& two : ones) {
      check({one, two}, MPI_ORDER_C);
      check({one, two}, MPI_ORDER_FORTRAN);
    }
  }
}

// ---- contents (MPI 5.0, section 5.1.13) ----

TEST(ConstructorsTest, ContentsAreTheArguments) {
  Datatype& old = Named(MPI_INT);
  const auto contents = [](const Ref<Datatype>& type) { return type->contents(); };
  DatatypeContents c = contents(Take(MakeVector(kInt, 2, 3, 4, old)));
  EXPECT_EQ(c.combiner, MPI_COMBINER_VECTOR);
  EXPECT_THAT(c.integers, ElementsAre(2, 3, 4));
  EXPECT_FALSE(c.large);
  ASSERT_EQ(c.types.size(), 1U);
  EXPECT_EQ(c.types[0].get(), &old);
  c = contents(Take(MakeVector(kLarge, 2, 3, 4, old)));
  EXPECT_TRUE(c.integers.empty());
  EXPECT_THAT(c.large_counts, ElementsAre(2, 3, 4));
  EXPECT_TRUE(c.large);
  c = contents(Take(MakeHvector(kInt, 2, 3, 40, old)));
  EXPECT_THAT(c.integers, ElementsAre(2, 3));
  EXPECT_THAT(c.addresses, ElementsAre(40));
  c = contents(Take(MakeHvector(kLarge, 2, 3, 40, old)));
  EXPECT_THAT(c.large_counts, ElementsAre(2, 3, 40));
  EXPECT_TRUE(c.addresses.empty());
  c = contents(Take(MakeIndexed(kInt, {1, 2}, {3, 4}, old)));
  EXPECT_THAT(c.integers, ElementsAre(2, 1, 2, 3, 4));
  c = contents(Take(MakeHindexed(kInt, {1, 2}, {30, 40}, old)));
  EXPECT_THAT(c.integers, ElementsAre(2, 1, 2));
  EXPECT_THAT(c.addresses, ElementsAre(30, 40));
  c = contents(Take(MakeIndexedBlock(kInt, 7, {3, 4}, old)));
  EXPECT_THAT(c.integers, ElementsAre(2, 7, 3, 4));
  c = contents(Take(MakeHindexedBlock(kInt, 7, {3, 4}, old)));
  EXPECT_THAT(c.integers, ElementsAre(2, 7));
  EXPECT_THAT(c.addresses, ElementsAre(3, 4));
  c = contents(Take(MakeStruct(kLarge, {1, 2}, {8, 0}, {&old, &Named(MPI_CHAR)})));
  EXPECT_EQ(c.combiner, MPI_COMBINER_STRUCT);
  EXPECT_THAT(c.large_counts, ElementsAre(2, 1, 2, 8, 0));
  EXPECT_EQ(c.types.size(), 2U);
  c = contents(Take(MakeSubarray(kInt, {5, 6}, {2, 3}, {1, 0}, MPI_ORDER_C, old)));
  EXPECT_THAT(c.integers, ElementsAre(2, 5, 6, 2, 3, 1, 0, MPI_ORDER_C));
  c = contents(Take(MakeSubarray(kLarge, {5, 6}, {2, 3}, {1, 0}, MPI_ORDER_FORTRAN, old)));
  EXPECT_THAT(c.integers, ElementsAre(2, MPI_ORDER_FORTRAN));
  EXPECT_THAT(c.large_counts, ElementsAre(5, 6, 2, 3, 1, 0));
  const DarrayArguments darray = {2,
                                  1,
                                  {10, 11},
                                  {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE},
                                  {5, MPI_DISTRIBUTE_DFLT_DARG},
                                  {2, 1},
                                  MPI_ORDER_C};
  c = contents(Take(MakeDarray(kLarge, darray, old)));
  EXPECT_THAT(c.integers, ElementsAre(2, 1, 2, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE, 5,
                                      MPI_DISTRIBUTE_DFLT_DARG, 2, 1, MPI_ORDER_C));
  EXPECT_THAT(c.large_counts, ElementsAre(10, 11));
  c = contents(Take(MakeDarray(kInt, darray, old)));
  EXPECT_EQ(c.integers.size(), 4 * 2 + 4U);
  c = contents(Take(MakeResized(kInt, -1, 9, old)));
  EXPECT_THAT(c.addresses, ElementsAre(-1, 9));
  c = contents(Take(MakeDuplicate(old)));
  EXPECT_EQ(c.combiner, MPI_COMBINER_DUP);
  EXPECT_EQ(c.types[0].get(), &old);
}

TEST(ConstructorsTest, OnlyDuplicatesOfCommittedTypesAreCommitted) {
  const Ref<Datatype> vector = Take(MakeVector(kInt, 2, 1, 2, Named(MPI_INT)));
  EXPECT_FALSE(vector->IsCommitted());
  EXPECT_FALSE(Take(MakeDuplicate(*vector))->IsCommitted());
  vector->Commit();
  EXPECT_TRUE(vector->IsCommitted());
  EXPECT_TRUE(Take(MakeDuplicate(*vector))->IsCommitted());
  EXPECT_FALSE(Take(MakeContiguous(kInt, 1, *vector))->IsCommitted());
}

// Components may be freed: the types made of them keep them.
TEST(ConstructorsTest, ComponentsLiveAsLongAsTheyAreUsed) {
  Ref<Datatype> type = Take(MakeIndexed(kInt, {1, 1, 1}, {0, 2, 7}, Named(MPI_SHORT)));
  for (int i = 0; i < 20; ++i) {
    type = Take(MakeHindexed(kInt, {1, 1, 2}, {0, 5, 100}, *type));
    if (type->size_bytes() > 10000) {
      type = Take(MakeResized(kInt, 0, 64, *type));
      break;
    }
  }
  std::vector<char> buffer(1 << 16);
  for (size_t i = 0; i < buffer.size(); ++i) {
    buffer[i] = static_cast<char>(i * 7);
  }
  std::vector<char> packed(static_cast<size_t>(type->size_bytes()));
  type->Pack(buffer.data(), 1, 0, type->size_bytes(), packed.data());
  EXPECT_EQ(packed[1], buffer[1]);
}

// ---- signatures ----

TEST(ConstructorsTest, SignaturesDependOnElementsAlone) {
  Datatype& i = Named(MPI_INT);
  Datatype& d = Named(MPI_DOUBLE);
  const Signature six = Take(MakeContiguous(kInt, 6, i))->signature();
  EXPECT_EQ(six, Take(MakeVector(kInt, 3, 2, 5, i))->signature());
  EXPECT_EQ(six, Take(MakeIndexed(kInt, {1, 2, 3}, {9, 0, 3}, i))->signature());
  EXPECT_EQ(six, Take(MakeSubarray(kInt, {5, 5}, {2, 3}, {0, 0}, MPI_ORDER_C, i))->signature());
  EXPECT_FALSE(six == Take(MakeContiguous(kInt, 5, i))->signature());
  EXPECT_FALSE(six == Take(MakeContiguous(kInt, 6, Named(MPI_UNSIGNED)))->signature());
  const Signature id = Take(MakeStruct(kInt, {1, 1}, {0, 8}, {&i, &d}))->signature();
  EXPECT_FALSE(id == Take(MakeStruct(kInt, {1, 1}, {0, 8}, {&d, &i}))->signature());
  EXPECT_TRUE(id.mixed);
  EXPECT_EQ(id.basic, nullptr);
  EXPECT_EQ(six.basic, i.predefined());
  EXPECT_EQ(six.basics, 6);
  // A pair has the signature of its two parts.
  EXPECT_EQ(Named(MPI_DOUBLE_INT).signature(),
            Take(MakeStruct(kInt, {1, 1}, {0, 8}, {&d, &i}))->signature());
}

// ---- bad arguments ----

void ExpectFailure(const MadeDatatype& made, int error_class, std::string_view text) {
  ASSERT_FALSE(made.ok()) << text;
  EXPECT_EQ(made.failure().error_class, error_class) << made.failure().text;
  EXPECT_THAT(made.failure().text, HasSubstr(text));
}

TEST(ConstructorsTest, BadArgumentsAreNamed) {
  Datatype& old = Named(MPI_INT);
  ExpectFailure(MakeContiguous(kInt, -1, old), MPI_ERR_COUNT, "count is negative: -1");
  ExpectFailure(MakeVector(kInt, -2, 1, 1, old), MPI_ERR_COUNT, "count is negative: -2");
  ExpectFailure(MakeHvector(kInt, 2, -3, 1, old), MPI_ERR_ARG, "blocklength is negative: -3");
  ExpectFailure(MakeIndexed(kInt, {1, -4}, {0, 0}, old), MPI_ERR_ARG,
                "array_of_blocklengths[1] is negative: -4");
  ExpectFailure(MakeHindexed(kInt, {kMin}, {0}, old), MPI_ERR_ARG, "array_of_blocklengths[0]");
  ExpectFailure(MakeIndexedBlock(kInt, -1, {0}, old), MPI_ERR_ARG, "blocklength");
  ExpectFailure(MakeHindexedBlock(kInt, -1, {}, old), MPI_ERR_ARG, "blocklength");
  ExpectFailure(MakeStruct(kInt, {-1}, {0}, {&old}), MPI_ERR_ARG, "array_of_blocklengths[0]");
}

TEST(ConstructorsTest, BadSubarraysAreNamed) {
  Datatype& old = Named(MPI_INT);
  const auto make = [&](Counts sizes, Counts subsizes, Counts starts, int order = MPI_ORDER_C) {
    return MakeSubarray(kInt, sizes, subsizes, starts, order, old);
  };
  ExpectFailure(make({}, {}, {}), MPI_ERR_ARG, "ndims");
  ExpectFailure(make({4}, {2}, {0}, 99), MPI_ERR_ARG, "order");
  ExpectFailure(make({4, 0}, {1, 1}, {0, 0}), MPI_ERR_ARG, "array_of_sizes[1] is 0");
  ExpectFailure(make({4, 4}, {5, 1}, {0, 0}), MPI_ERR_ARG, "array_of_subsizes[0] is 5");
  ExpectFailure(make({4, 4}, {1, 0}, {0, 0}), MPI_ERR_ARG, "array_of_subsizes[1] is 0");
  ExpectFailure(make({4, 4}, {1, 3}, {0, 2}), MPI_ERR_ARG, "array_of_starts[1] is 2");
  ExpectFailure(make({4, 4}, {1, 3}, {-1, 0}), MPI_ERR_ARG, "array_of_starts[0] is -1");
  ExpectFailure(make({kMax, 2}, {1, 1}, {0, 0}), MPI_ERR_ARG, "63 bits");
}

TEST(ConstructorsTest, BadDarraysAreNamed) {
  const DarrayArguments good = {
      4, 3, {8, 8}, {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, {4, 3}, {2, 2}, MPI_ORDER_C};
  const auto expect = [&](auto change, std::string_view text) {
    DarrayArguments arguments = good;
    change(arguments);
    ExpectFailure(MakeDarray(kInt, arguments, Named(MPI_INT)), MPI_ERR_ARG, text);
  };
  using A = DarrayArguments;
  EXPECT_TRUE(MakeDarray(kInt, good, Named(MPI_INT)).ok());
  expect([](A& a) { a.size = 0; }, "size is not positive");
  expect([](A& a) { a.size = 5; }, "product 4, not the size 5");
  expect([](A& a) { a.rank = 4; }, "rank is 4");
  expect([](A& a) { a.rank = -1; }, "rank is -1");
  expect([](A& a) { a.gsizes[1] = 0; }, "array_of_gsizes[1]");
  expect([](A& a) { a.psizes[0] = 0; }, "array_of_psizes[0]");
  expect([](A& a) { a.psizes = {kMax, 2}; }, "63 bits");
  expect([](A& a) { a.arguments[0] = 3; }, "array_of_dargs[0] is 3, not enough for 8 elements");
  expect([](A& a) { a.arguments[1] = 0; }, "array_of_dargs[1] is 0");
  expect([](A& a) { a.distributions[0] = MPI_DISTRIBUTE_NONE; }, "array_of_psizes[0] is 2");
  expect([](A& a) { a.distributions[1] = 1234; }, "array_of_distribs[1] is 1234");
  expect([](A& a) { a.order = 0; }, "order");
  expect(
      [](A& a) {
        a.gsizes = {kMax, kMax};
        a.arguments[0] = kMax;
      },
      "63 bits");
}

// A number that MPI takes as it is may be anything; one that would wrap is refused.
TEST(ConstructorsTest, OverflowIsRefused) {
  Datatype& old = Named(MPI_DOUBLE);
  for (const int64_t huge : {kMax, kMax / 2, kMax / 8 + 1}) {
    ExpectFailure(MakeContiguous(kLarge, huge, old), MPI_ERR_ARG, "63 bits");
    ExpectFailure(MakeVector(kLarge, 1, huge, 1, old), MPI_ERR_ARG, "63 bits");
    ExpectFailure(MakeVector(kLarge, 2, 1, huge, old), MPI_ERR_ARG, "63 bits");
    ExpectFailure(MakeVector(kLarge, 3, 1, -huge, old), MPI_ERR_ARG, "63 bits");
    ExpectFailure(MakeIndexed(kLarge, {1}, {huge}, old), MPI_ERR_ARG, "63 bits");
    ExpectFailure(MakeIndexed(kLarge, {1, 1}, {huge / 8, -huge}, old), MPI_ERR_ARG, "63 bits");
    ExpectFailure(MakeIndexedBlock(kLarge, huge, {0}, old), MPI_ERR_ARG, "63 bits");
  }
  ExpectFailure(MakeHvector(kLarge, 2, 1, kMax, old), MPI_ERR_ARG, "63 bits");
  ExpectFailure(MakeHvector(kLarge, 2, 1, kMin, old), MPI_ERR_ARG, "63 bits");
  ExpectFailure(MakeHindexed(kLarge, {1, 1}, {kMax - 8, kMin}, old), MPI_ERR_ARG, "63 bits");
  ExpectFailure(MakeHindexedBlock(kLarge, 1, {kMax}, old), MPI_ERR_ARG, "63 bits");
  ExpectFailure(MakeStruct(kLarge, {1, 1}, {kMax - 1, 0}, {&old, &old}), MPI_ERR_ARG, "63 bits");
  ExpectFailure(MakeResized(kLarge, kMax, 1, old), MPI_ERR_ARG, "63 bits");
  ExpectFailure(MakeResized(kLarge, kMin, -1, old), MPI_ERR_ARG, "63 bits");
  const Ref<Datatype> wide = Take(MakeResized(kLarge, kMin, kMax, old));
  EXPECT_EQ(wide->extent(), kMax);
  ExpectFailure(MakeStruct(kLarge, {1, 1}, {0, 64}, {wide.get(), wide.get()}), MPI_ERR_ARG,
                "63 bits");
}

TEST(ConstructorsTest, CountsOfElementsAreChecked) {
  const Datatype& type = Named(MPI_DOUBLE);
  EXPECT_EQ(type.PackedBytes(kMax / 8 - 1).value(), (kMax / 8 - 1) * 8);
  EXPECT_EQ(type.PackedBytes(-1).failure().error_class, MPI_ERR_COUNT);
  EXPECT_THAT(type.PackedBytes(-1).failure().text, HasSubstr("count is negative: -1"));
  EXPECT_EQ(type.PackedBytes(kMax / 4).failure().error_class, MPI_ERR_COUNT);
  const Ref<Datatype> sparse = Take(MakeResized(kLarge, 0, kMax / 4, Named(MPI_CHAR)));
  EXPECT_EQ(sparse->PackedBytes(4).value(), 4);
  EXPECT_FALSE(sparse->PackedBytes(5).ok());
}

TEST(ConstructorsTest, NestingIsBounded) {
  Ref<Datatype> type = Take(MakeContiguous(kInt, 1, Named(MPI_INT)));
  for (int i = 1; i < kMaxDatatypeDepth; ++i) {
    type = Take(MakeDuplicate(*type));
  }
  EXPECT_EQ(type->depth(), kMaxDatatypeDepth);
  ExpectFailure(MakeContiguous(kInt, 1, *type), MPI_ERR_ARG, "nested");
}

}  // namespace
}  // namespace ferry::mpi

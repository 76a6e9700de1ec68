// Random datatypes, each with a type map that follows the definitions of the standard.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "mpi/datatype/constructors.h"
#include "tests/mpi/datatype/type_map.h"

namespace ferry::mpi {

struct TypeSample {
  Ref<Datatype> type;
  TypeMap map;
};

class RandomTypes {
 public:
  explicit RandomTypes(uint32_t seed) : random_(seed) {}

  // Draws between 0 and `depth` constructors around a predefined type; it has at most kMaxEntries
  // basic elements, within kMaxDistance of 0.
  TypeSample Next(int depth) {
    for (;;) {
      TypeSample sample = depth == 0 ? Basic() : Derived(Next(depth - 1), depth);
      if (sample.map.entries.size() <= kMaxEntries && Distance(sample.map) <= kMaxDistance) {
        return sample;
      }
    }
  }
  int64_t Between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  static constexpr size_t kMaxEntries = 600;
  static constexpr int64_t kMaxDistance = 8192;

 private:
  static int64_t Distance(const TypeMap& map) {
    return std::max({std::abs(map.true_lower_bound()), std::abs(map.true_upper_bound()),
                     std::abs(map.lower_bound()), std::abs(map.upper_bound())});
  }

  TypeSample Basic() {
    const auto types = BasicTypes();
    const BasicType& basic =
        types[static_cast<size_t>(Between(0, static_cast<int64_t>(types.size()) - 1))];
    return {MakeRef<Datatype>(basic), TypeMap::Of(basic)};
  }

  static TypeSample Sample(MadeDatatype made, TypeMap map) {
    EXPECT_TRUE(made.ok()) << made.failure().text;
    return {std::move(made).value(), std::move(map)};
  }

  CountForm Form() { return Between(0, 1) == 0 ? CountForm::kInt : CountForm::kLarge; }

  Counts Numbers(int64_t count, int64_t low, int64_t high) {
    Counts numbers;
    for (int64_t i = 0; i < count; ++i) {
      numbers.push_back(Between(low, high));
    }
    return numbers;
  }

  TypeSample Derived(const TypeSample& old, int depth) {
    switch (Between(0, 11)) {
      case 0:
        return Contiguous(old);
      case 1:
        return Strided(old, true);
      case 2:
        return Strided(old, false);
      case 3:
        return Indexed(old, true);
      case 4:
        return Indexed(old, false);
      case 5:
        return IndexedBlock(old, true);
      case 6:
        return IndexedBlock(old, false);
      case 7:
      case 8:
        return Struct(old, depth);
      case 9:
        return Subarray(old);
      case 10:
        return Resized(old);
      default:
        return Sample(MakeDuplicate(*old.type), old.map);
    }
  }

  TypeSample Contiguous(const TypeSample& old) {
    const int64_t count = Between(0, 5);
    TypeMap map;
    map.AppendBlock(old.map, count, 0);
    return Sample(MakeContiguous(Form(), count, *old.type), map);
  }

  TypeSample Strided(const TypeSample& old, bool by_extent) {
    const int64_t count = Between(0, 5);
    const int64_t blocklength = Between(0, 3);
    const int64_t unit = by_extent ? old.map.extent() : 1;
    const int64_t stride = by_extent ? Between(-5, 5) : Between(-100, 100);
    TypeMap map;
    for (int64_t i = 0; i < count; ++i) {
      map.AppendBlock(old.map, blocklength, i * stride * unit);
    }
    return Sample(by_extent ? MakeVector(Form(), count, blocklength, stride, *old.type)
                            : MakeHvector(Form(), count, blocklength, stride, *old.type),
                  map);
  }

  TypeSample Indexed(const TypeSample& old, bool by_extent) {
    const int64_t count = Between(0, 6);
    const Counts blocklengths = Numbers(count, 0, 3);
    const Counts displacements = Numbers(count, by_extent ? -6 : -99, by_extent ? 6 : 99);
    const int64_t unit = by_extent ? old.map.extent() : 1;
    TypeMap map;
    for (size_t i = 0; i < blocklengths.size(); ++i) {
      map.AppendBlock(old.map, blocklengths[i], displacements[i] * unit);
    }
    return Sample(by_extent ? MakeIndexed(Form(), blocklengths, displacements, *old.type)
                            : MakeHindexed(Form(), blocklengths, displacements, *old.type),
                  map);
  }

  TypeSample IndexedBlock(const TypeSample& old, bool by_extent) {
    const int64_t blocklength = Between(0, 3);
    const int64_t count = Between(0, 6);
    // Now and then a displacement rises by one: blocks that touch are to be merged.
    Counts displacements = Numbers(count, by_extent ? -6 : -99, by_extent ? 6 : 99);
    if (Between(0, 1) == 0) {
      std::sort(displacements.begin(), displacements.end());
    }
    const int64_t unit = by_extent ? old.map.extent() : 1;
    TypeMap map;
    for (const int64_t displacement : displacements) {
      map.AppendBlock(old.map, blocklength, displacement * unit);
    }
    return Sample(by_extent ? MakeIndexedBlock(Form(), blocklength, displacements, *old.type)
                            : MakeHindexedBlock(Form(), blocklength, displacements, *old.type),
                  map);
  }

  TypeSample Struct(const TypeSample& old, int depth) {
    std::vector<TypeSample> members = {old};
    for (int64_t i = Between(0, 2); i > 0; --i) {
      members.push_back(Next(static_cast<int>(Between(0, depth - 1))));
    }
    const auto count = static_cast<int64_t>(members.size());
    const Counts blocklengths = Numbers(count, 0, 3);
    Counts displacements = Numbers(count, -200, 200);
    std::vector<Datatype*> types;
    TypeMap map;
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0 && Between(0, 1) == 0) {  // right behind the one before
        displacements[i] = displacements[i - 1] + blocklengths[i - 1] * members[i - 1].map.extent();
      }
      types.push_back(members[i].type.get());
      map.AppendBlock(members[i].map, blocklengths[i], displacements[i]);
    }
    return Sample(MakeStruct(Form(), blocklengths, displacements, types), map);
  }

  TypeSample Subarray(const TypeSample& old) {
    const int64_t dimensions = Between(1, 3);
    const Counts sizes = Numbers(dimensions, 1, 4);
    Counts subsizes;
    Counts starts;
    int64_t elements = 1;
    for (const int64_t size : sizes) {
      subsizes.push_back(Between(1, size));
      starts.push_back(Between(0, size - subsizes.back()));
      elements *= size;
    }
    const int order = Between(0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    TypeMap map;
    for (int64_t element = 0; element < elements; ++element) {
      if (IsWithin(element, sizes, subsizes, starts, order)) {
        map.Append(old.map, element * old.map.extent());
      }
    }
    map.Resize(0, elements * old.map.extent());
    return Sample(MakeSubarray(Form(), sizes, subsizes, starts, order, *old.type), map);
  }

  static bool IsWithin(int64_t element, const Counts& sizes, const Counts& subsizes,
                       const Counts& starts, int order) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      const size_t dimension = order == MPI_ORDER_C ? sizes.size() - 1 - i : i;
      const int64_t index = element % sizes[dimension];
      element /= sizes[dimension];
      if (index < starts[dimension] || index >= starts[dimension] + subsizes[dimension]) {
        return false;
      }
    }
    return true;
  }

  TypeSample Resized(const TypeSample& old) {
    const int64_t lower_bound = Between(-50, 50);
    const int64_t extent = Between(-50, 400);
    TypeMap map = old.map;
    map.Resize(lower_bound, extent);
    return Sample(MakeResized(Form(), lower_bound, extent, *old.type), map);
  }

  std::mt19937 random_;
};

}  // namespace ferry::mpi

// A datatype as the standard defines it (MPI 5.0, section 5.1): the list of its basic elements,
// each with its displacement. It is slow and plain, so that the flattened layouts can be compared
// with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "mpi/datatype/basic_type.h"

namespace ferry::mpi {

struct MapEntry {
  int64_t displacement;
  int64_t size_bytes;
  int64_t alignment;
};

struct TypeMap {
  std::vector<MapEntry> entries;
  std::vector<int64_t> lower_marks;  // set by MPI_Type_create_resized
  std::vector<int64_t> upper_marks;

  static TypeMap Of(const BasicType& type) {
    TypeMap map;
    if (type.IsPair()) {
      map.entries = {{0, type.value->size_bytes, type.value->alignment},
                     {type.index_offset, type.index->size_bytes, type.index->alignment}};
    } else {
      map.entries = {{0, type.size_bytes, type.alignment}};
    }
    return map;
  }

  void Append(const TypeMap& other, int64_t displacement) {
    for (MapEntry entry : other.entries) {
      entry.displacement += displacement;
      entries.push_back(entry);
    }
    for (const int64_t mark : other.lower_marks) {
      lower_marks.push_back(mark + displacement);
    }
    for (const int64_t mark : other.upper_marks) {
      upper_marks.push_back(mark + displacement);
    }
  }
  // Appends `count` of them, an extent apart, from `displacement` on.
  void AppendBlock(const TypeMap& other, int64_t count, int64_t displacement) {
    for (int64_t i = 0; i < count; ++i) {
      Append(other, displacement + i * other.extent());
    }
  }
  void Resize(int64_t lower_bound, int64_t extent) {
    lower_marks = {lower_bound};
    upper_marks = {lower_bound + extent};
  }

  int64_t size_bytes() const {
    int64_t sum = 0;
    for (const MapEntry& entry : entries) {
      sum += entry.size_bytes;
    }
    return sum;
  }
  int64_t true_lower_bound() const {
    int64_t low = entries.empty() ? 0 : entries[0].displacement;
    for (const MapEntry& entry : entries) {
      low = std::min(low, entry.displacement);
    }
    return low;
  }
  int64_t true_upper_bound() const {
    int64_t high = entries.empty() ? 0 : entries[0].displacement + entries[0].size_bytes;
    for (const MapEntry& entry : entries) {
      high = std::max(high, entry.displacement + entry.size_bytes);
    }
    return high;
  }
  int64_t lower_bound() const {
    return lower_marks.empty() ? true_lower_bound()
                               : *std::min_element(lower_marks.begin(), lower_marks.end());
  }
  int64_t upper_bound() const {
    if (!upper_marks.empty()) {
      return *std::max_element(upper_marks.begin(), upper_marks.end());
    }
    int64_t alignment = 1;
    for (const MapEntry& entry : entries) {
      alignment = std::max(alignment, entry.alignment);
    }
    int64_t high = true_upper_bound();
    while ((high - lower_bound()) % alignment != 0) {
      ++high;
    }
    return high;
  }
  int64_t extent() const { return upper_bound() - lower_bound(); }

  // The place of each byte of the packed stream of `count` elements.
  std::vector<int64_t> PackedBytes(int64_t count) const {
    std::vector<int64_t> places;
    const int64_t step = extent();  // which looks at all entries
    for (int64_t i = 0; i < count; ++i) {
      for (const MapEntry& entry : entries) {
        for (int64_t byte = 0; byte < entry.size_bytes; ++byte) {
          places.push_back(i * step + entry.displacement + byte);
        }
      }
    }
    return places;
  }
};

}  // namespace ferry::mpi

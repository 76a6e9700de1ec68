// The values that a datatype's constructors compute with: the layout of some data together with its
// bounds (MPI 5.0, section 5.1.6), all arithmetic checked.
//
// The bounds are kept apart: those of the data, and those that a user set
// (MPI_Type_create_resized), which count alone where there are any. Shapes are composed without
// rounding up to the alignment, which is added once, for the whole.
//
// Units: bytes. For this folder. Calling thread: one at a time for a ShapeBuilder. Blocks: never.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "mpi/datatype/layout.h"

namespace ferry::mpi {

// The bytes [low, high) of memory.
struct Bounds {
  int64_t low = 0;
  int64_t high = 0;
};

inline Bounds Union(const Bounds& a, const Bounds& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

struct Shape {
  LayoutNode layout;            // layout.size: the data's bytes
  Bounds data;                  // the true bounds; 0 and 0 without data
  std::optional<Bounds> marks;  // as set by a user
  int64_t alignment = 1;        // the strictest of the basic elements'

  bool IsEmpty() const { return layout.size == 0 && !marks.has_value(); }
  int64_t size_bytes() const { return layout.size; }
  int64_t lower_bound() const { return marks ? marks->low : data.low; }
  // Rounded up to the alignment, unless a user set it. ShapeBuilder has seen to it that this
  // does not overflow.
  int64_t upper_bound() const;
  int64_t extent() const { return upper_bound() - lower_bound(); }
};

// Makes shapes of shapes. After an overflow, overflowed() is true and results mean nothing.
class ShapeBuilder {
 public:
  // Shapes that it makes refer to the store.
  explicit ShapeBuilder(LayoutStore& store) : store_(store) {}

  // Returns count >= 0 copies of the shape, `stride` apart.
  Shape Repeat(const Shape& shape, int64_t count, int64_t stride);
  Shape Move(Shape shape, int64_t displacement);
  // Joins shapes: one after the other in packed order, each at its own place.
  Shape Join(std::initializer_list<Shape> shapes);
  // Returns the shape's data with new bounds.
  Shape Resize(Shape shape, int64_t lower_bound, int64_t extent);

  int64_t Multiply(int64_t a, int64_t b) {
    int64_t product = 0;
    overflowed_ |= __builtin_mul_overflow(a, b, &product);
    return overflowed_ ? 0 : product;
  }
  int64_t Add(int64_t a, int64_t b) {
    int64_t sum = 0;
    overflowed_ |= __builtin_add_overflow(a, b, &sum);
    return overflowed_ ? 0 : sum;
  }
  bool overflowed() const { return overflowed_; }

 private:
  friend class ShapeJoiner;

  Bounds Shift(Bounds bounds, int64_t displacement);
  void CheckExtent(const Shape& shape);

  LayoutStore& store_;
  bool overflowed_ = false;
};

// Joins shapes that come one at a time.
class ShapeJoiner {
 public:
  explicit ShapeJoiner(ShapeBuilder& builder) : builder_(builder) {}

  void Reserve(size_t shapes) { layouts_.Reserve(shapes); }
  // Adds the shape at its place, moved by `displacement`.
  void Add(const Shape& shape, int64_t displacement = 0);
  // Adds `count` copies, one behind the other, of a shape that is one run of bytes without marks
  // and has no gap behind it: as Add(Repeat(...)) does, at a fraction of the cost.
  void AddRun(const Shape& shape, int64_t count, int64_t displacement) {
    const int64_t size = builder_.Multiply(shape.size_bytes(), count);
    if (size == 0) {
      return;
    }
    const int64_t low = builder_.Add(shape.data.low, displacement);
    NoteData({low, builder_.Add(low, size)}, shape.alignment);
    joined_.layout.size = builder_.Add(joined_.layout.size, size);
    if (!builder_.overflowed()) [[likely]] {
      layouts_.AddRun(low, size);
    }
  }
  // Adds such copies at each of the displacements, which are in units of `unit` > 0 bytes: checked
  // as a whole.
  void AddRuns(const Shape& shape, int64_t count, const std::vector<int64_t>& displacements,
               int64_t unit);
  // Returns the shape of all shapes that were added. To be called once.
  Shape Join();

 private:
  void NoteData(const Bounds& data, int64_t alignment) {
    joined_.data = has_data_ ? Union(joined_.data, data) : data;
    joined_.alignment = std::max(joined_.alignment, alignment);
    has_data_ = true;
    builder_.Add(data.high, alignment);
  }

  ShapeBuilder& builder_;
  Shape joined_;  // but for its layout
  bool has_data_ = false;
  LayoutSequence layouts_;
};

}  // namespace ferry::mpi

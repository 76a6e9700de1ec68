#include "mpi/datatype/shape.h"

#include <utility>

namespace ferry::mpi {
namespace {

// The distance to the next multiple of `unit`.
int64_t Missing(int64_t value, int64_t unit) { return (unit - value % unit) % unit; }

}  // namespace

int64_t Shape::upper_bound() const {
  if (marks) {
    return marks->high;
  }
  return data.high + Missing(data.high - data.low, alignment);
}

Bounds ShapeBuilder::Shift(Bounds bounds, int64_t displacement) {
  return {Add(bounds.low, displacement), Add(bounds.high, displacement)};
}

// Checks that the extent, rounded up, does not overflow either.
void ShapeBuilder::CheckExtent(const Shape& shape) {
  int64_t extent = 0;
  overflowed_ |= __builtin_sub_overflow(shape.data.high, shape.data.low, &extent);
  Add(extent, shape.alignment);
  if (shape.marks) {
    overflowed_ |= __builtin_sub_overflow(shape.marks->high, shape.marks->low, &extent);
  }
  Add(shape.data.high, shape.alignment);
}

Shape ShapeBuilder::Move(Shape shape, int64_t displacement) {
  if (shape.IsEmpty()) {
    return shape;
  }
  if (shape.size_bytes() > 0) {
    shape.data = Shift(shape.data, displacement);
  }
  if (shape.marks) {
    shape.marks = Shift(*shape.marks, displacement);
  }
  CheckExtent(shape);
  if (!overflowed_) {
    shape.layout = MoveNode(shape.layout, displacement);
  }
  return shape;
}

Shape ShapeBuilder::Repeat(const Shape& shape, int64_t count, int64_t stride) {
  if (count == 0 || shape.IsEmpty()) {
    return Shape();
  }
  Multiply(shape.size_bytes(), count);
  Multiply(stride, count);
  const int64_t last = Multiply(stride, count - 1);
  Shape result = Move(shape, last);
  if (overflowed_) {
    return Shape();
  }
  if (shape.size_bytes() > 0) {
    result.data = Union(result.data, shape.data);
  }
  if (shape.marks) {
    result.marks = Union(*result.marks, *shape.marks);
  }
  CheckExtent(result);
  result.layout = overflowed_ ? LayoutNode() : store_.Repeat(shape.layout, count, stride);
  return result;
}

void ShapeJoiner::AddRuns(const Shape& shape, int64_t count,
                          const std::vector<int64_t>& displacements, int64_t unit) {
  const int64_t size = builder_.Multiply(shape.size_bytes(), count);
  if (size == 0 || displacements.empty()) {
    return;
  }
  const auto [first, last] = std::minmax_element(displacements.begin(), displacements.end());
  const int64_t low = builder_.Add(shape.data.low, builder_.Multiply(*first, unit));
  const int64_t high = builder_.Add(shape.data.low, builder_.Multiply(*last, unit));
  NoteData({low, builder_.Add(high, size)}, shape.alignment);
  const int64_t all = builder_.Multiply(size, static_cast<int64_t>(displacements.size()));
  joined_.layout.size = builder_.Add(joined_.layout.size, all);
  if (!builder_.overflowed()) {
    layouts_.AddRuns(displacements, shape.data.low, unit, size);
  }
}

void ShapeJoiner::Add(const Shape& shape, int64_t displacement) {
  if (shape.size_bytes() > 0) {
    NoteData(builder_.Shift(shape.data, displacement), shape.alignment);
    joined_.layout.size = builder_.Add(joined_.layout.size, shape.size_bytes());
    if (!builder_.overflowed()) [[likely]] {
      layouts_.Add(MoveNode(shape.layout, displacement));
    }
  }
  if (shape.marks) {
    const Bounds marks = builder_.Shift(*shape.marks, displacement);
    joined_.marks = joined_.marks ? Union(*joined_.marks, marks) : marks;
  }
}

Shape ShapeJoiner::Join() {
  builder_.CheckExtent(joined_);
  if (!builder_.overflowed()) {
    joined_.layout = builder_.store_.Sequence(std::move(layouts_));
  }
  return std::move(joined_);
}

Shape ShapeBuilder::Join(std::initializer_list<Shape> shapes) {
  ShapeJoiner joiner(*this);
  for (const Shape& shape : shapes) {
    joiner.Add(shape);
  }
  return joiner.Join();
}

Shape ShapeBuilder::Resize(Shape shape, int64_t lower_bound, int64_t extent) {
  shape.marks = Bounds{lower_bound, Add(lower_bound, extent)};
  return shape;
}

}  // namespace ferry::mpi

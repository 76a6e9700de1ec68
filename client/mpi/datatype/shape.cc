#include "client/mpi/datatype/shape.h"

#include <utility>

namespace ferry::mpi {
namespace {

Bounds Union(const Bounds& a, const Bounds& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

// The distance to the next multiple of `unit`.
int64_t Missing(int64_t value, int64_t unit) { return (unit - value % unit) % unit; }

}  // namespace

int64_t Shape::upper_bound() const {
  if (marks) {
    return marks->high;
  }
  return data.high + Missing(data.high - data.low, alignment);
}

int64_t ShapeBuilder::Multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  overflowed_ |= __builtin_mul_overflow(a, b, &product);
  return overflowed_ ? 0 : product;
}

int64_t ShapeBuilder::Add(int64_t a, int64_t b) {
  int64_t sum = 0;
  overflowed_ |= __builtin_add_overflow(a, b, &sum);
  return overflowed_ ? 0 : sum;
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

void ShapeJoiner::NoteData(const Bounds& data, int64_t alignment) {
  joined_.data = has_data_ ? Union(joined_.data, data) : data;
  joined_.alignment = std::max(joined_.alignment, alignment);
  has_data_ = true;
  builder_.Add(data.high, alignment);
}

void ShapeJoiner::AddRun(const Shape& shape, int64_t count, int64_t displacement) {
  const int64_t size = builder_.Multiply(shape.size_bytes(), count);
  if (size == 0) {
    return;
  }
  const int64_t low = builder_.Add(shape.data.low, displacement);
  NoteData({low, builder_.Add(low, size)}, shape.alignment);
  joined_.layout.size = builder_.Add(joined_.layout.size, size);
  if (!builder_.overflowed()) [[likely]] {
    layouts_.Add(MoveNode(LayoutStore::Block(size), low));
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

#include "mpi/datatype/datatype.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "mpi/datatype/layout.h"

namespace ferry::mpi {
namespace {

std::unique_ptr<Datatype::Made> MadeOf(const BasicType& basic, DatatypeContents contents) {
  auto made = std::make_unique<Datatype::Made>();
  ShapeBuilder builder(made->store);
  const auto element = [](const BasicType& type, int64_t displacement) {
    Shape shape;
    shape.layout = RunNode(displacement, type.size_bytes);
    shape.data = {displacement, displacement + type.size_bytes};
    shape.alignment = type.alignment;
    return shape;
  };
  made->shape =
      basic.IsPair()
          ? builder.Join({element(*basic.value, 0), element(*basic.index, basic.index_offset)})
          : element(basic, 0);
  made->signature = SignatureOf(basic);
  made->contents = std::move(contents);
  made->committed = true;
  return made;
}

int DepthOf(const DatatypeContents& contents) {
  int depth = 0;
  for (const Ref<Datatype>& type : contents.types) {
    depth = std::max(depth, type->depth() + 1);
  }
  return depth;
}

}  // namespace

Datatype::Datatype(const BasicType& basic, DatatypeContents contents)
    : predefined_(&basic),
      made_(MadeOf(basic, std::move(contents))),
      lower_bound_(shape().lower_bound()),
      extent_(shape().extent()),
      depth_(0),
      committed_(true),
      name_(basic.name),
      handle_(basic.handle) {}

Datatype::Datatype(std::unique_ptr<Made> made)
    : made_(std::move(made)),
      lower_bound_(shape().lower_bound()),
      extent_(shape().extent()),
      depth_(DepthOf(made_->contents)),
      committed_(made_->committed) {}

Result<int64_t> Datatype::PackedBytes(int64_t count) const {
  if (count < 0) {
    return Failure{MPI_ERR_COUNT, "count is negative: " + std::to_string(count)};
  }
  int64_t bytes = 0;
  int64_t last = 0;
  int64_t end = 0;
  if (__builtin_mul_overflow(count, size_bytes(), &bytes) ||
      __builtin_mul_overflow(count, extent_, &last) ||
      __builtin_add_overflow(last, shape().data.low, &end) ||
      __builtin_add_overflow(last, shape().data.high, &end)) {
    return Failure{MPI_ERR_COUNT, "count is too large for elements of " +
                                      std::to_string(size_bytes()) + " bytes and extent " +
                                      std::to_string(extent_) + ": " + std::to_string(count)};
  }
  return bytes;
}

Bounds Datatype::Span(int64_t count) const {
  if (count <= 0 || size_bytes() == 0) {
    return {};
  }
  const int64_t last = (count - 1) * extent_;
  return {shape().data.low + std::min<int64_t>(last, 0),
          shape().data.high + std::max<int64_t>(last, 0)};
}

void Datatype::Pack(const void* buffer, int64_t count, int64_t offset, int64_t bytes,
                    void* packed) const {
  PackLayout(Elements(count), buffer, offset, bytes, packed);
}

void Datatype::Unpack(void* buffer, int64_t count, int64_t offset, int64_t bytes,
                      const void* packed) const {
  UnpackLayout(Elements(count), buffer, offset, bytes, packed);
}

void Datatype::ForEachRun(int64_t count, int64_t offset, int64_t bytes, Run run,
                          void* context) const {
  ForEachLayoutRun(Elements(count), offset, bytes, run, context);
}

int64_t Datatype::ElementCount(int64_t bytes) const {
  if (size_bytes() == 0) {
    return bytes == 0 ? 0 : int64_t{MPI_UNDEFINED};
  }
  return bytes % size_bytes() == 0 ? bytes / size_bytes() : int64_t{MPI_UNDEFINED};
}

int64_t Datatype::BasicElementCount(int64_t bytes) const {
  if (size_bytes() == 0) {
    return bytes == 0 ? 0 : int64_t{MPI_UNDEFINED};
  }
  const int64_t within = BasicElementsWithin(bytes % size_bytes());
  return within == MPI_UNDEFINED ? within : bytes / size_bytes() * signature().elements + within;
}

// Counts those of the first `bytes` bytes of one element, which are less than its size.
int64_t Datatype::BasicElementsWithin(int64_t bytes) const {
  if (bytes == 0) {
    return 0;
  }
  if (predefined_ != nullptr) {
    return predefined_->IsPair() && bytes == predefined_->value->size_bytes ? 1 : MPI_UNDEFINED;
  }
  int64_t elements = 0;
  for (const Part& part : made_->parts) {
    const int64_t size = part.type->size_bytes();
    const int64_t whole = size == 0 ? part.repeat : std::min(part.repeat, bytes / size);
    elements += whole * part.type->signature().elements;
    bytes -= whole * size;
    if (whole < part.repeat) {
      const int64_t within = part.type->BasicElementsWithin(bytes);
      return within == MPI_UNDEFINED ? within : elements + within;
    }
  }
  return elements;
}

int64_t Datatype::BytesOfBasicElements(int64_t elements) const {
  const int64_t each = signature().elements;
  if (each == 0) {
    return elements == 0 ? 0 : MPI_UNDEFINED;
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements / each, size_bytes(), &bytes) ||
      __builtin_add_overflow(bytes, BytesWithin(elements % each), &bytes)) {
    return MPI_UNDEFINED;
  }
  return bytes;
}

// The bytes of the first `elements` basic elements of one element, which are less than it has.
int64_t Datatype::BytesWithin(int64_t elements) const {
  if (elements == 0) {
    return 0;
  }
  if (predefined_ != nullptr) {
    return predefined_->value->size_bytes;  // only a pair has more than one
  }
  int64_t bytes = 0;
  for (const Part& part : made_->parts) {
    const int64_t each = part.type->signature().elements;
    const int64_t whole = each == 0 ? part.repeat : std::min(part.repeat, elements / each);
    bytes += whole * part.type->size_bytes();
    elements -= whole * each;
    if (whole < part.repeat) {
      return bytes + part.type->BytesWithin(elements);
    }
  }
  return bytes;
}

int64_t CopyElements(const void* from, int64_t from_count, const Datatype& from_type, void* to,
                     int64_t to_count, const Datatype& to_type) {
  const int64_t bytes =
      std::min(from_count * from_type.size_bytes(), to_count * to_type.size_bytes());
  const auto at = [](auto* buffer, const Datatype& type) {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(buffer)>>,
                                    const char, char>;
    return reinterpret_cast<Byte*>(reinterpret_cast<intptr_t>(buffer) + type.true_lower_bound());
  };
  if (bytes == 0) {
    return 0;
  }
  if (to_type.IsDense(to_count)) {
    from_type.Pack(from, from_count, 0, bytes, at(to, to_type));
    return bytes;
  }
  if (from_type.IsDense(from_count)) {
    to_type.Unpack(to, to_count, 0, bytes, at(from, from_type));
    return bytes;
  }
  // Blocks that stay in the first level cache between their two copies.
  std::array<char, 16384> block;
  for (int64_t done = 0; done < bytes;) {
    const int64_t length = std::min<int64_t>(block.size(), bytes - done);
    from_type.Pack(from, from_count, done, length, block.data());
    to_type.Unpack(to, to_count, done, length, block.data());
    done += length;
  }
  return bytes;
}

}  // namespace ferry::mpi

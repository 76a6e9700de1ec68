// An MPI datatype: the layout of one element's data, the call that made it, and functions that move
// elements to and from a packed stream (MPI 5.0, chapter 5).
//
// A datatype does not change once it is made, but for its name, its handle and whether it is
// committed. It keeps the datatypes that it was made of, and so their layouts, alive. Its
// constructor (constructors.h) works out how it is to be walked, in time proportional to the
// constructor's own arguments: MPI_Type_commit has nothing left to do.
//
// Units: bytes. Buffers are host memory here; ForEachRun serves code that copies other memory. A
// buffer may be null where displacements are addresses (MPI_BOTTOM). "Packed" is the data without
// gaps, in the machine's own representation. Calling thread: any, but set_name and set_handle are
// for the caller to order. Blocks: never.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ferry/mpi/mpi.h"
#include "mpi/base/attribute.h"
#include "mpi/base/failure.h"
#include "mpi/base/object.h"
#include "mpi/datatype/basic_type.h"
#include "mpi/datatype/shape.h"
#include "mpi/datatype/signature.h"

namespace ferry::mpi {

class Datatype;

// The call by which a datatype was made (MPI 5.0, section 5.1.13).
struct DatatypeContents {
  int combiner = MPI_COMBINER_NAMED;
  bool large = false;  // by a call whose counts are MPI_Count ("_c")
  std::vector<int64_t> integers;
  std::vector<int64_t> addresses;
  std::vector<int64_t> large_counts;
  std::vector<Ref<Datatype>> types;
};

class Datatype : public Object {
 public:
  // A run of the same datatype within an element, in packed order.
  struct Part {
    int64_t repeat;
    const Datatype* type;  // one of the contents' types
  };

  // A predefined datatype, committed. `contents` says how one without a name was asked for.
  explicit Datatype(const BasicType& basic, DatatypeContents contents = {});
  // For constructors.cc.
  struct Made {
    LayoutStore store;
    Shape shape;
    Signature signature;
    DatatypeContents contents;
    std::vector<Part> parts;
    bool committed = false;
  };
  explicit Datatype(std::unique_ptr<Made> made);

  // The size of the data of one element.
  int64_t size_bytes() const { return shape().size_bytes(); }
  int64_t lower_bound() const { return lower_bound_; }
  // Returns the distance from one element to the next.
  int64_t extent() const { return extent_; }
  int64_t true_lower_bound() const { return shape().data.low; }
  int64_t true_extent() const { return shape().data.high - shape().data.low; }

  bool IsPredefined() const { return predefined_ != nullptr; }
  // Returns its entry in the table; null: it is derived.
  const BasicType* predefined() const { return predefined_; }
  void Commit() { committed_.store(true, std::memory_order_relaxed); }
  bool IsCommitted() const { return committed_.load(std::memory_order_relaxed); }

  const Signature& signature() const { return made_->signature; }
  // Returns the one predefined datatype that it is made of; null: there is none, or more than one.
  const BasicType* basic() const { return signature().basic; }
  // Returns the number of basic() elements in one element.
  int64_t basics() const { return signature().basics; }
  const DatatypeContents& contents() const { return made_->contents; }
  // Returns the parts that it is made of, in packed order. Empty: it is predefined, or empty.
  const std::vector<Part>& parts() const { return made_->parts; }
  // For constructors.
  const Shape& shape() const { return made_->shape; }
  // Returns the number of types that lie one inside the other below this one.
  int depth() const { return depth_; }

  std::string_view name() const { return name_; }
  void set_name(std::string_view name) { name_ = name; }
  // Returns "the datatype MPI_INT" for error texts; most datatypes that programs make have no name.
  std::string Text() const { return name_.empty() ? "the datatype" : "the datatype " + name_; }
  // The program's handle for it; null until the front end has given it a handle.
  MPI_Datatype handle() const { return handle_.load(std::memory_order_acquire); }
  void set_handle(MPI_Datatype handle) { handle_.store(handle, std::memory_order_release); }
  AttributeSet& attributes() { return attributes_; }

  // ---- `count` elements, which lie an extent apart ----

  // Returns the bytes that the elements take packed. MPI_ERR_COUNT: count is negative, or a size or
  // displacement does not fit into 63 bits. The calls below require that there is no such error.
  Result<int64_t> PackedBytes(int64_t count) const;
  // Returns true if the elements are one run of bytes, which begins at the true lower bound.
  bool IsDense(int64_t count) const {
    return shape().layout.IsBlock() && (count <= 1 || extent_ == size_bytes());
  }
  // Returns the bounds of the elements' bytes, from the buffer on; [0, 0) if there are none.
  Bounds Span(int64_t count) const;

  // Copy packed bytes [offset, offset + bytes) of the elements at `buffer`. Finding the offset
  // takes a division or a binary search for each level of the type; nothing before it is looked at.
  void Pack(const void* buffer, int64_t count, int64_t offset, int64_t bytes, void* packed) const;
  void Unpack(void* buffer, int64_t count, int64_t offset, int64_t bytes, const void* packed) const;
  // Calls callback(displacement from the buffer, length) for each piece of the packed bytes
  // [offset, offset + bytes), in packed order; pieces that follow each other in memory are one.
  template <typename Callback>
  void ForEachRun(int64_t count, int64_t offset, int64_t bytes, Callback&& callback) const {
    using Target = std::remove_reference_t<Callback>;
    ForEachRun(
        count, offset, bytes,
        [](void* context, int64_t displacement, int64_t length) {
          (*static_cast<Target*>(context))(displacement, length);
        },
        const_cast<std::remove_const_t<Target>*>(&callback));
  }

  // ---- what a number of received bytes means (MPI 5.0, sections 3.2.5 and 5.1.11) ----

  // Whole elements; MPI_UNDEFINED: the bytes end within one.
  int64_t ElementCount(int64_t bytes) const;
  // Basic elements, of which a pair has two; MPI_UNDEFINED: the bytes end within one.
  int64_t BasicElementCount(int64_t bytes) const;
  // The bytes of so many basic elements, counted from the first of an element.
  // MPI_UNDEFINED: the type has none, or the result does not fit.
  int64_t BytesOfBasicElements(int64_t elements) const;

 private:
  using Run = void (*)(void* context, int64_t displacement, int64_t length);
  LayoutNode Elements(int64_t count) const { return RepeatNode(shape().layout, count, extent_); }
  void ForEachRun(int64_t count, int64_t offset, int64_t bytes, Run run, void* context) const;
  int64_t BasicElementsWithin(int64_t bytes) const;
  int64_t BytesWithin(int64_t elements) const;

  const BasicType* const predefined_ = nullptr;
  const std::unique_ptr<const Made> made_;
  const int64_t lower_bound_;
  const int64_t extent_;
  const int depth_;
  std::atomic<bool> committed_;
  std::string name_;
  std::atomic<MPI_Datatype> handle_{nullptr};
  AttributeSet attributes_;
};

// Copies the data of `from_count` elements to where `to_count` elements of another layout lie, as
// far as both reach. Returns the bytes copied. The buffers do not overlap.
int64_t CopyElements(const void* from, int64_t from_count, const Datatype& from_type, void* to,
                     int64_t to_count, const Datatype& to_type);

}  // namespace ferry::mpi

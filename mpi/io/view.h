// A view of a file: which of its bytes a process sees, in what units, and how they are represented
// (MPI 5.0, section 14.3). A view does not change once it is made; calls under way keep theirs.
//
// The data of a view are a stream of bytes, those of the filetype's tiles one behind the other. A
// *position* is a byte of that stream, an *offset* of MPI counts etypes of it, and a *place* is a
// byte of the file. No list of pieces is made: the filetype's loops are walked.
//
// Units: bytes, unless "etypes" stands there. Calling thread: any. Nothing blocks.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>

#include "mpi/base/failure.h"
#include "mpi/base/object.h"
#include "mpi/datatype/datatype.h"
#include "mpi/datatype/order.h"

namespace ferry::mpi {

struct Datarep;

enum class Representation : uint8_t { kNative, kInternal, kExternal32, kRegistered };

class View {
 public:
  // MPI_ERR_ARG: the displacement, the etype or the filetype is none that a view may have; the text
  // says why. MPI_ERR_TYPE: a type is not committed. MPI_ERR_UNSUPPORTED_DATAREP. `may_write`: the
  // file can be written to, so the filetype must not overlap.
  static Result<std::shared_ptr<const View>> Make(int64_t displacement, Datatype& etype,
                                                  Datatype& filetype, const std::string& datarep,
                                                  bool may_write);
  // The view that files begin with: bytes from the first on.
  static std::shared_ptr<const View> OfBytes();

  int64_t displacement() const { return displacement_; }
  Datatype& etype() const { return *etype_; }
  Datatype& filetype() const { return *filetype_; }
  const std::string& datarep() const { return datarep_; }
  Representation representation() const { return representation_; }
  // Of one etype's data in the file.
  int64_t etype_bytes() const { return etype_bytes_; }
  // Returns true if elements have other bytes in the file than in memory (representation.h).
  bool converts() const {
    return representation_ == Representation::kExternal32 ||
           representation_ == Representation::kRegistered;
  }
  // Returns the program's representation that the view has; null if it has another one.
  const Datarep* program_datarep() const { return program_datarep_; }
  // Returns true if the file's bytes from displacement() on are the view's, without holes.
  bool is_dense() const { return is_dense_; }
  // Returns true if the view has no data at all.
  bool is_empty() const { return tile_bytes_ == 0; }

  // Returns the position of an offset. MPI_ERR_ARG: it is negative, or too large.
  Result<int64_t> PositionOf(int64_t etypes) const;
  // Fails (MPI_ERR_ARG) unless the view has the bytes [position, position + bytes), all of them at
  // places that fit into 63 bits.
  Failure CheckReach(int64_t position, int64_t bytes) const;
  // Returns the place of a position. The view must have CheckReach(position, 1).
  int64_t PlaceOf(int64_t position) const;
  // Returns the first offset, in etypes, behind the last byte of a file of that size.
  int64_t EndOffset(int64_t file_bytes) const;

  // Returns places between which the bytes [position, position + bytes) lie. The view must have
  // CheckReach of them, and bytes > 0.
  Bounds SpanOf(int64_t position, int64_t bytes) const;

  // Calls callback(place, length) for each piece of the bytes [position, position + bytes), in the
  // order of the stream; pieces that follow each other in the file are one. The view must have
  // CheckReach of them.
  template <typename Callback>
  void ForEachPiece(int64_t position, int64_t bytes, Callback&& callback) const {
    if (is_dense_) {
      callback(displacement_ + first_ + position, bytes);
      return;
    }
    const int64_t tiles = (position + bytes - 1) / tile_bytes_ + 1;
    walked_->ForEachRun(tiles, position, bytes, [&](int64_t place, int64_t length) {
      callback(displacement_ + place, length);
    });
  }

 private:
  View() = default;

  int64_t displacement_ = 0;
  Ref<Datatype> etype_;
  Ref<Datatype> filetype_;
  Ref<Datatype> walked_;  // the filetype as it is in the file
  std::string datarep_;
  Representation representation_ = Representation::kNative;
  const Datarep* program_datarep_ = nullptr;
  int64_t etype_bytes_ = 0;
  int64_t tile_bytes_ = 0;   // of data, of one filetype
  int64_t tile_extent_ = 0;  // from one filetype to the next
  int64_t first_ = 0;        // of the filetype's first byte, behind the tile's beginning
  int64_t high_ = 0;         // of its last one, and 1
  bool is_dense_ = false;
};

}  // namespace ferry::mpi

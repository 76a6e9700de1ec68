#include "mpi/io/view.h"

#include <algorithm>

#include "mpi/base/handle_table.h"
#include "mpi/io/representation.h"

namespace ferry::mpi {
namespace {

std::string Text(int64_t number) { return std::to_string(number); }

Failure Refuse(std::string text) { return {MPI_ERR_ARG, std::move(text)}; }

Failure FindRepresentation(const std::string& datarep, Representation* representation,
                           const Datarep** program_datarep) {
  *program_datarep = nullptr;
  if (datarep == "native") {
    *representation = Representation::kNative;
  } else if (datarep == "internal") {
    *representation = Representation::kInternal;
  } else if (datarep == "external32") {
    *representation = Representation::kExternal32;
  } else {
    *representation = Representation::kRegistered;
    *program_datarep = FindDatarep(datarep);
    if (*program_datarep == nullptr) {
      return {MPI_ERR_UNSUPPORTED_DATAREP, "there is no data representation \"" + datarep +
                                               "\": it is none of MPI's, and was not registered"};
    }
  }
  return {};
}

// An etype of single bytes may be that of any filetype: programs say so where they count in bytes.
bool IsOfBytes(const Datatype& etype) {
  return etype.basic() != nullptr && etype.basic()->size_bytes == 1;
}

Failure CheckEtype(const Datatype& etype) {
  if (etype.size_bytes() == 0) {
    return Refuse("the etype has no data");
  }
  return etype.true_lower_bound() < 0 ? Refuse("the etype has a negative displacement") : Failure();
}

// MPI 5.0, sections 14.1.1 and 14.3.
Failure CheckFiletype(const Datatype& etype, const Datatype& filetype, bool may_write) {
  const int64_t etypes = filetype.size_bytes() / etype.size_bytes();
  if (filetype.size_bytes() % etype.size_bytes() != 0 ||
      (!IsOfBytes(etype) &&
       !(filetype.signature() == RepeatSignature(etype.signature(), etypes)))) {
    return Refuse("the filetype is not made of etypes: it has " + Text(filetype.size_bytes()) +
                  " bytes of data, and the etype " + Text(etype.size_bytes()));
  }
  if (filetype.size_bytes() == 0) {
    return {};
  }
  if (filetype.extent() <= 0) {
    return Refuse("the extent of the filetype is " + Text(filetype.extent()) +
                  "; it must be positive");
  }
  const RunOrder order = OrderOf(filetype);
  if (order.low < 0) {
    return Refuse("the filetype has the displacement " + Text(order.low) +
                  "; it must not be negative");
  }
  if (!order.is_monotone) {
    return Refuse("the displacements of the filetype decrease somewhere");
  }
  if (!order.is_disjoint && may_write) {
    return Refuse("the filetype overlaps itself, and the file is open for writing");
  }
  if (etype.IsDense(2) && order.grain % etype.size_bytes() != 0) {
    return Refuse("the holes of the filetype are no multiples of the etype's extent, " +
                  Text(etype.extent()));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const View>> View::Make(int64_t displacement, Datatype& etype,
                                               Datatype& filetype, const std::string& datarep,
                                               bool may_write) {
  if (displacement < 0) {
    return Refuse("the displacement is " + Text(displacement));
  }
  for (const Datatype* type : {&etype, &filetype}) {
    if (!type->IsCommitted()) {
      return Failure{MPI_ERR_TYPE, type->Text() + " is not committed; call MPI_Type_commit first"};
    }
  }
  const std::shared_ptr<View> view(new View());
  FERRY_RETURN_FAILURE(
      FindRepresentation(datarep, &view->representation_, &view->program_datarep_));
  FERRY_RETURN_FAILURE(CheckEtype(etype));
  FERRY_RETURN_FAILURE(CheckFiletype(etype, filetype, may_write));
  view->displacement_ = displacement;
  view->etype_ = Ref<Datatype>::Share(&etype);
  view->filetype_ = Ref<Datatype>::Share(&filetype);
  view->datarep_ = datarep;
  view->walked_ = view->filetype_;
  view->etype_bytes_ = etype.size_bytes();
  if (view->converts()) {
    Result<Ref<Datatype>> unit = TypeInFile(etype, view->program_datarep_);
    FERRY_RETURN_FAILURE(unit.failure());
    Result<Ref<Datatype>> walked = TypeInFile(filetype, view->program_datarep_);
    FERRY_RETURN_FAILURE(walked.failure());
    view->etype_bytes_ = unit.value()->size_bytes();
    view->walked_ = std::move(walked).value();
    if (view->etype_bytes_ == 0) {
      return Refuse("the etype takes no bytes in the data representation \"" + datarep + "\"");
    }
  }
  const Datatype& walked = *view->walked_;
  view->tile_bytes_ = walked.size_bytes();
  view->tile_extent_ = walked.extent();
  if (view->tile_bytes_ != 0) {
    const RunOrder order = OrderOf(walked);
    view->first_ = order.first;
    view->high_ = order.high;
    view->is_dense_ = walked.IsDense(2);
  }
  return std::shared_ptr<const View>(view);
}

std::shared_ptr<const View> View::OfBytes() {
  Datatype& byte = *datatypes.Find(MPI_BYTE);
  return Make(0, byte, byte, "native", true).value();
}

Result<int64_t> View::PositionOf(int64_t etypes) const {
  int64_t position = 0;
  if (etypes < 0) {
    return Refuse("the offset is " + Text(etypes));
  }
  if (__builtin_mul_overflow(etypes, etype_bytes(), &position)) {
    return Refuse("the offset " + Text(etypes) + " is beyond 2^63 bytes");
  }
  return position;
}

Failure View::CheckReach(int64_t position, int64_t bytes) const {
  if (bytes == 0) {
    return {};
  }
  if (is_empty()) {
    return Refuse("the filetype of the view is empty: there is nothing to read or write");
  }
  // The sizes of all tiles, too, as the walk through them needs them.
  int64_t end = 0;
  int64_t size = 0;
  int64_t place = 0;
  bool is_beyond = __builtin_add_overflow(position, bytes, &end);
  const int64_t tiles = is_beyond ? 0 : (end - 1) / tile_bytes_ + 1;
  is_beyond = is_beyond || __builtin_mul_overflow(tiles, tile_bytes_, &size) ||
              __builtin_mul_overflow(tiles, tile_extent_, &place) ||
              __builtin_add_overflow(place, high_, &place) ||
              __builtin_add_overflow(place, displacement_, &place);
  return is_beyond ? Refuse("the data reach beyond byte 2^63 of the file") : Failure();
}

int64_t View::PlaceOf(int64_t position) const {
  int64_t found = 0;
  ForEachPiece(position, 1, [&found](int64_t place, int64_t /*length*/) { found = place; });
  return found;
}

Bounds View::SpanOf(int64_t position, int64_t bytes) const {
  const int64_t last = position + bytes - 1;
  if (is_dense_) {
    return {PlaceOf(position), PlaceOf(last) + 1};
  }
  return {displacement_ + position / tile_bytes_ * tile_extent_ + first_,
          displacement_ + last / tile_bytes_ * tile_extent_ + high_};
}

int64_t View::EndOffset(int64_t file_bytes) const {
  const int64_t behind = file_bytes - displacement_;  // from the view's beginning
  if (is_empty() || behind <= first_) {
    return 0;
  }
  const int64_t etypes = tile_bytes_ / etype_bytes();
  // The last tile of which an etype begins before the end of the file; its first etypes do.
  const int64_t tile = (behind - first_ - 1) / tile_extent_;
  int64_t before = 1;
  for (int64_t beyond = etypes; before < beyond;) {
    const int64_t middle = before + (beyond - before) / 2;
    if (PlaceOf(tile * tile_bytes_ + middle * etype_bytes()) < file_bytes) {
      before = middle + 1;
    } else {
      beyond = middle;
    }
  }
  return tile * etypes + before;
}

}  // namespace ferry::mpi

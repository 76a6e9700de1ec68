#include "mpi/fortran/sections.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ferry::fortran {
namespace {

// ---- Datatypes that last as long as this code needs them ----------------------------------------

class Type {
 public:
  Type() = default;
  explicit Type(MPI_Datatype type) : type_(type) {}
  Type(Type&& other) noexcept : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
  Type& operator=(Type&& other) noexcept {
    std::swap(type_, other.type_);
    return *this;
  }
  ~Type() {
    if (type_ != MPI_DATATYPE_NULL) {
      PMPI_Type_free(&type_);
    }
  }
  MPI_Datatype get() const { return type_; }
  MPI_Datatype Leave() { return std::exchange(type_, MPI_DATATYPE_NULL); }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

Type Contiguous(MPI_Count count, MPI_Datatype of) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  PMPI_Type_contiguous_c(count, of, &made);
  return Type(made);
}

Type Repeated(MPI_Count count, MPI_Count stride, MPI_Datatype of) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  PMPI_Type_create_hvector_c(count, 1, stride, of, &made);
  return Type(made);
}

Type Resized(MPI_Datatype of, MPI_Count lower, MPI_Count extent) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  PMPI_Type_create_resized_c(of, lower, extent, &made);
  return Type(made);
}

// ---- Where the elements of an array are ---------------------------------------------------------

class Shape {
 public:
  explicit Shape(const Array& array) : element_(static_cast<MPI_Count>(array.element)) {
    for (int i = 0; i < array.rank; ++i) {
      const Array::Dimension& dimension = array.dimensions[i];
      const MPI_Count extent = dimension.upper - dimension.lower + 1;
      const MPI_Count stride = dimension.stride * array.span;
      if (extent <= 0) {
        // Empty; or the last dimension of an array of assumed size, which is one piece.
        depth_ = 0;
        return;
      }
      if (extent == 1) {
        continue;
      }
      if (depth_ > 0 && stride == Last().extent * Last().stride) {
        Last().extent *= extent;
      } else if (depth_ == 0 && stride == element_) {
        element_ *= extent;  // so many bytes without a gap
      } else {
        levels_[depth_++] = {extent, stride};
      }
    }
  }

  bool is_contiguous() const { return depth_ == 0; }
  // A piece has no gaps: it is an element of the array, or whole rows of them. Pieces are counted
  // below.
  MPI_Count piece_bytes() const { return element_; }
  MPI_Count pieces() const { return Below(depth_); }
  int depth() const { return depth_; }
  const auto& last() const { return levels_[depth_ - 1]; }
  // The number of pieces in one step of a level.
  MPI_Count Below(int level) const {
    MPI_Count count = 1;
    for (int i = 0; i < level; ++i) {
      count *= levels_[i].extent;
    }
    return count;
  }
  // Bytes from the first piece to another. Beyond the last one, the last level goes on.
  MPI_Count PlaceOf(MPI_Count piece) const {
    MPI_Count place = 0;
    for (int i = 0; i < depth_; ++i) {
      const MPI_Count index = i == depth_ - 1 ? piece : piece % levels_[i].extent;
      place += index * levels_[i].stride;
      piece /= levels_[i].extent;
    }
    return place;
  }
  void AddTo(Recipe* recipe) const {
    recipe->Add(element_);
    for (int i = 0; i < depth_; ++i) {
      recipe->Add(levels_[i].extent);
      recipe->Add(levels_[i].stride);
    }
  }
  // So many steps of a level, with all that is below it; `piece` is the datatype of a piece.
  Type Steps(int level, MPI_Count count, MPI_Datatype piece) const {
    Type made;
    for (int i = 0; i < level; ++i) {
      made = Repeated(levels_[i].extent, levels_[i].stride, i == 0 ? piece : made.get());
    }
    return Repeated(count, levels_[level].stride, level == 0 ? piece : made.get());
  }

 private:
  struct Level {
    MPI_Count extent;
    MPI_Count stride;  // bytes
  };
  Level& Last() { return levels_[depth_ - 1]; }

  MPI_Count element_;
  int depth_ = 0;
  Level levels_[15];
};

// ---- What is picked from an array ---------------------------------------------------------------

struct Item {
  explicit Item(MPI_Datatype type) {
    if (type != MPI_DATATYPE_NULL) {
      PMPI_Type_size_c(type, &size);
      PMPI_Type_get_extent_c(type, &lower, &extent);
      PMPI_Type_get_true_extent_c(type, &true_lower, &true_extent);
    }
  }
  // Items, one after the other, do not go over the end of a piece of this size: 0, or so many fill
  // it.
  MPI_Count CountIn(MPI_Count piece_bytes) const {
    const bool is_apart = true_lower >= 0 && true_lower + true_extent <= extent && extent > 0;
    return is_apart && piece_bytes % extent == 0 ? piece_bytes / extent : 0;
  }

  MPI_Count size = 0;  // 0: there is nothing to pick, or no such datatype
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  MPI_Count true_lower = 0;
  MPI_Count true_extent = 0;
};

struct Run {
  MPI_Count place;
  MPI_Count bytes;
};

void Append(std::vector<Run>* runs, MPI_Count place, MPI_Count bytes) {
  if (!runs->empty() && runs->back().place + runs->back().bytes == place) {
    runs->back().bytes += bytes;
  } else {
    runs->push_back({place, bytes});
  }
}

// The bytes of one item, in their order. MPI_Pack tells: it moves the numbers of the bytes, of
// which each goes has one byte.
std::vector<Run> BytesOf(MPI_Datatype type, const Item& item) {
  const MPI_Count length = item.true_lower + item.true_extent;
  std::vector<char> bytes(static_cast<size_t>(length));
  MPI_Count room = 0;
  PMPI_Pack_size_c(1, type, MPI_COMM_SELF, &room);
  std::vector<char> packed(static_cast<size_t>(room));
  std::vector<MPI_Count> places(static_cast<size_t>(item.size), 0);
  for (int shift = 0; shift < 64 && ((length - 1) >> shift) > 0; shift += 8) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<char>(i >> shift);
    }
    MPI_Count position = 0;
    PMPI_Pack_c(bytes.data(), 1, type, packed.data(), room, &position, MPI_COMM_SELF);
    for (size_t i = 0; i < places.size(); ++i) {
      places[i] |= static_cast<MPI_Count>(static_cast<unsigned char>(packed[i])) << shift;
    }
  }
  std::vector<Run> runs;
  for (const MPI_Count place : places) {
    Append(&runs, place, 1);
  }
  return runs;
}

// Items that go over the ends of pieces, as bytes.
Type AsBytes(const Shape& shape, const Item& item, MPI_Count count, MPI_Datatype type) {
  const std::vector<Run> in_item = BytesOf(type, item);
  std::vector<Run> runs;
  for (MPI_Count i = 0; i < count; ++i) {
    for (const Run& run : in_item) {
      MPI_Count at = i * item.extent + run.place;
      for (MPI_Count left = run.bytes; left > 0;) {
        const MPI_Count in_piece = at % shape.piece_bytes();
        const MPI_Count part = std::min(left, shape.piece_bytes() - in_piece);
        Append(&runs, shape.PlaceOf(at / shape.piece_bytes()) + in_piece, part);
        at += part;
        left -= part;
      }
    }
  }
  std::vector<MPI_Count> lengths;
  std::vector<MPI_Count> places;
  for (const Run& run : runs) {
    lengths.push_back(run.bytes);
    places.push_back(run.place);
  }
  MPI_Datatype made = MPI_DATATYPE_NULL;
  PMPI_Type_create_hindexed_c(static_cast<MPI_Count>(runs.size()), lengths.data(), places.data(),
                              MPI_BYTE, &made);
  return Type(made);
}

// The first `count` items, of which `in_piece` fill a piece: whole steps of each level, of the last
// one first, and what remains.
Type FirstItems(const Shape& shape, MPI_Count count, MPI_Count in_piece, MPI_Datatype type) {
  const Type piece = Contiguous(in_piece, type);
  std::vector<Type> types;
  std::vector<MPI_Count> places;
  MPI_Count pieces = count / in_piece;
  MPI_Count done = 0;
  for (int level = shape.depth() - 1; level >= 0; --level) {
    const MPI_Count below = shape.Below(level);
    if (const MPI_Count steps = pieces / below; steps > 0) {
      types.push_back(shape.Steps(level, steps, piece.get()));
      places.push_back(shape.PlaceOf(done));
      done += steps * below;
      pieces %= below;
    }
  }
  if (const MPI_Count rest = count % in_piece; rest > 0) {
    types.push_back(Contiguous(rest, type));
    places.push_back(shape.PlaceOf(done));
  }
  if (types.size() == 1) {
    return std::move(types.front());
  }
  std::vector<MPI_Datatype> handles;
  for (const Type& one : types) {
    handles.push_back(one.get());
  }
  const std::vector<MPI_Count> ones(types.size(), 1);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  PMPI_Type_create_struct_c(static_cast<MPI_Count>(types.size()), ones.data(), places.data(),
                            handles.data(), &made);
  return Type(made);
}

struct Picked {
  Type type;             // null: none serves
  bool is_short = true;  // false: it may be as long as the section
};

// A datatype of which one item is all that the call moves; of blocks, what it moves for one rank;
// of items that are placed anywhere, one of these.
Picked Pick(const Shape& shape, const Use& use, MPI_Count count, MPI_Datatype type,
            const Item& item) {
  const MPI_Count in_piece = item.CountIn(shape.piece_bytes());
  const MPI_Count last_steps = shape.Below(shape.depth() - 1);
  if (use.way == Way::kOne && in_piece > 0) {
    return {FirstItems(shape, count, in_piece, type)};
  }
  if (use.way == Way::kOne && !use.operates && item.true_lower >= 0 && item.extent >= 0) {
    return {AsBytes(shape, item, count, type), false};
  }
  // Blocks that are whole steps of the last level are equally far from each other.
  if (use.way == Way::kBlocks && in_piece > 0 && count % (in_piece * last_steps) == 0) {
    const MPI_Count steps = count / (in_piece * last_steps);
    const Type piece = Contiguous(in_piece, type);
    const Type block = shape.Steps(shape.depth() - 1, steps, piece.get());
    return {Resized(block.get(), 0, steps * shape.last().stride)};
  }
  if (use.way == Way::kPlaced && in_piece == 1 && shape.depth() == 1) {
    return {Resized(type, item.lower, shape.last().stride)};
  }
  return {};
}

// True if a buffer counts at this rank.
bool Counts(const Use& use) {
  if (use.root == nullptr || *use.root == MPI_ROOT) {
    return true;
  }
  const MPI_Comm comm = HandleOf<MPI_Comm>(*use.comm);
  int is_inter = 0;
  int rank = MPI_PROC_NULL;
  return comm != MPI_COMM_NULL && PMPI_Comm_test_inter(comm, &is_inter) == MPI_SUCCESS &&
         is_inter == 0 && PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS && rank == *use.root;
}

// A count and a datatype, where the way has them.
Recipe RecipeOf(const Shape& shape, Way way, MPI_Count count, int datatype) {
  Recipe recipe;
  recipe.Add(static_cast<MPI_Count>(way));
  recipe.Add(count);
  recipe.Add(datatype);
  shape.AddTo(&recipe);
  return recipe;
}

// See Array::IsPlain.
bool IsPacked(const Array& array) {
  return std::all_of(array.dimensions, array.dimensions + array.rank,
                     [](const Array::Dimension& dimension) { return dimension.lower == 0; });
}

}  // namespace

// ---- Buffers ------------------------------------------------------------------------------------

void Given::Describe(const Array& array, const Use& use, const MPI_Count* count,
                     const int* datatype) {
  if (use.way == Way::kAddress || !Counts(use)) {
    return;
  }
  const Shape shape(array);
  if (!use.is_over && IsPacked(array)) {
    is_good_ = false;
    return;
  }
  if (shape.is_contiguous()) {
    return;
  }
  const bool is_counted = use.way == Way::kOne || use.way == Way::kBlocks;
  if (is_counted && *count <= 0) {
    return;  // nothing moves, or the call itself reports it
  }
  if (use.way != Way::kPiece && use.way != Way::kWhole) {
    const bool is_predefined = *datatype >= 0 && *datatype < kPredefined;
    const MPI_Count items = is_counted ? *count : 0;
    const Recipe recipe = RecipeOf(shape, use.way, items, *datatype);
    if (is_predefined && Reuse(recipe)) {
      is_replaced_ = true;
      return;
    }
    const MPI_Datatype type = HandleOf<MPI_Datatype>(*datatype);
    const Item item(type);
    if (item.size == 0) {
      return;
    }
    if (use.way == Way::kItem) {
      is_good_ = item.CountIn(shape.piece_bytes()) > 0;
      return;
    }
    Picked picked = Pick(shape, use, items, type, item);
    if (picked.type.get() != MPI_DATATYPE_NULL) {
      Take(picked.type.Leave(), is_predefined && picked.is_short ? &recipe : nullptr);
      is_replaced_ = true;
      return;
    }
  }
  if (!use.is_over || use.way == Way::kPiece) {
    is_good_ = false;
    return;
  }
  if (const Recipe recipe = RecipeOf(shape, Way::kWhole, 0, 0); !Reuse(recipe)) {
    const Type piece = Contiguous(shape.piece_bytes(), MPI_BYTE);
    Take(shape.Steps(shape.depth() - 1, shape.last().extent, piece.get()).Leave(), &recipe);
  }
  Copy(array, shape.pieces() * shape.piece_bytes(), use.is_written);
}

// ---- The datatype that is used ------------------------------------------------------------------

bool Given::Reuse(const Recipe& recipe) {
  kept_ = FindKept(recipe);
  if (kept_ == nullptr) {
    return false;
  }
  type_ = kept_->type();
  number_ = kept_->number();
  return true;
}

// Without a recipe, it is for this call alone.
void Given::Take(MPI_Datatype type, const Recipe* recipe) {
  type_ = type;
  PMPI_Type_commit(&type_);
  number_ = NumberOf(type_);
  kept_ = recipe == nullptr ? nullptr : Keep(*recipe, type_);
}

void Given::GiveBack() {
  if (kept_ != nullptr) {
    kept_->Leave();
  } else {
    PMPI_Type_free(&type_);
  }
}

// ---- Copies -------------------------------------------------------------------------------------

// A copy by MPI itself: the array may be memory of a device.
void Given::Copy(const Array& array, MPI_Count bytes, bool is_written) {
  copy_.reset(new char[static_cast<size_t>(bytes)]);
  array_ = array.base;
  bytes_ = bytes;
  is_written_ = is_written;
  MPI_Count position = 0;
  PMPI_Pack_c(array_, 1, type_, copy_.get(), bytes_, &position, MPI_COMM_SELF);
  address_ = copy_.get();
}

void Given::Unpack() const {
  MPI_Count position = 0;
  PMPI_Unpack_c(copy_.get(), bytes_, &position, array_, 1, type_, MPI_COMM_SELF);
}

// ---- Sections that no call can use --------------------------------------------------------------

namespace {

int Code() {
  static const int code = [] {
    int made = MPI_ERR_BUFFER;
    if (PMPI_Add_error_code(MPI_ERR_BUFFER, &made) == MPI_SUCCESS) {
      PMPI_Add_error_string(made,
                            "this call cannot use a section of an array, which is not one piece of "
                            "memory, or of which the compiler has made a copy: pass a contiguous "
                            "array");
    }
    return made;
  }();
  return code;
}

}  // namespace

int RefuseSection(MPI_Comm comm) {
  PMPI_Comm_call_errhandler(comm, Code());
  return Code();
}

int RefuseSection(MPI_Win win) {
  PMPI_Win_call_errhandler(win, Code());
  return Code();
}

int RefuseSection(MPI_File file) {
  PMPI_File_call_errhandler(file, Code());
  return Code();
}

int RefuseSection(MPI_Session session) {
  PMPI_Session_call_errhandler(session, Code());
  return Code();
}

}  // namespace ferry::fortran

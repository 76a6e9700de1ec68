// The buffers of mpi_f08: arrays of any type and rank, and sections of them, as gfortran describes
// them (TYPE(*), DIMENSION(..); MPI 5.0, sections 19.1.3 and 19.1.12). C is handed an address: a
// section goes there as a datatype that picks its elements, so that calls that return before the
// data has moved are right, too. A use that no datatype serves gets a copy where the call ends with
// the data moved, and is refused elsewhere (MPI_ERR_BUFFER).
//
// The descriptor is gfortran's own, which has not changed since its release 8 (libgfortran.so.5),
// so that nothing here is compiled by it.
//
// Calling thread: any. Nothing waits or allocates unless the buffer is a section.
#pragma once

#include <cstddef>
#include <memory>

#include "mpi/fortran/binding.h"
#include "mpi/fortran/kept_types.h"

namespace ferry::fortran {

// gfortran's description of an array: it hands procedures the address of one.
struct Array {
  struct Dimension {
    ptrdiff_t stride;  // in units of `span`
    ptrdiff_t lower;
    ptrdiff_t upper;
  };

  void* base;  // of the first element
  size_t offset;
  size_t element;  // bytes
  int version;
  signed char rank;  // 0: no array
  signed char type;
  short attribute;  // NOLINT: the compiler's type
  ptrdiff_t span;   // bytes
  Dimension dimensions[15];

  // True if it surely is one piece of the program's memory. gfortran packs some sections (a
  // component of derived types, a part of strings) into a temporary, which it frees after the call:
  // only of those are the indices counted from 0.
  bool IsPlain() const {
    if (rank == 0) {
      return true;
    }
    const Dimension& first = dimensions[0];
    return rank == 1 && first.lower != 0 && first.stride * span == static_cast<ptrdiff_t>(element);
  }
};

// How a call uses a buffer.
enum class Way {
  kAddress,  // looks at the address alone
  kPiece,    // as one piece of memory, without a datatype
  kOne,      // so many items of a datatype
  kBlocks,   // so many items for each of several ranks, one after the other
  kPlaced,   // items anywhere in it, whose places are counted in items
  kItem,     // one item
  kWhole,    // in a way that no other datatype may serve: an operation, displacements in bytes
};

struct Use {
  Way way = Way::kOne;
  bool is_over = false;  // the data has moved when the call returns, so copies will do
  bool is_written = false;
  bool operates = false;  // bytes are no items: operations are carried out on them
  // Where the buffer counts: at this root of this communicator. Null: everywhere.
  const int* root = nullptr;
  const int* comm = nullptr;
};

// A buffer, its count and its datatype as C is handed them. Lives as long as the call.
class Given {
 public:
  Given(const Array& array, const Use& use, const MPI_Count* count, const int* datatype)
      : address_(array.base) {
    if (!array.IsPlain()) [[unlikely]] {
      Describe(array, use, count, datatype);
    }
  }
  ~Given() {
    if (type_ != MPI_DATATYPE_NULL) [[unlikely]] {
      GiveBack();
    }
  }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;

  // False: there is no right way to make the call.
  bool is_good() const { return is_good_; }
  void* address() const { return address_; }
  // Brings what the call has written from the copy into the array.
  void Finish() const {
    if (copy_ && is_written_) [[unlikely]] {
      Unpack();
    }
  }

 protected:
  // C is handed one item of another datatype than the program's.
  bool is_replaced() const { return is_replaced_; }
  int number() const { return number_; }

 private:
  void Describe(const Array& array, const Use& use, const MPI_Count* count, const int* datatype);
  bool Reuse(const Recipe& recipe);
  void Take(MPI_Datatype type, const Recipe* recipe);
  void GiveBack();
  void Copy(const Array& array, MPI_Count bytes, bool is_written);
  void Unpack() const;

  void* address_;
  bool is_good_ = true;
  bool is_replaced_ = false;
  bool is_written_ = false;
  int number_ = 0;  // of type_
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  KeptType* kept_ = nullptr;  // null: type_ was made for this call alone
  std::unique_ptr<char[]> copy_;
  void* array_ = nullptr;  // that copy_ is of
  MPI_Count bytes_ = 0;    // in copy_
};

// A buffer with the program's own kind of count: INTEGER, or that of large counts.
template <typename Count>
class Buffered : public Given {
 public:
  Buffered(const Array& array, const Use& use, Count* count, int* datatype)
      : Buffered(array, use, count, datatype, Wide(count)) {}
  // A buffer without a count, or whose counts are an array.
  Buffered(const Array& array, const Use& use, std::nullptr_t, int* datatype)
      : Given(array, use, nullptr, datatype), count_(nullptr), datatype_(datatype) {
    if (is_replaced()) {
      own_datatype_ = number();
      datatype_ = &own_datatype_;
    }
  }

  Count* count() { return count_; }
  int* datatype() { return datatype_; }

 private:
  Buffered(const Array& array, const Use& use, Count* count, int* datatype, MPI_Count wide)
      : Given(array, use, &wide, datatype), count_(count), datatype_(datatype) {
    if (is_replaced()) [[unlikely]] {
      own_count_ = 1;
      own_datatype_ = number();
      count_ = &own_count_;
      datatype_ = &own_datatype_;
    }
  }
  static MPI_Count Wide(const Count* count) { return *count; }

  Count own_count_ = 0;
  int own_datatype_ = 0;
  Count* count_;
  int* datatype_;
};

// Reports that a call cannot use a section: by the error handler of what it is about. Returns the
// code, of class MPI_ERR_BUFFER.
int RefuseSection(MPI_Comm comm);
int RefuseSection(MPI_Win win);
int RefuseSection(MPI_File file);
int RefuseSection(MPI_Session session);

}  // namespace ferry::fortran

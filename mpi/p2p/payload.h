// Payload: the data of a message, which the program named by buffer, count and datatype, as the one
// run of bytes that Ferry moves. If the elements have gaps, Ferry moves a copy: packed before a
// send, unpacked after a receive. Memory that only streams reach is packed by its device, or by
// copies of its runs.
//
// Calling thread: that of the message. Packing blocks while it copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu_backends/api/strided_copy.h"
#include "mpi/base/failure.h"
#include "mpi/datatype/datatype.h"

namespace ferry::mpi {

class Payload {
 public:
  Payload() = default;
  // `type` is kept until the payload ends.
  Payload(void* buffer, int64_t count, const Datatype& type)
      : buffer_(static_cast<std::byte*>(buffer)),
        count_(count),
        size_bytes_(count * type.size_bytes()) {
    if (type.IsDense(count)) [[likely]] {
      data_ = buffer_ + type.true_lower_bound();
    } else {
      type_ = Ref<const Datatype>::Share(&type);
    }
  }
  Payload(Payload&& other) noexcept { *this = static_cast<Payload&&>(other); }
  Payload& operator=(Payload&& other) noexcept;
  ~Payload() { FreeCopy(); }

  int64_t size_bytes() const { return size_bytes_; }
  // Returns true if the program's memory itself is the run; otherwise call Pack or MakeRoom before
  // data().
  bool is_dense() const { return !type_; }
  void* data() const { return data_; }
  // Returns true if CPUs do not reach the program's data, or part of them. Data may begin before or
  // behind the buffer that the program has named; at MPI_BOTTOM they may lie anywhere.
  bool IsByStream() const;

  // Packs all of the data into memory of the caller's; or bytes [offset, offset + bytes) of the
  // packed data.
  Failure CopyOut(void* packed) const { return CopyOut(packed, 0, size_bytes_); }
  Failure CopyOut(void* packed, int64_t offset, int64_t bytes) const;
  // Unpacks the first `bytes` of packed data to their places; or `bytes` from `offset` on.
  Failure CopyIn(const void* packed, int64_t bytes) const { return CopyIn(packed, 0, bytes); }
  Failure CopyIn(const void* packed, int64_t offset, int64_t bytes) const;
  // Lists the copies of which a CopyOut, or CopyIn, of all the data consists, for streams to do.
  std::vector<gpu::StridedCopy> CopiesWith(void* packed, bool is_pack) const;
  // Makes the packed copy of data to be sent. MPI_ERR_NO_MEM.
  Failure Pack();
  // Makes room for the packed data of a receive. MPI_ERR_NO_MEM.
  Failure MakeRoom();
  // Unpacks the first `bytes` that were received to their places.
  Failure Unpack(int64_t bytes);
  // Frees the copy, if there is one.
  void FreeCopy();

 private:
  Failure PackInto(void* packed, int64_t offset, int64_t bytes) const;
  Failure UnpackFrom(const void* packed, int64_t offset, int64_t bytes) const;

  std::byte* buffer_ = nullptr;
  int64_t count_ = 0;
  int64_t size_bytes_ = 0;
  std::byte* data_ = nullptr;
  Ref<const Datatype> type_;  // null: dense
};

}  // namespace ferry::mpi

// An MPI reduction operation, predefined or a program's own (MPI 5.0, section 6.9).
//
// Units: elements of a datatype, an extent apart. Buffers are host memory, by the address that
// MPI's displacements count from. Calling thread: any; a program's own function is called by the
// thread that reduces. Blocks: never, but for what that function does.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/reduction/kernels.h"
#include "ferry/mpi/mpi.h"
#include "mpi/base/failure.h"
#include "mpi/base/object.h"
#include "mpi/datatype/datatype.h"

namespace ferry::mpi {

using reduction::OpKind;

// Lends handles of datatypes. A program's function is called with a handle of the datatype; if the
// program has freed all its handles while a reduction is under way, one is lent for the call.
struct HandleLender {
  MPI_Datatype (*lend)(const Datatype& type) = nullptr;
  void (*take_back)(MPI_Datatype handle) = nullptr;
};

class Op : public Object {
 public:
  // Makes a predefined operation.
  Op(OpKind kind, MPI_Op handle, std::string_view name);
  // Make an operation of a program's own function, with counts as int or as MPI_Count.
  Op(MPI_User_function* function, bool commutes, HandleLender lender = {});
  Op(MPI_User_function_c* function, bool commutes, HandleLender lender = {});

  OpKind kind() const { return kind_; }
  bool IsPredefined() const { return kind_ != OpKind::kUser; }
  bool IsCommutative() const { return commutes_; }
  // The name that MPI gives a predefined operation.
  std::string_view name() const { return name_; }
  // The operation's handle; null until the front end has set it.
  MPI_Op handle() const { return handle_.load(std::memory_order_acquire); }
  void set_handle(MPI_Op handle) { handle_.store(handle, std::memory_order_release); }

  // Fails if a reduction may not use the operation for this datatype. MPI_ERR_OP: a predefined
  // operation was not made for such a type, or is for MPI_Accumulate only.
  Failure Check(const Datatype& type) const;

  // inout = in op inout, element by element. The operation must have passed Check.
  void Apply(const void* in, void* inout, int64_t count, const Datatype& type) const {
    Combine(in, inout, inout, count, type);
  }
  // out = a op b, where a's elements are those of the lower ranks. `out` may be `b`, and, where
  // the operation is predefined, `a`; otherwise the buffers do not overlap. Bytes that are in gaps
  // of the type are left alone by predefined operations.
  void Combine(const void* a, const void* b, void* out, int64_t count, const Datatype& type) const;

 private:
  void CallWithHandle(const void* in, void* inout, int64_t count, const Datatype& type) const;
  void CallFunction(const void* in, void* inout, int64_t count, int64_t extent,
                    MPI_Datatype handle) const;

  const OpKind kind_;
  const bool commutes_;
  MPI_User_function* const function_ = nullptr;
  MPI_User_function_c* const large_function_ = nullptr;
  const HandleLender lender_;
  const std::string_view name_;
  std::atomic<MPI_Op> handle_{nullptr};
};

// The kind, handle and name of a predefined operation.
struct PredefinedOp {
  OpKind kind;
  MPI_Op handle;
  std::string_view name;
};
std::span<const PredefinedOp> PredefinedOps();

}  // namespace ferry::mpi

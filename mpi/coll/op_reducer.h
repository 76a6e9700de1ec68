// Reduces packed elements of a datatype with an operation of MPI.
//
// Calling thread: one at a time. Blocks: never, but for what a program's own function does, and
// while a device reduces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "coll/messenger.h"
#include "mpi/datatype/datatype.h"
#include "mpi/op/device_reduction.h"
#include "mpi/op/op.h"

namespace ferry::mpi {

class OpReducer : public collective::Reducer {
 public:
  OpReducer() = default;
  // `op` has passed Check with `type`. Both outlive it, unless Keep is called.
  OpReducer(const Op& op, const Datatype& type) : op_(&op), type_(&type) {}
  // From now on they live as long as it does.
  void Keep() {
    kept_op_ = Ref<const Op>::Share(op_);
    kept_type_ = Ref<const Datatype>::Share(type_);
  }

  const Op& op() const { return *op_; }
  const Datatype& type() const { return *type_; }

  // Whether a thread that knows nothing of the library's locks may call Reduce: no handle has to be
  // lent to a program's own function.
  bool MayRunAnywhere() const { return op_->IsPredefined() || type_->handle() != nullptr; }

  // The device that had better reduce `count` elements of these buffers (by the addresses that
  // MPI's displacements count from; null: there is none), or kHostMemory. If there is one, Reduce
  // takes its memory too from now on, and leaves to it what lies there. It is one that has all
  // buffers in its memory, as a kernel of Ferry's wants them, and enough elements to be worth it.
  int ChooseDevice(std::initializer_list<const void*> buffers, int64_t count);

  // The reduction that Reduce would have the device do, for a stream to do. ChooseDevice has found
  // one.
  gpu::Reduction OnDevice(const void* left, const void* right, void* to, size_t count) const {
    return {to, left, right, count, on_device_->type, on_device_->op};
  }

  ErrorCode Reduce(const void* left, const void* right, void* to, size_t count) override;

 private:
  void ReduceDense(const char* left, const char* right, char* to, int64_t count);
  void ReduceUnpacked(const char* left, const char* right, char* to, int64_t count);

  const Op* op_ = nullptr;
  const Datatype* type_ = nullptr;
  std::optional<DeviceReduction> on_device_;
  Ref<const Op> kept_op_;
  Ref<const Datatype> kept_type_;
  std::vector<char> left_;  // elements as the datatype lays them out
  std::vector<char> right_;
};

}  // namespace ferry::mpi

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
  // Keeps the operation and the datatype alive as long as this object.
  void Keep() {
    kept_op_ = Ref<const Op>::Share(op_);
    kept_type_ = Ref<const Datatype>::Share(type_);
  }

  const Op& op() const { return *op_; }
  const Datatype& type() const { return *type_; }

  // Returns true if a thread that knows nothing of the library's locks may call Reduce: no handle
  // has to be lent to a program's own function.
  bool MayRunAnywhere() const { return op_->IsPredefined() || type_->handle() != nullptr; }

  // Returns the device that had better reduce `count` elements of these buffers (by the addresses
  // that MPI's displacements count from; null: no buffer), or kHostMemory. That device has all
  // buffers in its memory, as a kernel of Ferry's wants them, and there are enough elements to be
  // worth it. From then on Reduce takes memory of the device, too, and leaves it to the device.
  int ChooseDevice(std::initializer_list<const void*> buffers, int64_t count);

  // Returns the kernel that reduces elements in the device's memory at these addresses (or-ed
  // together). None: the device has none, or elements are not aligned as it wants them.
  std::optional<DeviceReduction> FindOn(int device, uintptr_t addresses) const;

  // Returns the reduction that Reduce would ask of the device, for a stream to carry out.
  // ChooseDevice must have found a device.
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

// Reduces elements of OpenSHMEM's types (OpenSHMEM 1.5, section 9.9.8) for the engine of
// collectives, by the loops that MPI's reductions use, too. Plain computing: any thread, nothing
// blocks.
#pragma once

#include <cstddef>

#include "coll/messenger.h"
#include "common/reduction/kernels.h"
#include "shmem/base/operations.h"

namespace ferry::shmem {

size_t BytesOf(ReduceType type);

class ElementReducer : public collective::Reducer {
 public:
  ElementReducer(ReduceType type, ReduceOp op);
  ErrorCode Reduce(const void* left, const void* right, void* to, size_t count) override;

 private:
  const reduction::ReduceKernel kernel_;  // null: the type does not have the operation
};

}  // namespace ferry::shmem

// Reduces packed elements of a datatype with an operation of MPI.
//
// Calling thread: one at a time. Blocks: never, but for what a program's own function does.
#pragma once

#include <cstddef>
#include <vector>

#include "client/mpi/collective/messenger.h"
#include "client/mpi/datatype/datatype.h"
#include "client/mpi/op/op.h"

namespace ferry::mpi {

class OpReducer : public Reducer {
 public:
  OpReducer() = default;
  // `op` has passed Check with `type`; both are kept.
  OpReducer(const Op& op, const Datatype& type)
      : op_(Ref<const Op>::Share(&op)), type_(Ref<const Datatype>::Share(&type)) {}

  ErrorCode Reduce(const void* left, const void* right, void* to, size_t count) override;

 private:
  void ReduceDense(const char* left, const char* right, char* to, int64_t count);
  void ReduceUnpacked(const char* left, const char* right, char* to, int64_t count);

  Ref<const Op> op_;
  Ref<const Datatype> type_;
  std::vector<char> left_;  // elements as the datatype lays them out
  std::vector<char> right_;
};

}  // namespace ferry::mpi

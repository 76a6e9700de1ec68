#include "mpi/io/meeting.h"

#include <cstring>

#include "coll/problem.h"
#include "mpi/base/connection.h"
#include "mpi/coll/channel.h"
#include "mpi/comm/agree.h"

namespace ferry::mpi {

Failure Meeting::Gather(const void* own, size_t bytes, void* all) {
  if (size() == 1) {
    std::memcpy(all, own, bytes);
    return {};
  }
  if (background_ != nullptr) {
    return background_->Gather(own, bytes, all);
  }
  Channel& channel = Channel::Of(comm_);
  channel.Name(call_);
  front_end->calls->NoteNumber(channel.call_number());
  channel.Enter();
  collective::Problem problem;
  problem.collective = collective::Collective::kAllgather;
  problem.block_bytes = bytes;
  collective::Binding binding;
  binding.input = own;
  binding.output = all;
  collective::RunFailure failure;
  channel.Run(&problem, binding, &failure);
  return failure.code == ErrorCode::kOk ? Failure{} : DescribeFailedRun(failure);
}

Failure Meeting::Agree(const Failure& own) {
  std::vector<int32_t> classes;
  FERRY_RETURN_FAILURE(Gather(static_cast<int32_t>(own.error_class), &classes));
  return FirstFailure(classes, rank(), own);
}

}  // namespace ferry::mpi

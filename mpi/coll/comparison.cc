#include "mpi/coll/comparison.h"

#include <utility>

namespace ferry::mpi {
namespace {

using collective::CallMismatch;
using collective::CallRecord;
using collective::Collective;
using collective::DataRecord;
using collective::Problem;
using collective::RunFailure;

int ClassOf(CallMismatch::Kind kind) {
  switch (kind) {
    case CallMismatch::Kind::kRoot:
      return MPI_ERR_ROOT;
    case CallMismatch::Kind::kOp:
      return MPI_ERR_OP;
    case CallMismatch::Kind::kInPlace:
      return MPI_ERR_BUFFER;
    case CallMismatch::Kind::kType:
      return MPI_ERR_TYPE;
    case CallMismatch::Kind::kCount:
      return MPI_ERR_COUNT;
    default:
      return MPI_ERR_OTHER;
  }
}

Failure FailureOf(const CallMismatch& mismatch) {
  return mismatch.is_one() ? Failure{ClassOf(mismatch.kind), mismatch.text} : Failure();
}

}  // namespace

Comparison::Comparison(Channel* channel, CallDescription own, uint32_t first_number,
                       std::function<void()> go_on)
    : channel_(channel),
      own_(std::move(own)),
      first_number_(first_number),
      go_on_(std::move(go_on)) {}

// Gathers by messages, whatever the communicator's blocking collectives take: no rank has to be in
// a call for it.
void Comparison::Gather(const void* own, size_t bytes, void* all) {
  Problem problem;
  problem.collective = Collective::kAllgather;
  problem.block_bytes = bytes;
  taken_ = channel_->TakeLocked(problem);
  const uint32_t number = first_number_ + (phase_ == Phase::kLists ? 1 : 0);
  channel_->runner_.Start(taken_.run(), {.input = own, .output = all}, number);
}

// Returns true if the run that Gather began is over and went well. If it is over and failed, the
// comparison is over, too.
bool Comparison::HasGathered() {
  if (!taken_.run()->is_done()) {
    return false;
  }
  const RunFailure failure = taken_.run()->failure();
  channel_->GiveBackLocked(std::move(taken_));
  if (failure.code != ErrorCode::kOk) {
    End(DescribeFailedRun(failure));
  }
  return failure.code == ErrorCode::kOk;
}

void Comparison::End(Failure failure) {
  failure_ = std::move(failure);
  phase_ = Phase::kOver;
  if (failure_.ok() && go_on_) {
    go_on_();
  }
}

bool Comparison::Step() {
  const auto ranks = static_cast<size_t>(channel_->size());
  switch (phase_) {
    case Phase::kBegin:
      phase_ = Phase::kCalls;
      records_.resize(ranks);
      Gather(&own_.record, sizeof(CallRecord), records_.data());
      return true;
    case Phase::kCalls: {
      if (!HasGathered()) {
        return is_done();
      }
      Failure failure = FailureOf(FindMismatch(records_));
      if (!failure.ok() || own_.record.has_lists == 0) {
        End(std::move(failure));
        return true;
      }
      phase_ = Phase::kLists;
      lists_.resize(ranks * own_.lists.size());
      Gather(own_.lists.data(), own_.lists.size() * sizeof(DataRecord), lists_.data());
      return true;
    }
    case Phase::kLists:
      if (HasGathered()) {
        End(FailureOf(FindListMismatch(records_, lists_)));
      }
      return is_done();
    case Phase::kOver:
      break;
  }
  return false;
}

}  // namespace ferry::mpi

// Program: a start that its rank carries out, in place of streams. See program.h.
//
// The steps run one after the other, in the order that streams use. In that order ranks never wait
// for each other in a circle (coll/stream_order.h), whether ranks or streams run
// the steps. A wait that is not over ends the turn.
#include <algorithm>

#include "client/triggered/program.h"

namespace ferry::client {

using Kind = ProgramStep::Kind;

void Program::StartByRank() {
  ++starts;
  next_by_rank_ = 0;
}

bool Program::AdvanceByRank(Memory* memory) {
  for (; is_by_rank() && error() == ErrorCode::kOk; ++next_by_rank_) {
    ErrorCode failure = ErrorCode::kOk;
    if (!IsDoneByRank(steps_[next_by_rank_], memory, &failure)) {
      return false;
    }
    if (failure != ErrorCode::kOk) {
      Part(failure);
    }
  }
  next_by_rank_ = SIZE_MAX;
  for (; !by_rank_.empty(); by_rank_.pop_back()) {  // left by a start that has failed
    pairs_.NoteOver();
  }
  return true;
}

// Does the step. False: it is not complete yet. *failure: why it cannot be done.
bool Program::IsDoneByRank(const Step& step, Memory* memory, ErrorCode* failure) {
  switch (step.kind) {
    case Kind::kStart: {
      Pair& pair = PairOf(step);
      *failure = pairs_.Start(pair);
      if (*failure == ErrorCode::kOk) {
        by_rank_.push_back(&pair);
      }
      return true;
    }
    case Kind::kWait: {
      Pair& pair = PairOf(step);
      if (!pairs_.IsOver(pair, failure)) {
        return false;
      }
      pairs_.NoteOver();
      std::erase(by_rank_, &pair);
      return true;
    }
    case Kind::kCopy:
      *failure = memory->Copy(step.to, step.from, step.size_bytes).code();
      return true;
    case Kind::kStrided:
      *failure = memory->CopyStrided(step.strided).code();
      return true;
    case Kind::kReduce:
      *failure = memory->Reduce(step.reduction).code();
      return true;
    case Kind::kCall:
      (void)Run(step, starts);  // error() says how it went
      return true;
  }
  return true;
}

}  // namespace ferry::client

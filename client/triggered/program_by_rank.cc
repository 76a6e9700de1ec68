#include "client/triggered/program_by_rank.h"

#include "client/triggered/program.h"

namespace ferry::client {

using Kind = ProgramStep::Kind;

void ProgramByRank::Start() {
  ++program_.starts;
  next_ = 0;
}

bool ProgramByRank::Advance(Memory* memory) {
  for (; next_ < program_.steps().size() && program_.error() == ErrorCode::kOk; ++next_) {
    ErrorCode failure = ErrorCode::kOk;
    if (!IsDone(next_, memory, &failure)) {
      return false;
    }
    if (failure != ErrorCode::kOk) {
      program_.Part(failure);
    }
  }
  next_ = kNone;
  for (; !started_.empty(); started_.pop_back()) {  // left by a start that has failed
    pairs_.NoteOver();
  }
  return true;
}

// Does the step. False: it is not complete yet. *failure: why it cannot be done.
bool ProgramByRank::IsDone(size_t at, Memory* memory, ErrorCode* failure) {
  const Program::Step& step = program_.steps()[at];
  switch (step.kind) {
    case Kind::kStart: {
      Pair& pair = program_.PairOf(step);
      *failure = pairs_.Start(pair);
      if (*failure == ErrorCode::kOk) {
        started_.push_back(&pair);
      }
      return true;
    }
    case Kind::kWait: {
      Pair& pair = program_.PairOf(step);
      if (!pairs_.IsOver(pair, failure)) {
        return false;
      }
      pairs_.NoteOver();
      std::erase(started_, &pair);
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
      (void)program_.Run(step, program_.starts);  // error() says how it went
      return true;
  }
  return true;
}

}  // namespace ferry::client

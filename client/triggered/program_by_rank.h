// A start of a program that its rank carries out, in place of streams.
//
// The steps run one after the other, in the order that streams use, so that partners' streams find
// what they wait for. In that order ranks never wait for each other in a circle
// (coll/stream_order.h), whether ranks or streams run the steps.
//
// Calling thread: the holder of the queues' lock. Nothing blocks, except for copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "client/memory/memory.h"
#include "client/triggered/pairs.h"

namespace ferry::client {

class Program;

class ProgramByRank {
 public:
  ProgramByRank(Program* program, Pairs* pairs) : program_(*program), pairs_(*pairs) {}

  // Begins a start. Call Advance from then on until it returns true.
  void Start();
  // Does the steps that can be done. A wait that is not over ends the turn: false. True: the start
  // is over, and the program's error() says how.
  bool Advance(Memory* memory);
  bool is_under_way() const { return next_ != kNone; }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  bool IsDone(size_t at, Memory* memory, ErrorCode* failure);

  Program& program_;
  Pairs& pairs_;
  size_t next_ = kNone;         // the step that the rank is at
  std::vector<Pair*> started_;  // and not waited for
};

}  // namespace ferry::client

// A call of a collective, once its arguments are understood: the problem, the program's buffers,
// and how elements are reduced. Common to blocking, nonblocking and persistent calls.
//
// Calling thread: that of the call, and of the one that completes it.
#pragma once

#include <cstdint>
#include <memory>

#include "client/mpi/base/failure.h"
#include "client/mpi/channel/channel.h"
#include "client/mpi/channel/collective_buffer.h"
#include "client/mpi/channel/comparison.h"
#include "client/mpi/channel/op_reducer.h"
#include "client/mpi/collective/problem.h"
#include "client/mpi/collective/runner.h"

namespace ferry::mpi {

// Which elements or blocks of a buffer the collective reads.
struct Portion {
  int64_t first = 0;
  int64_t count = 0;
};

struct CollectiveOperation {
  Problem problem;
  CollectiveBuffer input;
  CollectiveBuffer output;
  Portion input_read;
  Portion output_read;
  bool delivers = true;  // the output is this rank's to have
  bool reduces = false;
  OpReducer reducer;
  int device = kHostMemory;  // what reduces
  const char* call_name = "";
  std::unique_ptr<CallDescription> description;  // where ranks compare their calls
  uint32_t number = Channel::kNoNumber;          // of the channel's, there

  // Brings in what is read, where copies stand in for the program's buffers.
  Failure Fetch() { return input.is_copy() || output.is_copy() ? FetchCopies() : Failure(); }
  Binding MakeBinding() {
    return {input.base(), output.base(), reduces ? &reducer : nullptr, device};
  }
  // After the run: puts the result where the program wants it, or says what went wrong.
  Failure Finish(const RunFailure& failure) {
    return failure.code == ErrorCode::kOk && !output.is_copy() ? Failure() : FinishCopies(failure);
  }

 private:
  Failure FetchCopies();
  Failure FinishCopies(const RunFailure& failure);
};

}  // namespace ferry::mpi

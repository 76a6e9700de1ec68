// Copies to host memory, for the length of a collective, data that CPUs cannot load from
// (NodeLink::IsByStream).
//
// Calling thread: one at a time. Blocks while data are copied.
#pragma once

#include <cstddef>

#include "coll/board/board_run.h"
#include "coll/board/node_link.h"
#include "coll/messenger.h"
#include "coll/problem.h"
#include "common/error_code.h"

namespace ferry::collective {

class HostCopies {
 public:
  // Fetches the data that the collective reads. `link` outlives this; the problem has no blocks of
  // their own sizes.
  HostCopies(NodeLink* link, const Problem& problem, const Binding& binding)
      : link_(*link), binding_(binding) {
    if (const size_t bytes = InputBytes(problem); bytes != 0 && link_.IsByStream(binding.input))
        [[unlikely]] {
      FetchInput(bytes);
    }
    if (const size_t bytes = OutputBytes(problem); bytes != 0 && link_.IsByStream(binding.output))
        [[unlikely]] {
      FetchOutput(problem, bytes);
    }
  }
  ~HostCopies() {
    if (input_ != nullptr || output_ != nullptr) [[unlikely]] {
      GiveBack();
    }
  }
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // Returns kOk, or why the collective cannot begin: kOutOfMemory, or the error of a copy.
  ErrorCode error() const { return error_; }
  // The collective's data, or the copies of them.
  const Binding& binding() const { return binding_; }
  // Copies the result of the collective to its own place. Returns kOk, or the error of the copy.
  ErrorCode Deliver() {
    return written_bytes_ == 0 ? ErrorCode::kOk : link_.Copy(own_output_, output_, written_bytes_);
  }

 private:
  void FetchInput(size_t bytes);
  void FetchOutput(const Problem& problem, size_t bytes);
  void* Take(size_t bytes);
  void Fetch(void* copy, const void* from, size_t bytes);
  void GiveBack();

  NodeLink& link_;
  Binding binding_;
  void* input_ = nullptr;  // the copies, where there are any
  void* output_ = nullptr;
  void* own_output_ = nullptr;
  size_t written_bytes_ = 0;
  ErrorCode error_ = ErrorCode::kOk;
};

}  // namespace ferry::collective

// The steps of which a program consists (StreamQueues::MakeProgram).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/error_code.h"
#include "gpu_backends/api/reduction.h"
#include "gpu_backends/api/strided_copy.h"

namespace ferry::client {

// One step of a program: a stream takes the steps in order, between the program's start and its
// wait.
struct ProgramStep {
  enum class Kind : uint8_t {
    kStart,    // start a matched request, which proceeds by itself
    kWait,     // wait until the request is complete
    kCopy,     // between any two kinds of memory
    kStrided,  // copy, by the device
    kReduce,   // reduce, by the device
    kCall      // of a function, by a thread of the GPU backend; it must not call FrontEnd, but for
               // IsByStream
  };
  Kind kind = Kind::kStart;
  uint32_t request = 0;  // kStart, kWait: which of the program's requests
  // For a kStart of a send to another node: the receives from other nodes that the send follows.
  // They were made `in_place` and started before their waits. The send leaves once their messages
  // have come, with no step in between. At most shm::kMostFollowed.
  std::vector<uint32_t> follows = {};
  void* to = nullptr;  // kCopy
  const void* from = nullptr;
  uint64_t size_bytes = 0;
  gpu::StridedCopy strided;         // kStrided
  gpu::Reduction reduction;         // kReduce
  std::function<ErrorCode()> call;  // kCall
};

}  // namespace ferry::client

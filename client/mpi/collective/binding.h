// Where the data of one call of a collective lie, and how the call went.
//
// Plain data: any thread, nothing blocks.
#pragma once

#include <cstddef>

#include "client/mpi/collective/messenger.h"
#include "common/error_code.h"

namespace ferry::mpi {

// Where a call's data lies, and how they are reduced (null where nothing is).
struct Binding {
  const void* input = nullptr;
  void* output = nullptr;
  Reducer* reducer = nullptr;
  int device = kHostMemory;  // what reduces: the device whose memory the data are in, or CPUs
};

// Why a run failed.
struct RunFailure {
  // How another rank's call differs from this one's.
  enum class Mismatch {
    kNone,
    kSize,        // another one failed there, or was called with other counts
    kCollective,  // `other` is its Collective
    kRoot         // `other` is its root
  };

  ErrorCode code = ErrorCode::kOk;
  int peer = -1;  // the rank whose message or call it was; -1: none's
  Mismatch mismatch = Mismatch::kNone;
  size_t expected_bytes = 0;
  size_t received_bytes = 0;
  int other = 0;
};

}  // namespace ferry::mpi

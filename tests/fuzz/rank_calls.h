// The calls of ranks at the attach socket, right and wrong, as a fuzzer's input says.
//
// Any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "proto/attach_protocol.h"
#include "tests/fuzz/fuzz_input.h"

namespace ferry::fuzz {

// A packet for a rank of a job of three, mostly a correct call, sometimes cut off or spoilt.
// `ends_jobs`: those that end the rank or its job, too.
std::vector<std::byte> AnyRankCall(FuzzInput& input, bool ends_jobs);

}  // namespace ferry::fuzz

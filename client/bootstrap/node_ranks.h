// Which ranks of a job share a node.
//
// Calling thread: that of the exchange.
#pragma once

#include <cstdint>
#include <vector>

#include "client/bootstrap/exchange.h"
#include "common/status.h"

namespace ferry::client {

// Has all ranks tell each other on which node they are, and returns those of this one's, in order:
// the ranks that see the same running kernel under the same host name (a container has its own).
// Blocks for a fence. The exchange's errors.
StatusOr<std::vector<uint32_t>> FindRanksOfNode(Exchange* exchange);

}  // namespace ferry::client

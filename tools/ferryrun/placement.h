// Which node each rank lives on. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "common/status.h"
#include "config/options.h"

namespace ferry::tools {

// kInvalidArgument when that many ranks on that many nodes are nonsense or above the limits of
// `options`; the message names the number and the way out.
Status CheckPlacement(uint64_t ranks, uint64_t nodes, const config::Options& options);

// The node of each rank: blocks of consecutive ranks whose sizes differ by at most one, larger
// first.
std::vector<uint32_t> PlaceInBlocks(uint32_t ranks, uint32_t nodes);

}  // namespace ferry::tools

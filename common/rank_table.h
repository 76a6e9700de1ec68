// Where the ranks of a job are, in few bytes: the table travels to every host of a job, and there
// to its daemon.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace ferry {

// Writes the node of each rank as progressions (first node, step, number of ranks), each of three
// numbers of 7 bits a byte, as Protocol Buffers write them. Ranks that fill one node after the
// other are a progression for each node, those that are dealt out to nodes in turn one for each
// turn.
std::string PackNodes(const std::vector<uint32_t>& node_of_rank);

// Reads such a table of `size` ranks, which may take far more memory than the text: the caller
// bounds it. kCorrupt: it is none.
StatusOr<std::vector<uint32_t>> UnpackNodes(std::string_view text, uint32_t size);

}  // namespace ferry

// The traffic of a stretch of the program, by Ferry's counters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ferry/ferry.hpp"

namespace examples {

// The counters of this rank, by index.
std::vector<uint64_t> ReadCounters();

// Collective: the increase since `before`, added up over all ranks; known to rank 0.
std::vector<uint64_t> TrafficSince(const ferry::Session& session,
                                   const std::vector<uint64_t>& before);

// Collective: the sum of the ranks' values; known to rank 0.
uint64_t SumOfRanks(const ferry::Session& session, uint64_t value);

// "1 node", "2 nodes": how many the job runs on.
std::string NodesText(const ferry::Session& session);

// Messages and bytes sent, and a table of the share that took each path.
std::string TrafficText(const std::vector<uint64_t>& traffic);

}  // namespace examples

// The ranks of a large job in few lines, for people. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/control.pb.h"
#include "tools/display/table.h"

namespace ferry::tools {

// So many ranks have a line each, unless all are wanted; of more there are lines for groups.
inline constexpr size_t kMostRanksListed = 64;
inline constexpr char kHowToListAll[] = "(--all lists each rank)\n";

// "0-511, 513-1023": in order, each once; the first eight ranges.
std::string RanksText(std::vector<uint32_t> ranks);

// The sessions by job and state, with sums; then by the calls that their ranks wait in.
std::string SessionGroups(const control::SessionsReply& reply, const Terminal& terminal = {});

// The parts of a counter's scope: a job, and one of its ranks.
struct CounterScope {
  std::string job;
  std::optional<uint32_t> rank;
};
// Reads "job ID rank N"; of another one `job` is all of it.
CounterScope ReadScope(const std::string& text);
// Returns true if more ranks than kMostRanksListed have counters.
bool HasManyRanks(const control::CountersReply& reply);
// Each counter by job: the sum over its ranks, the most of one, and of which.
std::string CounterGroups(const control::CountersReply& reply, const Terminal& terminal = {});

// The pairs of ranks by job, and by how they are linked, or why not; then the links by job.
std::string LinkGroups(const control::LinksReply& reply, const Terminal& terminal = {});

}  // namespace ferry::tools

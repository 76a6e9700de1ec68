// The ranks of a large job in few lines, for people. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace ferry::tools

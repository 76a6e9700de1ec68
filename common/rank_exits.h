// How the processes of ranks have ended, as a launcher that has started them counts them for their
// daemon, which cannot learn it: a process's exit code goes to its parent alone (waitid(2)).
//
// Plain data and pure functions; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ferry {

// The metadata of a launcher's gRPC calls: with CreateJob it says "later" if the launcher will tell
// how the processes of the ranks have ended, and with DestroyJob how they have (TextOf).
inline constexpr char kExitsMetadata[] = "ferry-exits";

struct RankExits {
  std::optional<int> job = {};           // the exit code that the launcher itself ends with
  std::map<int, uint32_t> codes = {};    // by exit code, 0 to 255: how many ranks
  std::map<int, uint32_t> signals = {};  // by the signal that killed them

  // All that have been counted.
  uint64_t Ranks() const;
};

// "1;0*62,3*1;9*1": the job's exit code, or nothing; the ranks' codes; their signals.
std::string TextOf(const RankExits& exits);
// Nothing: it is no such text, or one with other numbers than processes and jobs have.
std::optional<RankExits> ReadRankExits(std::string_view text);

}  // namespace ferry

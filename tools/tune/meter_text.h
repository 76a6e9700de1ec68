// The text in which ferry-meter, which measures collectives as the ranks of a job, reports to
// `ferryctl tune`: a line for each communicator, and for each time.
//
//   communicator 0 0,0,1      number; the node of each of its ranks
//   time 0 bcast 1024 12.75   communicator, collective, bytes, microseconds of a call
//
// and to `ferryctl doctor` in one line:
//
//   pair 0.21 38.5            microseconds of a message of kPairFewBytes, of one of kPairManyBytes
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "coll/problem.h"
#include "common/status.h"

namespace ferry::tools {

// Names a measured time: a collective on one communicator, with so many bytes.
struct MeterKey {
  uint32_t communicator = 0;
  collective::Collective collective = collective::Collective::kBarrier;
  uint64_t size_bytes = 0;

  auto operator<=>(const MeterKey&) const = default;
};

struct MeterResult {
  std::vector<std::vector<int>> node_of_rank;  // by communicator
  std::map<MeterKey, double> microseconds;
};

std::string CommunicatorLine(uint32_t communicator, const std::vector<int>& node_of_rank);
std::string TimeLine(const MeterKey& key, double microseconds);

// kCorrupt, with the line, for text that ferry-meter would never write.
StatusOr<MeterResult> ReadMeter(std::string_view text);

// Messages of two ranks, one way.
inline constexpr uint64_t kPairFewBytes = 8;
inline constexpr uint64_t kPairManyBytes = 1 << 20;
struct PairTimes {
  double few_us = 0;
  double many_us = 0;
};
std::string PairLine(const PairTimes& times);
// kCorrupt for any other text.
StatusOr<PairTimes> ReadPair(const std::string& text);

// The collectives that can be measured: all but those of neighbours, which have one algorithm each.
std::vector<collective::Collective> MeasuredCollectives();
// Returns the collective of this name, as in tables. kInvalidArgument lists the valid names.
StatusOr<collective::Collective> MeasuredCollective(std::string_view name);

}  // namespace ferry::tools

// Reads the profile of one measured rank (shm/layout/profile_layout.h) from a copy of its memory:
// nothing in it is trusted, and what no correct rank writes is left out.
//
// Plain data and pure functions; any thread, nothing blocks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "shm/counters.h"
#include "shm/layout/call_names.h"
#include "shm/layout/profile_layout.h"

namespace ferry::tools {

// Of all calls of one name, communicator and peer.
struct CallSum {
  shm::CallName name = shm::CallName::kNone;
  shm::CallName inner = shm::CallName::kNone;
  bool has_group = false;
  uint32_t group = 0;
  int32_t peer = shm::kCallNoRank;  // a rank of the job, kCallNoRank or kCallAnyRank
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t time_ns = 0;
  uint64_t waited_ns = 0;
  uint64_t longest_ns = 0;
  uint64_t waits = 0;
};

struct PeerSum {
  uint32_t peer = 0;
  shm::ProfilePeer sums{};
};

struct Arrival {
  uint64_t number = 0;
  uint64_t enter_ns = 0;
  uint64_t leave_ns = 0;
  uint64_t bytes = 0;
  uint32_t group = 0;
  shm::CallName name = shm::CallName::kNone;
};

struct FileSum {
  std::string name;  // printable ASCII, from the root on or its end
  shm::ProfileFile sums{};
};

struct RankProfile {
  bool is_measured = false;  // else only `refusal`, if it is known
  std::string refusal = {};
  uint32_t node = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;  // 0: it did not leave in good order
  uint64_t last_ns = 0;
  uint32_t cpus = 0;
  uint32_t node_cpus = 0;
  uint32_t node_ranks = 0;
  bool is_crowded = false;
  shm::ProfileTotals totals{};
  shm::ProfileSizes sizes{};
  std::vector<CallSum> calls = {};
  std::map<uint32_t, std::string> groups = {};  // names of communicators
  std::vector<Arrival> arrivals = {};
  std::vector<FileSum> files = {};
  std::vector<PeerSum> peers = {};                        // those with any message
  std::array<uint64_t, shm::kStatisticCount> counters{};  // zeros where the session was not read
  std::map<shm::CallName, shm::CallTotals> counted = {};  // collectives and one-sided operations

  // From its joining to its end, or to its last call.
  uint64_t LifeNs() const {
    const uint64_t end = end_ns != 0 ? end_ns : last_ns;
    return end > begin_ns ? end - begin_ns : 0;
  }
  uint64_t Counter(shm::Statistic id) const { return counters[static_cast<size_t>(id)]; }
};

// The bytes of one rank as they come, in pieces. Bytes of the trace are not kept.
class RankCollector {
 public:
  // The most of a rank that is kept: more than any correct rank of a job of any size writes.
  static constexpr uint64_t kMostBytes = 4 << 20;

  // `segment_bytes`: as JobProfilePart has it. Pieces that lie elsewhere are dropped.
  void Add(uint64_t offset, std::string_view piece, uint64_t segment_bytes);
  // Reads what has come of rank `rank` of a job of `job_size`. kCorrupt, with the reason: no
  // correct rank writes such.
  StatusOr<RankProfile> Take(uint32_t rank, uint32_t job_size) const;

 private:
  std::string bytes_;
  std::string appendix_;
};

}  // namespace ferry::tools

// Picture: makes of each Look the state that the page shows, as JSON.
//
// One thread at a time. Nothing blocks. The state is an object of objects, without null and with
// arrays only of plain values, so that the difference of two states is a JSON Merge Patch
// (event_log.h). It has nothing that changes without a reason: times in place of ages, and rates
// and totals of three digits.
//
//   {"uid": 1000, "trouble": "", "names": {UID: NAME},
//    "daemons": {RUN_DIRECTORY: {"node", "kind", "pid", "state", "since", "cpu", "memory",
//                                "sessions", "trouble", "peers": {ADDRESS: {}},
//                                "users": {UID: {"ranks": [used, limit], ...}},
//                                "nics": {N: {}}, "gpus": {N: {}}}},
//    "paths": {"lane" | "one copy" | "direct link" | "daemon": {"rate", "total"}},
//    "jobs": {ID: {"label", "uid", "size", "joined", "state", "ranks": {RANK: {}},
//                  "pairs": {"0>5": {}},
//                  "rates": {NODE: bytes per second that its ranks send},
//                  "flows": {"0>1": bytes per second from node 0 to node 1},
//                  "causes": {RANK: {"why", "since", "waits", "deadlock"}}}}}
//
// Times are milliseconds since 1970, rates bytes or messages per second. A cause is a rank that
// others wait for, directly or through others, while it waits for none itself, or the rank with the
// smallest number of a circle: "waits" says how many ranks do so, "why" is the sentence of the one
// that is nearest to it, and each of these ranks has the number as its "cause".
//
// A job of more than kMostTold ranks is shown "rough": the numbers of a single rank have one digit
// and change seldom, sums have three; and the sentences stand with the job's causes, not its ranks.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/ferryctl/web/look.h"

namespace ferry::tools {

// The most pairs of ranks of a job that the page is told of: those that move most.
inline constexpr size_t kMostPairs = 128;
// In a job of so many ranks each is told of in full.
inline constexpr size_t kMostTold = 128;
inline constexpr size_t kMostCauses = 8;
// A wait of a rank is told with its sentence once it is that old; before, a healthy job waits.
inline constexpr uint64_t kNotableWaitMs = 500;

class Picture {
 public:
  // Draws the state at `look`. Rates are those since the Draw before; those of a daemon, rank or
  // interface that is new are 0.
  nlohmann::json Draw(const Look& look);

 private:
  // A count that grows, as it was at some time.
  struct Mark {
    uint64_t count = 0;
    uint64_t time_ns = 0;
    double rate = 0;
    uint64_t serial = 0;  // of the Draw that looked at it last
  };

  // Ranks that wait for long, as their daemons have told them, by job.
  using LongWaits = std::map<std::string, std::vector<const control::RankWait*>>;

  // Notes `count` and returns its growth per second since it was noted before. A count that has
  // shrunk began anew.
  double Rate(const std::string& name, uint64_t count);
  // A time that is computed from an age wobbles: the one of the Draw before is kept if it is near.
  uint64_t SteadyTime(const std::string& name, uint64_t unix_ms);
  void Forget();

  void DrawDaemon(const DaemonLook& daemon, nlohmann::json* state);
  void DrawJobs(const DaemonLook& daemon, nlohmann::json* jobs);
  void DrawWaits(const DaemonLook& daemon, nlohmann::json* jobs, LongWaits* waits);
  void DrawLinks(const DaemonLook& daemon, nlohmann::json* jobs);
  void DrawRates(const DaemonLook& daemon, nlohmann::json* jobs) const;
  void DrawPaths(const DaemonLook& daemon, nlohmann::json* paths);

  uint64_t unix_ms_ = 0;
  uint64_t now_ns_ = 0;
  uint64_t serial_ = 0;
  std::map<std::string, Mark> marks_;
  std::map<std::string, std::pair<uint64_t, uint64_t>> times_;  // time, serial
};

// So many significant digits; as a whole number where it has no others.
double Rounded(double value, int digits = 3);

}  // namespace ferry::tools

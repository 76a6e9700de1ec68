// The rates that `ferryctl top` shows, between two looks at a daemon. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/control.pb.h"
#include "tools/display/view.h"

namespace ferry::tools {

// One look at a daemon.
struct TopSample {
  uint64_t time_ns = 0;  // of the looker's monotonic clock
  control::StatusReply status;
  control::SessionsReply sessions;
  control::CountersReply counters;
  control::NicsReply nics;
};

struct SessionRates {
  std::string name;  // JOB.RANK
  std::string state;
  double sent_messages = 0;  // all rates are per second
  double sent_bytes = 0;
  double received_messages = 0;
  double received_bytes = 0;
  double errors = 0;
  double queued_sends = 0;  // sends that began to wait
  uint64_t queued = 0;      // these four are as they stand
  uint64_t credits_out = 0;
  uint64_t unexpected = 0;
  uint64_t unfinished = 0;
  std::string poison;
  google::protobuf::RepeatedPtrField<control::RankCall> calls;  // that it is in now
};

struct PathRates {
  std::string path;  // "inline"
  double messages = 0;
  double bytes = 0;
};

struct TopRates {
  double seconds = 0;
  double cpu_share = 0;  // of one core, used by the daemon
  std::vector<SessionRates> sessions;
  std::vector<PathRates> paths;  // of all sessions; those never used are left out
  double nic_sent_messages = 0;
  double nic_sent_bytes = 0;
  double nic_received_messages = 0;
  double nic_received_bytes = 0;
  double nic_errors = 0;
  uint64_t nic_outstanding = 0;
  uint64_t staging_blocks = 0;
  uint64_t staging_busy = 0;
  uint64_t staging_waits = 0;
};

// `before` may be of another life of the daemon, or lack sessions that are new: numbers that are
// not in `before`, or have shrunk since, count from 0. Two samples of one time give rates of 0.
TopRates RatesBetween(const TopSample& before, const TopSample& after);

// One picture of `ferryctl top`, as text and as JSON. As wide as the terminal; numbers that mean
// trouble have no column if they are zero for all ranks. Of many ranks, unless `all` are wanted,
// the text has those with errors and the busiest ones, after a line about all.
View TopView(const control::StatusReply& status, const TopRates& rates, bool all = false,
             const Terminal& terminal = {});

}  // namespace ferry::tools

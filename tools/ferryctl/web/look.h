// A Look: what the daemons of a user said at one time, in proto/control.proto's words. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/control.pb.h"

namespace ferry::tools {

// The answers of one daemon. Those that did not come are empty.
struct DaemonLook {
  std::string run_directory;
  std::string kind;     // DaemonKindText
  std::string trouble;  // why the daemon, or one of its answers, is missing; empty: none is
  control::StatusReply status;
  control::SessionsReply sessions;
  control::WhyReply why;  // of all ranks of its jobs
  control::LinksReply links;
  control::CountersReply counters;  // of all ranks, or of those whose turn it is
  control::NicsReply nics;
  control::GpusReply gpus;
};

// A question about one rank.
struct RankQuestion {
  std::string job_id;
  uint32_t rank = 0;
};

struct Look {
  uint64_t unix_ms = 0;       // of the wall clock, for people
  uint64_t monotonic_ns = 0;  // MonotonicNs, for rates
  uint32_t uid = 0;           // of the user who looks
  std::string trouble;        // why there is no daemon; empty: there is one
  std::vector<DaemonLook> daemons;
  std::map<uint32_t, std::string> user_names;  // of the users of whom the daemons tell
  std::map<std::string, std::string> labels;   // by job id: what people call it
};

}  // namespace ferry::tools

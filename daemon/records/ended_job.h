// The record of a job that has ended on this node, for the log and for the folder of job_records.
//
// Plain data and pure functions; any thread, nothing blocks. The size of a record is bounded,
// whatever the size of the job.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/rank_exits.h"
#include "daemon/jobs/job.h"
#include "daemon/plane/data_plane.h"
#include "shm/counters.h"
#include "shm/histograms.h"

namespace ferry::daemon {

struct EndedJob {
  std::string id;
  std::string node;  // ours
  uid_t uid = 0;
  std::string name;  // as JobSpec has these three
  std::string program;
  std::string slurm_id;
  uint32_t ranks = 0;  // of all nodes
  uint32_t nodes = 0;
  uint32_t local_ranks = 0;     // of this node, as everything below
  uint32_t attached_ranks = 0;  // that came
  uint32_t died_ranks = 0;      // and that ended otherwise than by leaving
  uint64_t began_ns = 0;        // since 1970
  uint64_t ended_ns = 0;
  uint64_t daemon_cpu_us = 0;      // that ferryd used meanwhile, for all its jobs
  std::string outcome;             // "completed", "aborted", "failed"; "unused": no rank came
  std::string reason;              // of the last three
  std::optional<int> exit_code;    // that a rank here gave with its abort
  std::optional<RankExits> exits;  // of the ranks' processes; none: their launcher has not told
  double rank_seconds = 0;         // for which the ranks were attached, all together
  shm::Histograms histograms;
  // The other nodes with most traffic, and the sum of the others.
  struct Peer {
    std::string address;  // host:port of its daemon
    NodeTraffic traffic;
  };
  std::vector<Peer> peers;
  uint64_t further_peers = 0;
  NodeTraffic further_traffic;
  shm::Tally tally;
};

// The facts that do not stand in the job: the name of this node, the processor time of this process
// since its start, the time of day, the traffic by node (DataPlane::Traffic).
struct Surroundings {
  std::string node;
  uint64_t daemon_cpu_us = 0;
  uint64_t now_ns = 0;
  std::vector<NodeTraffic> traffic = {};
  uint64_t monotonic_ns = 0;
};
EndedJob Account(const JobRecord& job, const Surroundings& around);
// Adds what the launcher of the job has told, unless that cannot be true of the ranks here.
void NoteExits(const std::optional<RankExits>& exits, EndedJob* job);

// "job x: completed after 12.3 s; 4 of 8 ranks here, waited for 41 % of their time, sent 12
// messages, 4096 bytes; exit code 3".
std::string Sentence(const EndedJob& job);
// The members of the record as JSON, without braces; `user` may be empty.
std::string RecordMembers(const EndedJob& job, const std::string& user);
// The name of the record's file: names sort by time.
std::string RecordFileName(const EndedJob& job);

}  // namespace ferry::daemon

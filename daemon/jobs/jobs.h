// Jobs is what the parts of a JobRegistry share: the table of jobs, and the registry's functions
// for them.
//
// Thread: the control thread, as all of the registry.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "daemon/jobs/job.h"
#include "daemon/links/link_policy.h"
#include "daemon/peers/node_links.h"
#include "daemon/session/session.h"

namespace ferry::daemon {

struct RegistryLimits {
  uint64_t max_ranks = 65536;
  uint64_t max_local_ranks = 1024;
  uint64_t attach_timeout_ms = 5000;  // so long a rank waits for an answer
  QuotaAmounts quotas = {};           // of each user; 0: no limit
  LinkPolicy links = {};
  std::vector<std::string> own_hosts = {};  // of the addresses at which other nodes reach this one
  uint64_t peer_timeout_ms = 15000;  // so long a job that is being joined waits for another node
  uint64_t shared_places = 0;        // see QuotaLedger
  bool takes_dmabufs = false;        // of device memory, for its NICs
  uint64_t profile_bytes = uint64_t{1} << 30;  // JobProfiles, of a job
  bool nic_defers = false;  // some NIC of this node carries out deferred operations
};

class Jobs {
 public:
  using Table = std::map<std::string, std::unique_ptr<JobRecord>>;  // by id

  virtual const Table& jobs() const = 0;
  // The way to other daemons; it is set before the first job is created.
  virtual NodeLinks& links() const = 0;
  // False once the registry has ended: handlers that may outlive it keep a copy and look there.
  virtual const std::shared_ptr<bool>& alive() const = 0;

  // Begins a job; its quota is held by the caller. Errors of NodeLinks::Acquire and
  // DataPlane::AddJob.
  virtual StatusOr<JobRecord*> BeginJob(std::unique_ptr<JobRecord> job) = 0;
  // Ends the rank, orderly (ok) or as `how` says. Does nothing if it has ended before.
  virtual void EndRank(JobRecord& job, uint32_t rank, const Status& how) = 0;
  // Between the two, ends of the job's ranks reach the data plane together, at the second: each
  // takes a turn of its thread. May be nested.
  virtual void HoldEnds(JobRecord& job) = 0;
  virtual void TellEnds(JobRecord& job) = 0;
  // Fails joins of a job that can never become complete, with `why` or an earlier reason.
  virtual void FailJob(JobRecord& job, const Status& why) = 0;
  // Ends the job's communication on this node. Other nodes are told by the caller.
  virtual void AbortJob(JobRecord& job, const Status& why) = 0;
  // Sends the news behind `pending` (Node::joined_pending or left_pending) to the job's other
  // nodes.
  virtual void TellNodes(JobRecord& job, bool Node::*pending) = 0;
  // Opens the way to a node that has none yet, since it is needed.
  virtual void WantWay(JobRecord& job, uint32_t node) = 0;
  // Removes jobs that are over, from the loop, so that no caller loses the job under its feet.
  virtual void SweepSoon() = 0;
  // Notes that something has changed that a status page would show.
  virtual void Changed() const = 0;

  // Null: there is none.
  JobRecord* FindJob(const std::string& job_id) const;
  // The rank of a session that has not ended; null otherwise.
  Rank* FindRank(const Session& session, JobRecord** job) const;
  // kNotInitialized: the session has ended.
  Status CheckServed(const Session& session) const;

 protected:
  ~Jobs() = default;
};

// Holds the ends of a job's ranks back while it lives.
class HeldEnds {
 public:
  HeldEnds(Jobs& jobs, JobRecord& job) : jobs_(jobs), job_(job) { jobs_.HoldEnds(job_); }
  ~HeldEnds() { jobs_.TellEnds(job_); }
  HeldEnds(const HeldEnds&) = delete;
  HeldEnds& operator=(const HeldEnds&) = delete;

 private:
  Jobs& jobs_;
  JobRecord& job_;
};

}  // namespace ferry::daemon

// News of a large job, along the tree of its nodes (job_tree.h): which ranks have joined and ended,
// which nodes are lost, that the job has failed or was aborted.
//
// News are facts, which stay true. A daemon that learns one, by itself or from a neighbour, applies
// it and keeps it in the job's list; every neighbour is told the list from its beginning, in order,
// one request at a time, and confirms each. So each fact crosses each edge of the tree once, and in
// a tree of n nodes reaches all in 2 log n steps. Nothing is lost when a node in between dies: the
// nodes below it find another neighbour, which is told everything from the beginning. Nothing is
// doubled: what is known already is neither applied nor passed on.
//
// A node whose neighbour above is cut off or silent turns to the next one above that; that one
// learns of it with the first request. In the place of a neighbour below that has died come the
// nodes below that. A neighbour stays one for as long as both live: two ways for the same news do
// no harm, and a daemon that was only slow is found where it was.
//
// Trust: a node is believed only about nodes that lie in its direction
// (JobTree::IsTheWayOf), never about this one; and that a node is lost only if this daemon has no
// link to it that is up, else it looks by itself. Any node may end the job by aborting it.
//
// Thread: the control thread.
#pragma once

#include <cstdint>
#include <string>

#include "common/log.h"
#include "common/status.h"
#include "daemon/jobs/jobs.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// The calls of the relay to the owner of the jobs' nodes.
class RelayOwner {
 public:
  // The job that another daemon's request is about, as FindJobOfPeer; the next of programs that
  // follow each other may begin here by it.
  virtual StatusOr<JobRecord*> FindOrBegin(const std::string& job_id, const std::string& proof,
                                           uint64_t incarnation) = 0;
  // The daemon of that node is dead, as the relay has heard.
  virtual void LoseNode(JobRecord& job, uint32_t node, const Status& why) = 0;
  // Ranks elsewhere have joined.
  virtual void OnJoinedElsewhere(JobRecord& job) = 0;

 protected:
  ~RelayOwner() = default;
};

class JobRelay {
 public:
  // Both must outlive it.
  JobRelay(Jobs& jobs, RelayOwner& owner) : jobs_(jobs), owner_(owner) {}

  // Finds the neighbours of a new job, whose nodes' links are named already.
  void Begin(JobRecord& job) { FindNeighbours(job); }
  // Adds what has become known of ranks here, and of the job, and tells it.
  void TellOwn(JobRecord& job);
  // Adds that a node is lost, as this daemon has found out, and tells it.
  void TellLost(JobRecord& job, uint32_t node);
  // The way to a node is up, cut off, or lost.
  void OnWayChanged(JobRecord& job);
  // Tries again what failed.
  void OnTick(JobRecord& job);

  // Another daemon's request. Facts that it may not tell are left out. kNotFound, kPermissionDenied
  // (proof; or it speaks for a node that it is not), kInvalidArgument, kNodeUnreachable
  // (incarnation; or the callee does not see it as a neighbour yet), kUnsupported (no tree).
  Status Take(const control::RelayRequest& request, const std::string& caller);

 private:
  static bool IsOut(const JobRecord& job, uint32_t node);
  void FindNeighbours(JobRecord& job);
  void AddNeighbour(JobRecord& job, uint32_t node);
  StatusOr<JobRecord*> Check(const control::RelayRequest& request, const std::string& caller);
  void Apply(JobRecord& job, uint32_t from, const control::RelayedNews& news);
  void ApplyToRank(JobRecord& job, uint32_t from, uint32_t rank, const control::RelayedNews& news);
  void ApplyLoss(JobRecord& job, uint32_t from, const control::RelayedNews& news);
  static void Add(JobRecord& job, JobFact::Kind kind, uint32_t index, uint32_t from);
  void DeliverAll(JobRecord& job);
  void Deliver(JobRecord& job, uint32_t node);
  void OnDelivered(const std::string& job_id, uint64_t serial, uint32_t node, size_t told,
                   const Status& status);

  Jobs& jobs_;
  RelayOwner& owner_;
  RateLimiter refusals_{10, 1'000'000'000};
};

}  // namespace ferry::daemon

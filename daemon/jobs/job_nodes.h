// The other nodes of the jobs: links to their daemons, news to them and from them, their coming and
// going.
//
// Thread: the control thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/status.h"
#include "daemon/jobs/job_link_books.h"
#include "daemon/jobs/job_members.h"
#include "daemon/jobs/job_pair_books.h"
#include "daemon/jobs/job_programs.h"
#include "daemon/jobs/job_relay.h"
#include "daemon/jobs/jobs.h"
#include "daemon/jobs/peer_requests.h"
#include "daemon/peers/late_ticks.h"
#include "daemon/peers/node_links.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

class JobNodes final : public NodeEvents, private RelayOwner {
 public:
  // The other parts of the registry that it drives.
  struct Parts {
    JobMembers& members;
    JobPrograms& programs;
    JobPairBooks& pair_books;
    JobLinkBooks& link_books;
  };
  // All must outlive it.
  JobNodes(Jobs& jobs, Parts parts, DataPlane& data_plane, uint64_t peer_timeout_ms)
      : jobs_(jobs),
        parts_(parts),
        data_plane_(data_plane),
        peer_timeout_ms_(peer_timeout_ms),
        late_(std::max(kLeastTickMs, peer_timeout_ms / kTicksOfTimeout)),
        relay_(jobs, *this) {}

  // Acquires links to a new job's other nodes; of a job that is a tree, to this node's neighbours
  // there, and names the others. Errors of NodeLinks::Acquire; then it holds none.
  Status Add(JobRecord& job);
  // Begins to exchange news, once the job is among the registry's.
  void Begin(JobRecord& job) {
    if (job.news != nullptr) {
      relay_.Begin(job);
    }
  }
  // Releases the links that Add has acquired.
  void Drop(const JobRecord& job);
  // Sends the news behind `pending` (Node::joined_pending or left_pending) to the job's other
  // nodes.
  void Tell(JobRecord& job, bool Node::*pending);
  // Opens the way to a dormant node, because a message, a pair or a link needs it. Its ranks count
  // as unreachable if it has not opened after peer_timeout_ms.
  void WantWay(JobRecord& job, uint32_t node);
  // As above. Unknown jobs and nodes are ignored.
  void WantWay(const std::string& job_id, uint32_t node);
  // True when no node waits for news: see JobRecord::NewsDelivered.
  bool quiet() const;

  // ---- Service Peer ----
  // Ok if another daemon may ask about the job, provided that it is who it says
  // (PeerLinks::CheckCaller). kNotFound, kPermissionDenied (proof).
  Status CheckPeer(const std::string& job_id, const std::string& proof,
                   uint64_t incarnation) const {
    return parts_.programs.CheckPeer(job_id, proof, incarnation);
  }
  // `caller` is the address of the daemon that has made the request, as it has proved. kNotFound,
  // kPermissionDenied (proof; or it speaks for a node that it is not), kInvalidArgument,
  // kNodeUnreachable (incarnation).
  Status OnJoined(const control::JoinedRequest& request, const std::string& caller);
  Status OnLeft(const control::LeftRequest& request, const std::string& caller);
  // As JobRelay::Take.
  Status OnRelay(const control::RelayRequest& request, const std::string& caller) {
    return relay_.Take(request, caller);
  }

  // ---- NodeEvents ----
  void OnNodeUp(const NodeContact& contact) override;
  void OnNodeDown(const std::string& address, uint64_t link, const Status& why) override;
  void OnNodeCut(const std::string& address, uint64_t link, const Status& why) override;
  void OnNodeRefused(const std::string& address, const Status& why) override;
  void OnNodeTrouble(const std::string& address, const Status& why) override;
  void OnTick() override;

 private:
  struct NodeOfJob {
    JobRecord* job;
    uint32_t index;
  };

  // ---- RelayOwner ----
  StatusOr<JobRecord*> FindOrBegin(const std::string& job_id, const std::string& proof,
                                   uint64_t incarnation) override {
    return parts_.programs.FindOrBegin(job_id, proof, incarnation);
  }
  void LoseNode(JobRecord& job, uint32_t index, const Status& why) override;
  void OnJoinedElsewhere(JobRecord& job) override { parts_.members.CheckComplete(job); }

  std::vector<NodeOfJob> NodesAt(const std::string& address) const;
  void Deliver(JobRecord& job, uint32_t node);
  void OnDelivered(const std::string& job_id, uint64_t serial, uint32_t node, bool Node::*pending,
                   const Status& status);
  void BringUp(JobRecord& job, uint32_t index, const NodeContact& contact);
  void ResumeIfBothReady(JobRecord& job, uint32_t index);
  void GiveUpUnreachableNodes(JobRecord& job, uint64_t now_ns);
  void GiveUpWays(JobRecord& job, uint64_t now_ns);
  void Forgive(JobRecord& job, uint64_t lost_ns, uint64_t now_ns) const;
  void EndRanksOf(JobRecord& job, uint32_t index, const Status& why);
  control::JoinedRequest JoinedNews(const JobRecord& job, uint64_t life) const;
  control::LeftRequest LeftNews(const JobRecord& job) const;

  Jobs& jobs_;
  const Parts parts_;
  DataPlane& data_plane_;
  // Between ticks that are in time there is at most the larger of these: they are PeerLinks', of
  // which many fit into peer_timeout_ms.
  static constexpr uint64_t kLeastTickMs = 250;
  static constexpr uint64_t kTicksOfTimeout = 30;

  const uint64_t peer_timeout_ms_;
  LateTicks late_;
  JobRelay relay_;
  // By address, of all jobs: a job may have many nodes, and a daemon many jobs. Without our own.
  std::unordered_multimap<std::string, NodeOfJob> nodes_;
};

}  // namespace ferry::daemon

// The jobs of this daemon, their ranks here and what is known of those elsewhere.
//
// Thread: everything on the control thread (ControlLoop); no locks. Calls of the data plane are
// made from here and block for as long as the data plane takes (micro- to milliseconds).
//
// A rank's life: Attach -> Serve (segments mapped, data plane serves it) -> Join (waits until all
// ranks of the job have joined, on all nodes) -> Detach, or EndSession. A job's life: CreateJob ->
// complete -> removed when its last rank, anywhere, has ended. Every end is told to the nodes of
// the job.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/status.h"
#include "daemon/jobs/job.h"
#include "daemon/links/link_policy.h"
#include "daemon/peers/node_links.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

struct RegistryLimits {
  uint64_t max_ranks = 1024;
  uint64_t max_local_ranks = 1024;
  uint64_t attach_timeout_ms = 5000;  // so long a rank waits for an answer
  QuotaAmounts quotas = {};           // of each user; 0: no limit
  LinkPolicy links = {};
  std::vector<std::string> own_hosts = {};  // of the addresses at which other nodes reach this one
  uint64_t peer_timeout_ms = 15000;  // so long a job that is being joined waits for another node
  uint64_t shared_places = 0;        // see QuotaLedger
  bool takes_dmabufs = false;        // of device memory, for its NICs
  bool nic_defers = false;           // some NIC of this node carries out deferred operations
};

// The claims of a process that connects to the attach socket; pid and uid come from the kernel.
struct AttachClaim {
  std::string job_id;
  std::string secret;
  uint32_t rank = 0;
  uint32_t size = 0;
  pid_t pid = 0;
  uid_t uid = 0;
  bool shares_processes = false;
};

// Whether what another daemon did not take may be told again, later.
bool IsWorthAnotherTry(const Status& status);

class JobRegistry : public NodeEvents {
 public:
  // All must outlive it. `links` may be set later, but before the first CreateJob.
  JobRegistry(boost::asio::io_context& context, DataPlane& data_plane, RegistryLimits limits);
  ~JobRegistry() override;
  void set_links(NodeLinks* links) { links_ = links; }
  // Called after every change that a status page would show.
  void set_on_change(std::function<void()> on_change) { on_change_ = std::move(on_change); }

  // ---- Launcher ----
  // kDraining, kAlreadyExists, kLimitExceeded (a quota), and what CheckJobSpec, NodeLinks::Acquire,
  // DataPlane::AddJob say.
  Status CreateJob(JobSpec spec);
  // Why no other node can reach this one: it serves jobs of one node only. Empty if they may.
  std::string WhyAlone() const;
  // Ends its ranks here. kNotFound.
  Status DestroyJob(const std::string& job_id);
  // The process of a rank of this node has ended, as its launcher says: "rank 3 of job x" and
  // `how`. Whether it had never attached; then it counts as dead. kNotFound: no such job or rank
  // here.
  StatusOr<bool> RankProcessEnded(const std::string& job_id, uint32_t rank, const std::string& how);

  // ---- Attach socket ----
  // A session with its identity, without segments. Errors: kPermissionDenied (secret,
  // uid), kNotFound (job), kInvalidArgument (size), kInvalidRank, kAlreadyExists, kLimitExceeded
  // (max_local_ranks, a quota), kAborted.
  StatusOr<std::shared_ptr<Session>> Attach(const AttachClaim& claim,
                                            std::weak_ptr<RankConnection> connection);
  // The session's segments are mapped: the data plane serves it from now on. kLimitExceeded: its
  // requests are more than the quota allows.
  Status Serve(const Session& session);
  // Call it before a region of that size is mapped. kLimitExceeded.
  StatusOr<QuotaHold> ReserveRegion(const Session& session, uint64_t size_bytes);
  // Has device memory that only streams reach imported, so that the data plane can copy from and to
  // it. Calls `done` once, now or later, when Region::is_staged says whether that will be so; not
  // at all if the rank ends before.
  void ImportRegion(const Session& session, const std::shared_ptr<Region>& region,
                    std::function<void()> done);
  // Messages may use the region from now on. kNotInitialized, kInvalidArgument, kAlreadyExists, and
  // errors of DataPlane::AddRegion.
  Status AddRegion(Session& session, const std::shared_ptr<Region>& region);
  // Calls `done` once, now or later, when nothing here uses it any more. kNotFound.
  void RemoveRegion(Session& session, uint32_t region, std::function<void(const Status&)> done);
  // Has `answer` called by the data plane's own thread, if that turns.
  void Probe(std::function<void()> answer) { data_plane_.Probe(std::move(answer)); }
  // As DataPlane::CounterPages.
  int CounterPages(uint32_t nic) const { return data_plane_.CounterPages(nic); }
  uint64_t peer_timeout_ms() const { return limits_.peer_timeout_ms; }
  bool takes_dmabufs() const { return limits_.takes_dmabufs; }
  bool nic_defers() const { return limits_.nic_defers; }
  // The session of a rank of the same job and node, with segments. kInvalidRank, kNotFound
  // (it has left), kPeerDied, kWouldBlock.
  StatusOr<std::shared_ptr<Session>> FindPeer(const Session& session, uint32_t rank) const;
  // The session ends: the rank's process is gone, or the daemon will not go on with it, and tells
  // it why. Nothing if it has ended before.
  void EndSession(const Session& session, const Status& why);
  void EndSession(const std::string& job_id, uint32_t rank, const Status& why);

  // It is known now whether the rank's private memory is reachable (Session::reach_settled).
  void OnReach(const std::string& job_id, uint32_t rank);
  // So the import of a region by the job's worker process has ended.
  void OnImport(const std::string& job_id, uint32_t rank, uint32_t region, const Status& status);

  // A job that cannot go on here is aborted on all its nodes. Unknown ones are ignored.
  void FailHere(const std::string& job_id, const Status& why);

  // ---- Calls of ranks ----
  // kNotInitialized: its session has ended.
  Status CheckServed(const Session& session) const;
  // Calls `done` once: now, when the job is complete, when it cannot become so, or after `wait_ms`
  // (0: never) with a reply that says `waiting`. There is no limit to how long the ranks of a job
  // wait for one another, while they and their daemons live. kPeerDied, kNodeUnreachable (a daemon
  // has not been up for peer_timeout_ms), kAborted, kVersionMismatch.
  void Join(const Session& session, uint64_t wait_ms, JoinDone done);
  // Where `first` and the ranks behind it live, at most `most`. kNotInitialized, kInvalidRank.
  struct Places {
    uint32_t node = 0;  // our own
    uint32_t node_count = 0;
    uint32_t job_size = 0;
    std::vector<attach::PeerPlace> peers;
  };
  StatusOr<Places> PlacesOf(const Session& session, uint32_t first, uint32_t most) const;
  // Calls `done` once, now or later: when nothing here touches the rank's memory any more, or, with
  // false, after `wait_ms` (0: never). A rank that has been told false asks again.
  void Detach(const Session& session, uint64_t wait_ms, DetachDone done);
  // Persistent requests to be matched. Calls `done` once, now, or later if the NIC has to have some
  // of their memory first. Errors as PairBook::Offer; kUnsupported: the NIC does not take a window
  // in device memory, and none is offered.
  void OfferPairs(const std::shared_ptr<Session>& session, bool sends,
                  std::span<const attach::PairOffer> offers,
                  std::function<void(const Status&)> done);
  void WithdrawPair(const Session& session, const attach::WithdrawRequest& request);
  void Abort(const Session& session, int exit_code, const std::string& reason);

  // ---- Direct links (link_book.h) ----
  // Whether ranks of the session's job may ask for them, and when: nothing if they may not.
  std::optional<attach::LinkRules> LinkRulesOf(const Session& session) const;
  const Status& links_allowed() const { return limits_.links.allowed; }
  // The same of this job's ranks here.
  Status MayHaveLinks(const JobRecord& job) const;
  uint64_t link_min_messages() const { return limits_.links.min_messages; }
  // A rank here wants one to a rank of another node. Unknown ones are ignored.
  void WantLink(const std::string& job_id, uint32_t rank, uint32_t peer);
  // What a rank says about one. kCorrupt.
  Status OnLinkReply(const Session& session, const attach::LinkReply& reply);
  // The administrator takes links of a job back: all, those of a rank here, or one
  // (kAnyRank for `rank` and `peer`), as LinkBook::TakeBack. Returns how many. kNotFound:
  // the job; kInvalidRank: it has no such rank here, or no such peer elsewhere.
  StatusOr<uint32_t> TakeLinksBack(const std::string& job_id, uint32_t rank, uint32_t peer,
                                   bool may_ask_again);

  // ---- Service Peer ----
  // Whether another daemon may ask about the job, if it is who it says (PeerLinks::CheckCaller).
  // kNotFound, kPermissionDenied (proof).
  Status CheckPeer(const std::string& job_id, const std::string& proof,
                   uint64_t incarnation) const {
    return CheckPeerRequest(job_id, proof, incarnation).status();
  }
  // `caller` is the address of the daemon that has made the request, as it has proved. kNotFound,
  // kPermissionDenied (proof; or it speaks for a node that it is not), kInvalidArgument,
  // kNodeUnreachable (incarnation).
  Status NodeJoined(const control::JoinedRequest& request, const std::string& caller);
  Status NodeLeft(const control::LeftRequest& request, const std::string& caller);
  // News that make no sense are named in the reply; all others are taken.
  Status NodePairs(const control::PairNewsRequest& request, const std::string& caller,
                   control::NewsReply* reply);
  Status NodeLinkNews(const control::LinkNewsRequest& request, const std::string& caller,
                      control::NewsReply* reply);

  // ---- NodeEvents ----
  void OnNodeUp(const NodeContact& contact) override;
  void OnNodeDown(const std::string& address, uint64_t link, const Status& why) override;
  void OnNodeCut(const std::string& address, uint64_t link, const Status& why) override;
  void OnNodeTrouble(const std::string& address, const Status& why) override;
  void OnTick() override;

  // ---- Life ----
  void Drain();
  bool draining() const { return draining_; }
  bool empty() const { return jobs_.empty(); }
  // True when no node waits for news: see JobRecord::NewsDelivered.
  bool quiet() const;
  // Ends every session here with kDaemonDied and tells the other nodes.
  void EndAll(const std::string& reason);

  const std::map<std::string, std::unique_ptr<JobRecord>>& jobs() const { return jobs_; }
  // Since the start; of ranks here.
  struct Totals {
    uint64_t jobs_created = 0;
    uint64_t ranks_attached = 0;
    uint64_t ranks_died = 0;  // ended otherwise than by leaving
    shm::Tally ended;         // counters of those that have ended
  };
  const Totals& totals() const { return totals_; }
  uint64_t local_ranks() const { return local_ranks_; }
  // Ranks here that have ended, and regions that have been taken back, but of which the data plane
  // has not let go yet. The registry must not end before they are gone.
  uint64_t leaving() const { return leaving_ + regions_leaving_; }
  const QuotaLedger& quotas() const { return quotas_; }

 private:
  JobRecord* FindJob(const std::string& job_id) const;
  const LinkPolicy::Nic& LinkNicOf(const Session& session) const;
  // The rank of a session that has not ended; null otherwise.
  Rank* FindRank(const Session& session, JobRecord** job) const;
  Status CheckNetwork(const JobSpec& spec) const;
  Status CheckAttach(const AttachClaim& claim, JobRecord** job) const;
  StatusOr<JobRecord*> CheckPeerRequest(const std::string& job_id, const std::string& proof,
                                        uint64_t incarnation) const;
  static Status CheckNode(const JobRecord& job, uint32_t node, const std::string& caller);

  void EndRank(JobRecord& job, uint32_t rank, const Status& how);
  void CloseLocalRank(JobRecord& job, uint32_t rank);
  void Depart(JobRecord& job, uint32_t rank);
  void AnnounceEnd(JobRecord& job, uint32_t rank);
  void OnLetGo(JobRecord& job, uint32_t rank);
  void DropLeaving(JobRecord& job, uint32_t rank);
  void FailJob(JobRecord& job, const Status& why);
  void FailJoins(JobRecord& job, const Status& why);
  void FinishJoin(JobRecord& job, uint32_t rank, const Status& status);
  void CheckJoined(JobRecord& job, uint32_t index);
  void CheckComplete(JobRecord& job);
  void EndPollLater(JobRecord& job, uint32_t rank, uint64_t wait_ms);
  void EndPoll(JobRecord& job, uint32_t rank);
  void GiveUpLostNodes(JobRecord& job, uint64_t now_ns);
  void AbortJob(JobRecord& job, const Status& why);
  void WatchGpus();
  static void NoteImport(JobRecord& job, uint32_t rank, const Region& region, const Status& status);

  PairBook& MatchesOf(JobRecord& job);
  StatusOr<PairBook*> MatchesFor(const Session& session);
  Status TakePairNews(JobRecord& job, uint32_t node, const control::PairNews& news);
  void OnPairTold(JobRecord& job, uint32_t node, const control::PairNews& news,
                  const Status& status);
  class BookCalls;
  LinkBook& LinksOf(JobRecord& job);
  Status MayLink(const JobRecord& job, uint32_t node) const;
  static void CutLinks(JobRecord& job, uint32_t node);
  Status TakeLinkNews(JobRecord& job, uint32_t node, const control::LinkNews& news);
  void OnLinkTold(JobRecord& job, uint32_t node, const control::LinkNews& news,
                  const Status& status);

  // News of the two books (job_registry_news.cc).
  template <typename Request>
  StatusOr<JobRecord*> CheckNews(const Request& request, const std::string& caller) const;
  template <typename News>
  struct NewsRoute;
  template <typename News, typename Request>
  Status TakeNews(const Request& request, const std::string& caller, control::NewsReply* reply);
  template <typename News>
  void TellNews(const std::string& job_id, uint32_t node, const News& news);
  template <typename News>
  void DeliverNews(JobRecord& job, uint32_t node);
  template <typename News>
  void OnNewsDelivered(const std::string& job_id, uint64_t serial, uint32_t node,
                       typename NewsQueue<News>::Batch batch, const Status& status,
                       const control::NewsReply& reply);

  // Other nodes, by address: a job may have many, and a daemon many jobs.
  Status AddNodes(JobRecord& job);
  void DropNodes(const JobRecord& job);
  struct NodeOfJob {
    JobRecord* job;
    uint32_t index;
  };
  std::vector<NodeOfJob> NodesAt(const std::string& address) const;
  void TellNodes(JobRecord& job, bool Node::*pending);
  void Deliver(JobRecord& job, uint32_t node);
  void OnDelivered(const std::string& job_id, uint64_t serial, uint32_t node, bool Node::*pending,
                   const Status& status);
  void BringUp(JobRecord& job, uint32_t index, const NodeContact& contact);
  void ResumeIfBothReady(JobRecord& job, uint32_t index);
  control::JoinedRequest JoinedNews(const JobRecord& job, uint64_t life) const;
  control::LeftRequest LeftNews(const JobRecord& job) const;

  // Removes jobs that are over, from the loop, so that no caller loses the job under its feet.
  void SweepSoon();
  void Sweep();
  void Remove(const std::string& job_id);
  void Changed() const;

  boost::asio::io_context& context_;
  DataPlane& data_plane_;
  const RegistryLimits limits_;
  QuotaLedger quotas_;
  NodeLinks* links_ = nullptr;
  std::function<void()> on_change_;
  bool draining_ = false;
  bool sweep_posted_ = false;
  boost::asio::steady_timer gpu_timer_;
  bool watches_gpus_ = false;  // gpu_timer_ runs
  uint64_t next_serial_ = 1;
  uint64_t last_pair_ = 0;  // the number of the last matched pair
  Totals totals_;
  std::map<std::string, std::unique_ptr<JobRecord>> jobs_;
  std::unordered_multimap<std::string, NodeOfJob> nodes_;  // of all jobs, but for our own
  uint64_t local_ranks_ = 0;                               // sessions that have not ended
  uint64_t leaving_ = 0;
  uint64_t regions_leaving_ = 0;
  // Handlers that outlive this object find it gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ferry::daemon

// The jobs of this daemon and the lives of their ranks. Its parts have the rest of what concerns
// jobs: members and their joins, memory, the books of matched pairs and of direct links, and the
// other nodes (the headers of these parts say more).
//
// Thread: everything on the control thread (ControlLoop); no locks. Calls of the data plane are
// made from here and block for as long as the data plane takes (micro- to milliseconds).
//
// A rank's life: Attach -> Serve (segments mapped, data plane serves it) -> JobMembers::Join (waits
// until all ranks of the job have joined, on all nodes) -> JobMembers::Detach, or EndSession. A
// job's life: CreateJob -> complete -> removed when its last rank, anywhere, has ended. Every end
// is told to the nodes of the job. Where programs follow each other, each is a job (JobPrograms).
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/rank_exits.h"
#include "common/status.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/jobs.h"
#include "daemon/peers/node_links.h"
#include "daemon/plane/data_plane.h"
#include "daemon/session/session.h"
#include "shm/counters.h"

namespace ferry::daemon {

class JobLinkBooks;
class JobMembers;
class JobNodes;
class JobPairBooks;
class JobProfiles;
class JobPrograms;
class JobRegions;

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

class JobRegistry final : private Jobs {
 public:
  // All must outlive it. `links` may be set later, but before the first CreateJob.
  JobRegistry(boost::asio::io_context& context, DataPlane& data_plane, RegistryLimits limits);
  ~JobRegistry();
  void set_links(NodeLinks* links) { links_ = links; }
  // Called after every change that a status page would show.
  void set_on_change(std::function<void()> on_change) { on_change_ = std::move(on_change); }
  // Called for each job that ends, while it is still there.
  using OnJobEnd = std::function<void(const JobRecord&)>;
  void set_on_job_end(OnJobEnd on_job_end) { on_job_end_ = std::move(on_job_end); }
  // Called for each launch of programs that follow each other (JobSeries), once no more is to come
  // of the one that has ended last: the launcher has said how its processes ended, or will not, or
  // another program has begun in its place.
  using OnExits = std::function<void(const std::string& launch, const std::optional<RankExits>&)>;
  void set_on_exits(OnExits on_exits) { on_exits_ = std::move(on_exits); }

  // ---- Parts ----
  JobMembers& members() { return *members_; }
  const JobPrograms& programs() const { return *programs_; }
  JobProfiles& profiles() { return *profiles_; }
  const JobProfiles& profiles() const { return *profiles_; }
  JobRegions& regions() { return *regions_; }
  JobPairBooks& pair_books() { return *pair_books_; }
  JobLinkBooks& link_books() { return *link_books_; }
  const JobLinkBooks& link_books() const { return *link_books_; }
  JobNodes& nodes() { return *nodes_; }

  // ---- Launcher ----
  // kDraining, kAlreadyExists, kLimitExceeded (a quota), and what CheckJobSpec, NodeLinks::Acquire,
  // DataPlane::AddJob say.
  Status CreateJob(JobSpec spec);
  // Says why no other node can reach this one, so that it serves jobs of one node only. Empty if
  // they can.
  std::string WhyAlone() const;
  // Fails the job and ends its ranks here; of a series, all its jobs, and no further program
  // follows. `exits`: how the processes of the latest have ended, if its launcher says that.
  // kNotFound.
  Status DestroyJob(const std::string& job_id, const std::optional<RankExits>& exits = {});
  // The process of a rank of this node has ended, as its launcher says: "rank 3 of job x" and
  // `how`. Returns true if it had never attached; then it counts as dead. The job may be the next
  // one of a series, which has not begun here. kNotFound: no such job or rank here.
  StatusOr<bool> RankProcessEnded(const std::string& job_id, uint32_t rank, const std::string& how);

  // ---- Attach socket ----
  // Makes a session with its identity, without segments. Errors: kPermissionDenied (secret, uid),
  // kNotFound (job), kInvalidArgument (size), kInvalidRank, kAlreadyExists, kLimitExceeded
  // (max_local_ranks, a quota), kAborted.
  StatusOr<std::shared_ptr<Session>> Attach(const AttachClaim& claim,
                                            std::weak_ptr<RankConnection> connection);
  // Has the data plane serve the session, whose segments are mapped now. kLimitExceeded: its
  // requests are more than the quota allows.
  Status Serve(const Session& session);
  // Has the data plane's own thread call `answer`, if that turns.
  void Probe(std::function<void()> answer) { data_plane_.Probe(std::move(answer)); }
  // As DataPlane::CounterPages.
  int CounterPages(uint32_t nic) const { return data_plane_.CounterPages(nic); }
  uint64_t peer_timeout_ms() const { return limits_.peer_timeout_ms; }
  bool takes_dmabufs() const { return limits_.takes_dmabufs; }
  bool nic_defers() const { return limits_.nic_defers; }
  // The session of a rank of the same job and node, with segments. kInvalidRank, kNotFound
  // (it has left), kPeerDied, kWouldBlock.
  StatusOr<std::shared_ptr<Session>> FindPeer(const Session& session, uint32_t rank) const;
  // Ends the session: the rank's process is gone, or the daemon will not go on with it, and tells
  // it why. Does nothing if it has ended before.
  void EndSession(const Session& session, const Status& why);
  void EndSession(const std::string& job_id, uint32_t rank, const Status& why);

  // As Jobs::CheckServed.
  using Jobs::CheckServed;
  // Aborts the job of the rank on all nodes, as the rank asks. Does nothing if its session has
  // ended.
  void Abort(const Session& session, int exit_code, const std::string& reason);
  // Aborts a job that cannot go on here, on all its nodes. Unknown ones are ignored.
  void FailHere(const std::string& job_id, const Status& why);

  // ---- Life ----
  // Refuses new jobs from now on; `for_good`: until the daemon ends.
  void Drain(bool for_good = false);
  // Takes new jobs again. kDraining: the daemon is about to stop.
  Status Undrain();
  bool draining() const { return draining_; }
  bool empty() const { return jobs_.empty(); }
  // Ends every session here with kDaemonDied and tells the other nodes.
  void EndAll(const std::string& reason);
  // Calls the function of set_on_job_end for the jobs that are still here, the last time, and that
  // of set_on_exits no more.
  void TellLastJobs();

  const Table& jobs() const override { return jobs_; }
  // Since the start; of ranks here.
  struct Totals {
    uint64_t jobs_created = 0;
    uint64_t ranks_attached = 0;
    uint64_t ranks_died = 0;  // ended otherwise than by leaving
    shm::Tally ended;         // counters of those that have ended
    shm::Histograms ended_histograms;
    RankTime rank_time;
  };
  const Totals& totals() const { return totals_; }
  uint64_t local_ranks() const { return local_ranks_; }
  // Ranks here that have ended, and regions that have been taken back, but of which the data plane
  // has not let go yet. The registry must not end before they are gone.
  uint64_t leaving() const;
  const QuotaLedger& quotas() const { return quotas_; }

 private:
  // ---- Jobs ----
  NodeLinks& links() const override { return *links_; }
  const std::shared_ptr<bool>& alive() const override { return alive_; }
  StatusOr<JobRecord*> BeginJob(std::unique_ptr<JobRecord> job) override;
  void EndRank(JobRecord& job, uint32_t rank, const Status& how) override;
  void HoldEnds(JobRecord& job) override { ++job.holds_ends; }
  void TellEnds(JobRecord& job) override;
  void FailJob(JobRecord& job, const Status& why) override;
  void AbortJob(JobRecord& job, const Status& why) override;
  void TellNodes(JobRecord& job, bool Node::*pending) override;
  void WantWay(JobRecord& job, uint32_t node) override;
  void SweepSoon() override;
  void Changed() const override;

  Status CheckNetwork(const JobSpec& spec) const;
  StatusOr<JobRecord*> CheckAttach(const AttachClaim& claim);
  void Destroy(JobRecord& job, const Status& why);
  void CloseLocalRank(JobRecord& job, uint32_t rank);
  void Depart(JobRecord& job, uint32_t rank);
  void AnnounceEnd(JobRecord& job, uint32_t rank);
  void OnLetGo(JobRecord& job, uint32_t rank);
  void DropLeaving(JobRecord& job, uint32_t rank);
  void Sweep();
  void Remove(const std::string& job_id);

  boost::asio::io_context& context_;
  DataPlane& data_plane_;
  const RegistryLimits limits_;
  QuotaLedger quotas_;
  NodeLinks* links_ = nullptr;
  std::function<void()> on_change_;
  OnJobEnd on_job_end_;
  OnExits on_exits_;
  bool draining_ = false;
  bool stops_ = false;  // drains for good
  bool sweep_posted_ = false;
  uint64_t next_serial_ = 1;
  Totals totals_;
  uint64_t local_ranks_ = 0;  // sessions that have not ended
  uint64_t leaving_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  const std::unique_ptr<JobMembers> members_;
  const std::unique_ptr<JobPrograms> programs_;
  const std::unique_ptr<JobProfiles> profiles_;
  const std::unique_ptr<JobRegions> regions_;
  const std::unique_ptr<JobPairBooks> pair_books_;
  const std::unique_ptr<JobLinkBooks> link_books_;
  const std::unique_ptr<JobNodes> nodes_;
  Table jobs_;  // its books refer to the parts: it goes first
};

}  // namespace ferry::daemon

// A job as this daemon's control plane knows it. Plain data of the control thread; JobRegistry
// and its parts change it, admin_report.h reads it.
#pragma once

#include <sys/types.h>

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/job_name.h"
#include "common/status.h"
#include "daemon/jobs/job_history.h"
#include "daemon/jobs/job_news.h"
#include "daemon/jobs/news_queue.h"
#include "daemon/jobs/pair_book.h"
#include "daemon/links/link_book.h"
#include "daemon/peers/node_links.h"
#include "daemon/plane/data_plane.h"
#include "daemon/session/session.h"
#include "proto/control.pb.h"
#include "shm/counters.h"

namespace ferry::daemon {

// The job that a launcher asks for.
struct JobSpec {
  std::string id;
  std::string secret;
  uid_t owner = 0;
  uint64_t launcher = 0;         // ends with it (launchers.h); 0: with none
  bool programs_follow = false;  // its ranks may run one after the other (JobSeries)
  bool tells_exits = false;  // its launcher will tell how their processes have ended (RankExits)
  uint32_t node = 0;         // our index
  std::vector<uint32_t> node_of_rank;       // by rank
  std::vector<std::string> node_addresses;  // by node: host:port of its Peer service
  uint32_t tree_radix = 0;                  // 0: the nodes are no tree
  // How people know it: printable, and nothing depends on them.
  std::string name;      // that its user gave it; empty: none
  std::string program;   // what its ranks run; empty: its launcher has not said
  std::string slurm_id;  // of the Slurm job that it is part of; empty: none

  bool IsLocal(uint32_t rank) const { return node_of_rank[rank] == node; }
};

// The daemon's end of a rank's attach connection.
class RankConnection {
 public:
  virtual ~RankConnection() = default;
  // Tells the rank why the daemon ends its session, and hangs up.
  virtual void Goodbye(const Status& why) = 0;
  // Tells it what becomes of a direct link; the header is filled in here. It comes in order, later
  // if the rank reads slowly.
  virtual void Order(const attach::LinkOrder& order) = 0;
};

enum class RankState { kAbsent, kAttached, kServing, kJoined, kEnded };
inline constexpr size_t kRankStates = 5;
const char* RankStateText(RankState state);

// "rank 2 of job x".
std::string RankText(uint32_t rank, const std::string& job_id);

struct JoinAnswer {
  bool waiting = false;  // for other ranks
  // Then: the ranks that are missing and what is known of them; for one rank of those that wait.
  std::string missing = {};
};
using JoinDone = std::function<void(const Status&, const JoinAnswer&)>;
// `left`: nothing touches the rank's memory any more. False: the data plane still does.
using DetachDone = std::function<void(bool left)>;

// A region of device memory that the job's worker process was asked to import.
struct Importing {
  std::shared_ptr<Region> region;
  std::function<void()> done;
  std::unique_ptr<boost::asio::steady_timer> timer;
};

struct Rank {
  RankState state = RankState::kAbsent;  // of a rank elsewhere: kAbsent, kJoined, kEnded
  bool has_joined = false;
  bool private_memory_reachable = false;
  bool is_join_told = false;  // it stands among the facts of JobNews; the same of its end
  bool is_end_told = false;
  Status end;  // once kEnded: ok if it left orderly, else what became of it

  // Only of ranks here.
  std::shared_ptr<Session> session;
  std::shared_ptr<Session> leaving;  // kEnded, but the data plane has not let go of it yet
  bool announced = false;            // kEnded: the other nodes may hear of it
  DetachDone on_left;                // called once `leaving` is gone
  std::weak_ptr<RankConnection> connection;
  std::map<uint32_t, Importing> importing;  // by number; before they are used
  bool is_joining = false;                  // has asked to join, and has no answer yet
  JoinDone join_done;                       // a kJoin that waits
  std::unique_ptr<boost::asio::steady_timer> poll_timer;  // ends a long poll: join_done, on_left
};

// kDormant: of a job that is a tree; the node has not been needed yet, and is not greeted.
enum class NodeState { kSelf, kDormant, kConnecting, kUp, kCut, kFailed };

struct Node {
  NodeState state = NodeState::kConnecting;
  std::string address;
  uint64_t incarnation = 0;              // of its daemon, once there was a way to it
  uint64_t known_incarnation = 0;        // as others have told; 0: they have not
  bool is_failure_known = false;         // kFailed: the data plane has heard it of the link
  uint64_t life = 0;                     // of the link to it, once kUp
  uint64_t their_life = 0;               // the latest on which it takes packets of this job
  bool has_told_life = false;            // it has told `their_life`
  std::optional<NodeContact> returning;  // kCut: up again, but ranks here have not settled yet
  Status trouble;                        // the last thing that went wrong
  uint64_t unreachable_since_ns = 0;  // it is not up, or in trouble, since then; 0: it is reached
  uint64_t wanted_since_ns = 0;       // a dormant node's way is being opened since then
  // News that the node has not been told yet. Each message holds all that is known, so one
  // suffices.
  bool joined_pending = false;
  bool left_pending = false;
  bool in_flight = false;
  bool direct_links = false;  // its daemon knows direct links, and allows them
  NewsQueue<control::PairNews> pair_news;
  NewsQueue<control::LinkNews> link_news;
};

// A job's LinkBook, and its calls to JobLinkBooks.
struct JobLinks {
  std::unique_ptr<LinkCalls> calls;
  LinkBook book;
};

struct JobRecord;

// The programs that follow each other in the places of one launch, each of them a job of its own.
// It lives until its launcher destroys it, or ends. Nothing of one job reaches another, as their
// ids and so their keys differ; each node derives the ids by itself.
struct JobSeries {
  JobSpec spec;  // of the first program
  QuotaHold quota;
  uint32_t newest = 0;                   // the latest program that has, or had, a job here
  std::map<uint32_t, JobRecord*> jobs;   // by program: those that are here now
  std::vector<uint32_t> attached;        // by rank: so many programs of a rank here have attached
  std::map<uint32_t, std::string> gone;  // ranks here that attach no more: how their process ended
  Status failure;                        // why no further program may follow

  std::string IdOf(uint32_t program) const { return TextOf(JobName{spec.id, program}); }
};

struct JobRecord {
  shm::Tally ended;  // counters of its ranks here that have ended
  JobHistory history;
  uint64_t serial = 0;                // tells a job from an earlier one of the same id
  std::shared_ptr<JobSeries> series;  // null: no program follows
  uint32_t program = 1;               // which of the series it is
  uint64_t created_ns = 0;            // MonotonicNs
  JobSpec spec;
  JobPlan plan;
  std::vector<Rank> ranks;
  std::vector<uint32_t> own_ranks;                        // of this node, in order
  std::array<uint32_t, kRankStates> ranks_in_state = {};  // how many
  std::vector<Node> nodes;
  QuotaHold quota;
  std::unique_ptr<PairBook> matches;  // once a rank here or its partner has offered one
  std::unique_ptr<JobLinks> links;    // once a rank here or its peer has asked for one
  std::unique_ptr<JobNews> news;      // of a job that is a tree; null: each node tells each other
  uint32_t holds_ends = 0;            // Jobs::HoldEnds
  std::vector<DataPlane::RankEnd> held_ends;
  bool complete = false;  // all ranks of all nodes have joined
  bool aborted = false;
  uint64_t joining_since_ns = 0;  // when a rank here first asked to join; 0: none has
  bool told_of_imports = false;   // why device memory of its ranks cannot be imported here
  Status failure;                 // why it can never be complete, or was aborted

  uint32_t size() const { return static_cast<uint32_t>(ranks.size()); }
  bool IsLocal(uint32_t rank) const { return spec.IsLocal(rank); }
  // How many of its ranks are of this node.
  uint32_t LocalSize() const { return static_cast<uint32_t>(own_ranks.size()); }
  // The only way to change the state of a rank.
  void SetState(uint32_t rank, RankState state) {
    --ranks_in_state[static_cast<size_t>(ranks[rank].state)];
    ++ranks_in_state[static_cast<size_t>(state)];
    ranks[rank].state = state;
  }
  uint32_t RanksIn(RankState state) const { return ranks_in_state[static_cast<size_t>(state)]; }
  bool AllJoined() const { return RanksIn(RankState::kJoined) == size(); }
  // True if all ranks here may copy from and to each other's processes: Session::shares_processes.
  bool SharesProcesses() const;
  bool AllEnded() const { return RanksIn(RankState::kEnded) == size(); }
  // The data plane has not let go of all sessions yet.
  bool IsLeaving() const;
  // No other node waits for news of this job.
  bool NewsDelivered() const;
  // "rank 2 (node 1 at 127.0.0.1:4000: connection refused), rank 3 (not attached)".
  std::string MissingRanks() const;
  const char* StateText() const;
};

// The error that peers get when a rank ends with `code`; most reasons are told to the rank alone.
ErrorCode PeerError(ErrorCode code);

// The spec that a launcher's request describes; without a uid the owner is our own.
// kInvalidArgument.
StatusOr<JobSpec> SpecFrom(const control::CreateJobRequest& request);
// Checks everything about a spec that needs no other knowledge. kInvalidArgument or kLimitExceeded.
Status CheckJobSpec(const JobSpec& spec, uint64_t max_ranks, uint64_t max_local_ranks);
// Fills plan, ranks and nodes from the spec.
std::unique_ptr<JobRecord> MakeJob(JobSpec spec);

}  // namespace ferry::daemon

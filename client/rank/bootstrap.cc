// Client: joining and leaving a job. See client.h.
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "client/bootstrap/job_life.h"
#include "client/bootstrap/meeting_watch.h"
#include "client/links/direct_library.h"
#include "client/rank/client.h"
#include "common/clock.h"
#include "common/counted.h"
#include "common/job_name.h"
#include "common/process_memory.h"
#include "shm/atomic.h"
#include "shm/fault.h"
#include "shm/histograms.h"

namespace ferry::client {
namespace {

constexpr std::chrono::milliseconds kReasonPatience(200);
// How long a rank that leaves after a death waits for receivers of data in its heap.
constexpr uint64_t kLeavePatienceNs = 10'000'000'000;

// The calling thread's call (calls.h), where several threads may call.
CallNote** CallOfThisThread() {
  constinit thread_local CallNote* call = nullptr;
  return &call;
}

Status CheckJob(const config::Options& options) {
  if (options.size == 0 || options.job_id.empty()) {
    return {
        ErrorCode::kConfiguration,
        "this process belongs to no job (FERRY_JOB_ID and FERRY_SIZE are not set); start it with "
        "ferryrun -n N PROGRAM, or with a launcher that speaks PMIx or PMI, such as srun or "
        "mpiexec.hydra, or with torchrun"};
  }
  if (options.rank >= options.size) {
    return {ErrorCode::kInvalidRank, "FERRY_RANK is " + std::to_string(options.rank) +
                                         " but FERRY_SIZE is " + std::to_string(options.size)};
  }
  return {};
}

// Identifies a namespace; 0 where there is no /proc. Inodes of namespaces have 32 bits.
uint32_t InodeOf(const char* path) {
  struct stat info {};
  return stat(path, &info) == 0 ? static_cast<uint32_t>(info.st_ino) : 0;
}

}  // namespace

StatusOr<std::unique_ptr<Client>> Client::Join(const config::Options& options, bool threads,
                                               std::unique_ptr<gpu::BackendRegistry> backends) {
  FERRY_RETURN_IF_ERROR(CheckJob(options));
  (void)shm::EnableLightFence();  // early, since it is cheap before there are threads
  std::unique_ptr<Client> client(new Client());
  client->options_ = options;
  client->threads_asked_for_ = threads;
  client->backends_ = std::move(backends);
  FERRY_RETURN_IF_ERROR(client->attach_.Connect(options.run_directory, options.attach_timeout_ms,
                                                options.daemon_user));
  FERRY_RETURN_IF_ERROR(client->Attach());
  return client;
}

Status Client::Attach() {
  attach::AttachRequest request{};
  request.pid = static_cast<uint32_t>(getpid());
  request.pid_namespace =
      IsProcessMemoryReachable(getpid()) ? InodeOf("/proc/self/ns/pid") : attach::kNoProcessCopies;
  request.user_namespace = InodeOf("/proc/self/ns/user");
  request.rank = static_cast<uint32_t>(options_.rank);
  request.size = static_cast<uint32_t>(options_.size);
  if (options_.job_id.size() >= sizeof(request.job_id) ||
      options_.job_secret.size() > sizeof(request.job_secret)) {
    return {ErrorCode::kConfiguration, "FERRY_JOB_ID or FERRY_JOB_SECRET is too long"};
  }
  std::memcpy(request.job_id, options_.job_id.data(), options_.job_id.size());
  std::memcpy(request.job_secret, options_.job_secret.data(), options_.job_secret.size());
  request.job_secret_bytes = static_cast<uint32_t>(options_.job_secret.size());
  StatusOr<attach::AttachReply> reply = attach_.Attach(request);
  FERRY_RETURN_IF_ERROR(reply.status());
  if (reply->local_size == 0 || reply->local_size > shm::kMaxLocalRanks ||
      reply->local_index >= reply->local_size) {
    return {ErrorCode::kCorrupt, "ferryd named an impossible place on the node"};
  }
  FERRY_RETURN_IF_ERROR(MakeSegments(*reply));
  return MeetPeers(*reply);
}

// Makes, seals, prefaults and hands over the session and inbox segments.
Status Client::MakeSegments(const attach::AttachReply& reply) {
  engine::SegmentPlan plan;
  plan.rank = static_cast<uint32_t>(options_.rank);
  plan.job_size = static_cast<uint32_t>(options_.size);
  plan.local_size = reply.local_size;
  plan.request_limit = static_cast<uint32_t>(options_.request_limit) + 1;
  plan.unexpected_limit = static_cast<uint32_t>(options_.unexpected_limit) + 1;
  StatusOr<UniqueFd> session = shm::CreateSegment("ferry-session", plan.session_bytes());
  FERRY_RETURN_IF_ERROR(session.status());
  StatusOr<UniqueFd> inbox = shm::CreateSegment("ferry-inbox", plan.inbox_bytes());
  FERRY_RETURN_IF_ERROR(inbox.status());
  StatusOr<shm::Mapping> session_map = shm::MapSegment(session->get(), plan.session_bytes());
  FERRY_RETURN_IF_ERROR(session_map.status());
  StatusOr<shm::Mapping> inbox_map = shm::MapSegment(inbox->get(), plan.inbox_bytes());
  FERRY_RETURN_IF_ERROR(inbox_map.status());
  // The parts used from the start; lanes, requests, entries and the words of peers take their pages
  // at first use.
  FERRY_RETURN_IF_ERROR(
      shm::Prefault(session_map->base(), offsetof(shm::SessionLayout, to_daemon)));
  FERRY_RETURN_IF_ERROR(shm::Prefault(inbox_map->base(), sizeof(shm::InboxLayout)));
  engine::InitializeSegments(plan, static_cast<uint32_t>(getpid()), session_map->base(),
                             inbox_map->base());
  StatusOr<engine::SessionView> view = engine::ViewSession(
      session_map->base(), session_map->size_bytes(), inbox_map->base(), inbox_map->size_bytes());
  FERRY_RETURN_IF_ERROR(view.status());
  view_ = *view;
  rank_ = view_.rank;
  size_ = view_.job_size;
  own_lane_ = reply.local_index;
  session_map_ = std::move(*session_map);
  inbox_maps_.resize(reply.local_size);
  inbox_maps_[own_lane_] = std::move(*inbox_map);

  StatusOr<AttachAnswer> answer =
      attach_.SendSegments(plan.session_bytes(), session->get(), plan.inbox_bytes(), inbox->get());
  FERRY_RETURN_IF_ERROR(answer.status());
  if (answer->descriptors.empty()) {
    return {ErrorCode::kCorrupt, "ferryd did not hand out its doorbell"};
  }
  peer_timeout_ms_ = answer->reply.peer_timeout_ms;
  nic_defers_ = (answer->reply.flags & attach::kNicDefers) != 0;
  daemon_pid_ = reply.daemon_pid;
  doorbell_ = std::move(answer->descriptors[0]);
  if (answer->descriptors.size() > 1) {
    daemon_pidfd_ = std::move(answer->descriptors[1]);
  }
  return {};
}

// Joins, and makes the parts. Nothing of the node's other ranks is mapped before it is needed.
Status Client::MeetPeers(const attach::AttachReply& reply) {
  options_.job_id = std::string(reply.text, strnlen(reply.text, sizeof(reply.text)));
  JobLife::Instance().Meet(ReadJobName(options_.job_id).program);
  MeetingWatch watch(JobLife::Instance().entry(), view_.rank, options_.mpi_warn_after_ms);
  StatusOr<AttachConnection::Membership> job =
      attach_.Join(options_.mpi_warn_after_ms, [&watch](const std::string& missing) {
        if (!missing.empty() && watch.IsDue()) {
          watch.Tell(" for all ranks of the job to call it; missing: " + missing);
        }
      });
  FERRY_RETURN_IF_ERROR(job.status());
  peers_.by_rank = ZeroedArray<engine::Peer>(view_.job_size);
  peers_.rank_of_local.resize(reply.local_size);
  ZeroedArray<PeerProcess> processes(view_.job_size);
  NumberListMaker nodes(view_.job_size);
  const uint32_t own_node = job->node;
  FERRY_RETURN_IF_ERROR(attach_.TakePlaces(
      std::move(*job), view_.job_size, [&](uint32_t rank, const attach::PeerPlace& peer) {
        nodes.Add(static_cast<int>(peer.node));
        if (peer.node == own_node) {
          peers_.by_rank[rank].local = true;
          peers_.by_rank[rank].local_index = peer.local_index;
          peers_.rank_of_local[peer.local_index] = rank;
          processes[rank] = {static_cast<pid_t>(peer.pid), peer.private_memory_reachable != 0};
        }
      }));
  nodes_ = std::move(nodes).Make();
  peers_.by_rank[view_.rank].SetInbox(view_.inbox);
  peers_.map = [this](uint32_t rank) { return MapInbox(rank).code(); };
  NoteCores(processes);
  MakeParts(std::move(processes));
  BeginMeasuring(own_node, reply.local_size);
  if (reply.local_size != view_.job_size) {  // else that path is hardly used
    shm::LaneProducer(&view_.layout->to_daemon).Open(view_.rank);
  }
  // The rules have come long before the daemon's answer to Join.
  WatcherDuties duties;
  if (const std::optional<attach::LinkRules> rules = attach_.TakeRules(); rules.has_value()) {
    MakeLinks(*rules);
    duties = {[this] { return links_->Look(); }, links_->call_fd()};
  }
  if (peer_timeout_ms_ != 0) {
    WatchDaemon();
    duties.life = &*life_;
  }
  watcher_.emplace(
      &attach_, daemon_pidfd_.get(), progress_->wake(),
      [this](ErrorCode error) { matching_->FailAll(error); }, [this] { attach_.GiveUp(); },
      std::move(duties));
  return watcher_->Start();
}

// Once the parts are made, and before any thread is in a call.
void Client::BeginMeasuring(uint32_t node, uint32_t local_size) {
  measure_ =
      Measure::Make({.attach = &attach_,
                     .calls = &*calls_,
                     .messages = this,
                     .queues = this,
                     .rank = view_.rank,
                     .size = view_.job_size,
                     .node = node,
                     .node_ranks = local_size,
                     .is_crowded = is_crowded_,
                     .shared = threads_allowed_,
                     .by_link = [this](int32_t rank) { return progress_->SendsByLink(rank); }},
                    options_);
  if (measure_ != nullptr) {
    FrontEnd::messages = measure_->messages();
    FrontEnd::queues = measure_->queues();
  }
}

void Client::WatchDaemon() {
  life_.emplace(DaemonLife::Parts{
      .limit_ms = peer_timeout_ms_,
      .daemon = static_cast<pid_t>(daemon_pid_),
      .daemon_pidfd = daemon_pidfd_.get(),
      .read = &view_.layout->life_read,
      .answered = &view_.layout->life_answered,
      .ask = [this](uint32_t number) { return attach_.AskForLife(number); },
      .takes_notice =
          [this] {
            const bool has_looked = shm::LoadRelaxed(has_looked_) != 0;
            if (has_looked) {
              shm::StoreRelaxed(has_looked_, 0U);
            }
            return has_looked || progress_->wake().HasVisitors();
          },
  });
}

// Finds out if the ranks of this node share cores: because they must, or by chance.
void Client::NoteCores(const ZeroedArray<PeerProcess>& processes) {
  const bool are_known = processes[view_.rank].pid == getpid();  // else pids mean others here
  std::vector<pid_t> here;
  for (const uint32_t rank : peers_.rank_of_local) {
    here.push_back(are_known ? processes[rank].pid : 0);
  }
  is_crowded_ = OutnumberCpus(here);
  if (are_known && !is_crowded_) {
    std::erase(here, getpid());
    core_sharing_.emplace(std::move(here));
    crowded_hook_ = CoreSharing::OnCrowded;
  }
}

void Client::MakeLinks(const attach::LinkRules& rules) {
  links_.emplace(LinkKeeper::Parts{
      .progress = &*progress_,
      .attach = &attach_,
      .regions = &memory_->regions(),
      .job_id = options_.job_id,
      .rules = rules,
      .open_library = [provider =
                           std::string(rules.provider)] { return LoadDirectLibrary(provider); },
      .land =
          [this](uint32_t request, uint64_t size_bytes, shm::Location* where) {
            return requests_->TakeLanding(request, size_bytes, where);
          }});
  progress_->SetLinks(
      &*links_, [this](const engine::Effects& effects) { requests_->NoteTransfers(effects); });
  shm::StoreRelaxed(view_.layout->link_after_bytes, rules.min_bytes);
  shm::StoreRelaxed(view_.layout->link_after_messages, rules.min_messages);
}

void Client::MakeParts(ZeroedArray<PeerProcess> processes) {
  const bool private_reachable = processes[view_.rank].memory_reachable;
  const uint64_t eager_max_bytes = std::min<uint64_t>(options_.eager_max_bytes, shm::kCellBytes);
  engine::EngineOptions engine;
  engine.eager_max_bytes = static_cast<uint32_t>(eager_max_bytes);
  engine.chunk_bytes = static_cast<uint32_t>(options_.rendezvous_chunk_bytes);
  engine.single_chunk_max_bytes = engine.chunk_bytes;
  engine.receiver_first_min_bytes = options_.receiver_first_min_bytes;
  // On a crowded node each pause would take time from the rank waited for.
  const shm::WaitPolicy wait_policy{is_crowded_ ? 0 : static_cast<uint32_t>(options_.spin_pauses),
                                    options_.idle_before_sleep_us * 1000};
  const shm::Statistics statistics(view_.layout->counters);
  progress_.emplace(Progress::Parts{view_, &peers_, engine, own_lane_, doorbell_.get(), wait_policy,
                                    threads_asked_for_});
  memory_.emplace(options_.heap_bytes, backends_.get(), &attach_);
  addresses_ = &memory_->regions().addresses();
  wake_ = &progress_->wake();
  threads_allowed_ = &progress_->threads();
  shm::OfferHistograms(*view_.layout);
  calls_.emplace(&view_.layout->calls, threads_allowed_, &CallOfThisThread);
  FrontEnd::calls = &*calls_;
  death_epoch_ = &progress_->wake().layout()->death_epoch;
  if (options_.malloc == "ferry") {
    memory_->ExplainMalloc(view_.rank);
  }
  peer_memory_.emplace(view_.rank, std::move(processes), &*memory_, &attach_);
  pool_.emplace(view_, threads_asked_for_);
  memory_->SetHolder(
      [this](const void* memory, uint64_t size_bytes) { return pool_->Holds(memory, size_bytes); });
  offloads_.emplace(options_.offload_min_bytes, &*memory_, &*pool_, statistics);
  requests_.emplace(Requests::Parts{
      .progress = &*progress_,
      .pool = &*pool_,
      .memory = &*memory_,
      .peer_memory = &*peer_memory_,
      .offloads = &*offloads_,
      .statistics = statistics,
      .map_inbox = [this](uint32_t rank) { return MapInbox(rank); },
      .private_reachable = private_reachable,
      .eager_max_bytes = eager_max_bytes,
      .one_block_bytes = options_.pipeline_threshold_bytes,
      .chunk_bytes = options_.rendezvous_chunk_bytes,
  });
  sender_.emplace(&*progress_, &*requests_, &*memory_, eager_max_bytes, options_.heap_bytes);
  receiver_.emplace(&*progress_, &*requests_, &*memory_, &*peer_memory_, statistics, is_crowded_);
  matching_.emplace(&*progress_, &*requests_, &*memory_, &*peer_memory_, &attach_, statistics,
                    options_);
  one_sided_.emplace(OneSidedOperations::Parts{
      .progress = &*progress_,
      .memory = &*memory_,
      .peer_memory = &*peer_memory_,
      .private_reachable = private_reachable,
      .statistics = statistics,
      .wait = [this](
                  bool (*done)(void*), void* argument, uint32_t peer,
                  uint64_t end_ns) { WaitFor(done, argument, static_cast<int32_t>(peer), end_ns); },
      .carry_on_by_link =
          [this](uint32_t peer, uint64_t size_bytes) {
            progress_->ServeByLinks();
            ArmLinks({nullptr, size_bytes, static_cast<int32_t>(peer)}, &absence_of_puts_);
          },
  });
  FrontEnd::one_sided = &*one_sided_;
}

// The inbox of a rank that has ended stays out of reach; any other failure may be gone the next
// time.
Status Client::MapInbox(uint32_t rank) {
  std::lock_guard lock(inboxes_mutex_);
  engine::Peer& peer = peers_.by_rank[rank];
  if (peer.is_mapped()) {
    return {};
  }
  if (const auto known = ended_before_.find(rank); known != ended_before_.end()) {
    return known->second;
  }
  StatusOr<AttachAnswer> answer = attach_.PeerInbox(rank);
  const ErrorCode code = answer.status().code();
  if (code == ErrorCode::kPeerDied || code == ErrorCode::kNotFound) {
    ended_before_[rank] = answer.status();
  }
  FERRY_RETURN_IF_ERROR(answer.status());
  if (answer->descriptors.size() != 1) {
    return {ErrorCode::kCorrupt, "ferryd handed out no inbox for rank " + std::to_string(rank)};
  }
  StatusOr<shm::Mapping> mapping = shm::MapSegment(answer->descriptors[0].get(), 0);
  FERRY_RETURN_IF_ERROR(mapping.status());
  StatusOr<engine::InboxView> inbox = engine::ViewInbox(mapping->base(), mapping->size_bytes());
  FERRY_RETURN_IF_ERROR(inbox.status());
  if (inbox->rank != rank || inbox->local_size != view_.inbox.local_size) {
    return {ErrorCode::kCorrupt, "the inbox of rank " + std::to_string(rank) +
                                     " says that it is another rank's, or of another job"};
  }
  inbox_maps_[peer.local_index] = std::move(*mapping);
  peer.SetInbox(*inbox);
  return {};
}

Status Client::Leave() {
  if (const size_t open = pool_->in_use() - sender_->on_the_way(); open != 0) {
    return {ErrorCode::kInvalidRequest,
            Counted(static_cast<int64_t>(open), "request is", "requests are") +
                " not complete or not freed; wait for them, or free persistent ones with "
                "ferry_request_free"};
  }
  if (const size_t open = queues().CountOpenCalls(); open != 0) {
    return {ErrorCode::kInvalidRequest,
            Counted(static_cast<int64_t>(open), "call on queues is", "calls on queues are") +
                " not over: call ferry_queue_wait "
                "first, or destroy their streams"};
  }
  matching_->rings().DestroyAll();
  one_sided_->AwaitAll();
  // No rank may leave while another still needs it. A rank that died does not hold us up, but then
  // the others may not have received what we sent them.
  MeetingWatch watch(JobLife::Instance().exit(), rank(), options_.mpi_warn_after_ms);
  if (BarrierUnder(&watch) != ErrorCode::kOk) {
    AwaitArrivals(kLeavePatienceNs);
  }
  ReturnLinks();
  if (poison() != ErrorCode::kOk) {
    return Health();
  }
  if (measure_ != nullptr) {
    measure_->NoteEnd();
  }
  return attach_.Detach();
}

// Returns once messages to all peers take the daemons again, or after a time. So what this rank has
// sent by direct links has been drained before the daemon says that it has left. Peers that are
// gone do not answer.
void Client::ReturnLinks() {
  if (!UsesLinks()) {
    return;
  }
  engine::PeerPaths& paths = progress_->paths();
  (void)progress_->UnderLease([&](engine::Effects& effects) {
    links_->LeaveAll(effects);
    return ErrorCode::kOk;
  });
  const uint64_t end_ns = MonotonicNs() + kLeavePatienceNs;
  const auto are_back = [](void* argument) {
    return !static_cast<engine::PeerPaths*>(argument)->SendsByLink();
  };
  WaitFor(are_back, &paths, shm::kAnySource, end_ns);
}

void Client::Abort(int exit_code) { (void)attach_.Abort(exit_code, "ferry_abort was called"); }

Status Client::Health() const {
  const ErrorCode code = poison();
  if (code == ErrorCode::kOk) {
    return {};
  }
  // The daemon poisons first, and says why a moment later.
  Status reason =
      code == ErrorCode::kCorrupt ? watcher_->AwaitReason(kReasonPatience) : watcher_->reason();
  if (!reason.ok()) {
    return reason;
  }
  switch (code) {
    case ErrorCode::kLimitExceeded:
      return {code,
              "more unexpected messages than unexpected_limit (FERRY_UNEXPECTED_LIMIT) allows: "
              "post receives earlier, or raise it"};
    case ErrorCode::kCorrupt:
      return {code, shm::Describe(shm::ReadFault(view_.layout->fault))};
    default:
      return {code, ""};
  }
}

}  // namespace ferry::client

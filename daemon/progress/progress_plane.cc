#include "daemon/progress/progress_plane.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "common/process_handle.h"
#include "common/thread.h"
#include "common/topology/affinity.h"
#include "daemon/faults/faulty_transport.h"
#include "daemon/progress/core_parts.h"
#include "daemon/staging/copy_pool.h"
#include "daemon/staging/device_copier.h"
#include "daemon/worker/job_workers.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kNsPerS = 1'000 * kNsPerMs;
constexpr uint64_t kLongestSleepNs = 3'600 * kNsPerS;
constexpr int kEvents = 16;
// While data is on its way turns find nothing until a whole piece of it is there: a sleep, and the
// wake-up that ends it, would hold it up. After so long it is not coming soon; a piece that is long
// by itself may take longer, if the network moves a gigabyte a second.
constexpr uint64_t kTransferPatienceNs = 2'000'000;
constexpr uint64_t kMostPatienceNs = 20'000'000;

uint64_t PatienceNs(uint64_t bytes) {
  return std::min(kTransferPatienceNs + bytes, kMostPatienceNs);
}

void Add(int epoll, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

constexpr uint64_t kNsPerUs = 1'000;
// How long a leaving rank's last messages may take to be accepted by the network, and the network
// to let go of its memory (otherwise it is kept).
constexpr uint64_t kFarewellNs = 1'000 * kNsPerMs;
// How long a rank that matches requests waits for its device memory to be pinned; then it stages
// that. Well below what it waits for an answer.
constexpr uint64_t kReachNs = 3'000 * kNsPerMs;

}  // namespace

// ---- ProgressThread ----

ProgressThread::ProgressThread(progress::ProgressCore& core, Mailbox& mailbox,
                               const shm::WaitPolicy& policy, const topology::CpuSet& cpus)
    : core_(core), mailbox_(mailbox), policy_(policy), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  Add(epoll_.get(), mailbox_.fd(), EPOLLIN);
  if (const int fd = core_.transport().WaitFd(); fd >= 0) {
    Add(epoll_.get(), fd, EPOLLIN);
  }
  thread_ = MakeThread("ferry-progress", [this] { Loop(); });
  if (const Status status = cpus.empty() ? Status() : topology::Pin(thread_.native_handle(), cpus);
      !status.ok()) {
    spdlog::warn("the progress thread runs anywhere: {}", status.message());
  }
}

ProgressThread::~ProgressThread() {
  stop_.store(true, std::memory_order_relaxed);
  mailbox_.Ring();
  thread_.join();
}

void ProgressThread::Call(const std::function<void()>& call) {
  Until([&call] {
    call();
    return true;
  });
}

void ProgressThread::Until(const std::function<bool()>& step) {
  std::promise<void> done;
  Begin(step, [&done] { done.set_value(); });
  done.get_future().wait();
}

void ProgressThread::Begin(std::function<bool()> step, std::function<void()> done) {
  mailbox_.Post([this, pending = Pending{std::move(step), std::move(done)}]() mutable {
    pending_.push_back(std::move(pending));
  });
}

// Edge-triggered, so that the thread never has to read it: a read could block at the rank's whim.
void ProgressThread::Watch(int doorbell) {
  if (doorbell >= 0) {
    Add(epoll_.get(), doorbell, EPOLLIN | EPOLLET);
  }
}

void ProgressThread::Unwatch(int doorbell) {
  if (doorbell >= 0) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, doorbell, nullptr);
  }
}

void ProgressThread::Loop() {
  shm::Waiter waiter(policy_);
  bool streams = false;
  uint64_t active_ns = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    const uint64_t now_ns = MonotonicNs();
    EndTurn(now_ns);
    turn_begin_ns_ = now_ns;
    uint32_t done = mailbox_.Open();
    done += core_.Turn(now_ns);
    done += RunPending();
    if (done != 0) {
      waiter.Reset();
      active_ns = now_ns;
    }
    // A turn that did something gives way, too: the rank that it was for may be waiting for this
    // core. Only where one message follows another, or one request of a device, the next turn looks
    // for more at once.
    const bool received = core_.received();
    if (!(streams && received) && !core_.is_asked() && waiter.Idle() &&
        !(core_.HasTransfers() && now_ns - active_ns < PatienceNs(core_.transfer_bytes()))) {
      Sleep();
    }
    streams = received;
  }
}

uint32_t ProgressThread::RunPending() {
  return static_cast<uint32_t>(std::erase_if(pending_, [](Pending& pending) {
    if (!pending.step()) {
      return false;
    }
    pending.done();
    return true;
  }));
}

void ProgressThread::Sleep() {
  if (core_.PrepareToSleep()) {
    sleeps_.store(sleeps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    epoll_event events[kEvents];
    const uint64_t now_ns = MonotonicNs();
    EndTurn(now_ns);
    const timespec longest = LongestSleep(now_ns);
    int count = epoll_pwait2(epoll_.get(), events, kEvents, &longest, nullptr);
    if (count < 0 && IsRefusedCall(errno)) {  // Linux before 5.11
      pollfd any{epoll_.get(), POLLIN, 0};
      ppoll(&any, 1, &longest, nullptr);
      count = epoll_wait(epoll_.get(), events, kEvents, 0);
    }
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == mailbox_.fd()) {
        mailbox_.Silence();
      }
    }
  }
  core_.Wake();
}

// By clock reads that the loop makes anyway.
void ProgressThread::EndTurn(uint64_t now_ns) {
  if (turn_begin_ns_ != 0) {
    turn_clock_.Count(now_ns - turn_begin_ns_);
    turn_begin_ns_ = 0;
  }
}

timespec ProgressThread::LongestSleep(uint64_t now_ns) const {
  const uint64_t next_ns = pending_.empty() ? core_.NextTurnNs(now_ns) : now_ns + kNsPerMs;
  const uint64_t left_ns = std::min(next_ns > now_ns ? next_ns - now_ns : 0, kLongestSleepNs);
  return {static_cast<time_t>(left_ns / kNsPerS), static_cast<long>(left_ns % kNsPerS)};
}

// ---- ProgressPlane ----

StatusOr<std::unique_ptr<ProgressPlane>> ProgressPlane::Create(
    const config::Options& options, std::unique_ptr<transport::Transport> transport,
    PlaneHooks hooks, std::shared_ptr<const Placement> placement,
    std::shared_ptr<gpu::GpuSource> gpus) {
  Parts parts;
  if (!options.faults.empty()) {
    StatusOr<std::unique_ptr<daemon::Faults>> parsed = daemon::Faults::Parse(options.faults);
    FERRY_RETURN_IF_ERROR(parsed.status());
    parts.faults = std::move(*parsed);
    spdlog::warn("faults on purpose: {}", options.faults);
    transport = MakeFaultyTransport(std::move(transport), *parts.faults,
                                    options.operation_timeout_ms * kNsPerMs);
  }
  parts.mailbox = std::make_unique<Mailbox>();
  const auto ring = [box = parts.mailbox.get()] { box->Ring(); };
  SupervisorEvents events;
  events.on_reach = hooks.on_reach;
  events.on_import = hooks.on_import;
  progress::CoreOptions core_options = CoreOptionsOf(options, placement);
  if (parts.faults != nullptr) {
    AddFaults(*parts.faults, &core_options);
  }
  progress::CoreParts core_parts;
  core_parts.transport = std::move(transport);
  core_parts.copies = std::make_shared<CopyPool>(static_cast<uint32_t>(options.copy_workers), ring);
  if (gpus != nullptr) {
    core_parts.device_copies = std::make_shared<DeviceCopier>(gpus, ring);
  }
  core_parts.extend = [rules = DeferredRulesOf(options),
                       &parts](const progress::ExtensionParts& of_core) {
    auto made = std::make_unique<PairsAndRings>(of_core, rules);
    parts.pairs_and_rings = made.get();
    return made;
  };
  parts.gpus = std::move(gpus);
  StatusOr<std::unique_ptr<progress::ProgressCore>> core =
      progress::ProgressCore::Create(core_options, std::move(core_parts), std::move(hooks), ring);
  FERRY_RETURN_IF_ERROR(core.status());
  parts.core = std::move(*core);
  events.on_failed = [box = parts.mailbox.get(), to = parts.core.get()](
                         const std::string& job_id, ErrorCode error, const std::string& text) {
    box->Post([=] { to->ends().FailWorker(job_id, error, text); });
  };
  StatusOr<std::unique_ptr<WorkerClient>> worker =
      CreateJobWorkers(options, ring, std::move(events));
  FERRY_RETURN_IF_ERROR(worker.status());
  parts.worker = std::move(*worker);
  return std::unique_ptr<ProgressPlane>(
      new ProgressPlane(options, std::move(placement), std::move(parts)));
}

ProgressPlane::ProgressPlane(const config::Options& options,
                             std::shared_ptr<const Placement> placement, Parts parts)
    : operation_timeout_ns_(options.operation_timeout_ms * kNsPerMs),
      trace_events_(options.trace_events),
      stages_devices_(options.pipeline_staging_blocks != 0),
      placement_(std::move(placement)),
      gpus_(std::move(parts.gpus)),
      faults_(std::move(parts.faults)),
      mailbox_(std::move(parts.mailbox)),
      worker_(std::move(parts.worker)),
      core_(std::move(parts.core)),
      pairs_and_rings_(*parts.pairs_and_rings),
      thread_(std::make_unique<ProgressThread>(
          *core_, *mailbox_, shm::WaitPolicy{0, options.daemon_idle_before_sleep_us * kNsPerUs},
          placement_ != nullptr ? placement_->progress_cpus() : topology::CpuSet())) {
  if (placement_ != nullptr && placement_->to_choose_from() != nullptr) {
    spare_cores_.emplace(*placement_->to_choose_from(), placement_->progress_cpus());
  }
}

ProgressPlane::~ProgressPlane() = default;

std::vector<std::byte> ProgressPlane::FabricAddressFor(uint64_t guest) const {
  return core_->transport().AddressFor(guest);
}

std::vector<NicStatistics> ProgressPlane::Nics() const {
  std::vector<NicStatistics> nics;
  thread_->Call([&] { nics = core_->control().Nics(); });
  for (size_t i = 0; placement_ != nullptr && i < nics.size(); ++i) {
    if (const topology::Device* device = placement_->nic(i); device != nullptr) {
      nics[i].pci = device->pci;
      nics[i].cpus = device->cpus.Text();
      nics[i].numa_node = static_cast<int32_t>(device->node);
    }
    nics[i].progress_cpus = placement_->progress_cpus().Text();
    if (const auto node = placement_->staging_node()) {
      nics[i].staging_node = static_cast<int32_t>(*node);
    }
  }
  return nics;
}

// The NIC that a rank which may run on these CPUs uses.
size_t ProgressPlane::NicFor(const Session& session, const topology::CpuSet& cpus) const {
  return placement_->NicFor(cpus, session.local_index);
}

PlaceReport ProgressPlane::PlaceOf(const Session& session) const {
  PlaceReport place;
  // 0 stands for a process that this daemon's pid namespace does not show.
  const auto cpus = topology::AffinityOf(session.pid);
  if (placement_ == nullptr || session.pid == 0 || !cpus.ok()) {
    return place;
  }
  place.cpus = cpus->Text();
  const size_t nic = NicFor(session, *cpus);
  place.nic = placement_->nic_name(nic);
  if (const auto distance = placement_->DistanceTo(*cpus, nic)) {
    place.nic_distance = static_cast<int32_t>(*distance);
  }
  return place;
}

Status ProgressPlane::StartTrace() {
  progress::TraceRing ring(trace_events_);
  Status status;
  thread_->Call([&] { status = core_->control().StartTrace(std::move(ring)); });
  return status;
}

StatusOr<TraceDump> ProgressPlane::StopTrace() {
  std::optional<StatusOr<TraceDump>> dump;
  thread_->Call([&] { dump = core_->control().StopTrace(); });
  return std::move(*dump);
}

std::vector<FaultReport> ProgressPlane::Faults(bool release) {
  if (faults_ == nullptr) {
    return {};
  }
  if (release) {
    faults_->Release();
    mailbox_->Ring();
  }
  return faults_->Report();
}

std::vector<NodeTraffic> ProgressPlane::Traffic(const std::string& job_id) const {
  std::vector<NodeTraffic> traffic;
  thread_->Call([&] { traffic = core_->control().Traffic(job_id); });
  return traffic;
}

RankReport ProgressPlane::Inspect(const std::string& job_id, uint32_t rank) const {
  RankReport report;
  thread_->Call([&] { report = core_->control().Inspect(job_id, rank); });
  return report;
}

std::vector<RingReport> ProgressPlane::InspectRings(const std::string& job_id,
                                                    uint32_t rank) const {
  std::vector<RingReport> reports;
  thread_->Call([&] {
    const progress::ServedRank* const served = core_->control().FindServed(job_id, rank);
    if (served != nullptr && !served->ended) {
      reports = pairs_and_rings_.InspectRings(*served, MonotonicNs());
    }
  });
  return reports;
}

Status ProgressPlane::AddJob(const JobPlan& plan) {
  Status status;
  thread_->Call([&] { status = core_->control().AddJob(plan); });
  if (status.ok()) {
    worker_->AddJob(plan);
  }
  return status;
}

void ProgressPlane::RemoveJob(const std::string& job_id) {
  thread_->Call([&] { core_->control().RemoveJob(job_id); });
  thread_->Unwatch(worker_->BellOf(job_id));
  worker_->RemoveJob(job_id);
}

Status ProgressPlane::AddSession(std::shared_ptr<Session> session) {
  Status status;
  thread_->Call([&] { status = core_->control().CheckSession(*session); });
  FERRY_RETURN_IF_ERROR(status);
  // The worker first: from then on the progress thread may ask it to attend.
  StatusOr<WorkerSeat> seat = worker_->AddSession(session);
  FERRY_RETURN_IF_ERROR(seat.status());
  thread_->Watch(session->doorbell.get());
  thread_->Watch(seat->bell);
  const auto cpus = topology::AffinityOf(session->pid);
  if (spare_cores_ && session->pid != 0 && cpus.ok() &&
      spare_cores_->Add({session->job_id, session->rank}, *cpus)) {
    spare_cores_->Settle(thread_->handle());
  }
  const size_t nic = placement_ != nullptr && session->pid != 0 && cpus.ok()
                         ? NicFor(*session, *cpus)
                         : session->local_index;
  thread_->Call([&] {
    core_->control().AddSession(session, progress::DaemonSeat(*session),
                                {seat->attention, seat->copier, static_cast<uint32_t>(nic)});
    doorbells_[{session->job_id, session->rank}] = session->doorbell.get();
  });
  return {};
}

void ProgressPlane::RemoveSession(const std::string& job_id, uint32_t rank, Departure departure) {
  const uint64_t deadline_ns = MonotonicNs() + kFarewellNs;
  const auto step = [this, job_id, rank, deadline_ns, said_last = std::move(departure.said_last),
                     is_first = true, has_said = false]() mutable {
    if (std::exchange(is_first, false)) {
      if (const auto doorbell = doorbells_.extract({job_id, rank}); !doorbell.empty()) {
        thread_->Unwatch(doorbell.mapped());
      }
    }
    bool says_no_more = false;
    const bool removed =
        core_->control().TryRemoveSession(job_id, rank, deadline_ns, &says_no_more);
    if (says_no_more && !std::exchange(has_said, true)) {
      said_last();
    }
    return removed;
  };
  thread_->Begin(step, std::move(departure.let_go));
}

void ProgressPlane::ReleaseSession(const std::string& job_id, uint32_t rank) {
  worker_->RemoveSession(job_id, rank);
  if (spare_cores_ && spare_cores_->Remove({job_id, rank})) {
    spare_cores_->Settle(thread_->handle());
  }
}

void ProgressPlane::RemoveSession(const std::string& job_id, uint32_t rank) {
  std::promise<void> let_go;
  RemoveSession(job_id, rank, {[] {}, [&let_go] { let_go.set_value(); }});
  let_go.get_future().wait();
  ReleaseSession(job_id, rank);
}

Status ProgressPlane::ImportRegion(const Session& session, const std::shared_ptr<Region>& region) {
  if (!stages_devices_) {
    return {ErrorCode::kConfiguration, "pipeline_staging_blocks is 0"};
  }
  if (worker_->ImportRegion(session, region)) {
    return {ErrorCode::kWouldBlock, "the job's worker process imports it"};
  }
  if (gpus_ == nullptr) {
    return {ErrorCode::kUnsupported, "this daemon has no GPU backend"};
  }
  if (session.uid != geteuid()) {
    return {ErrorCode::kUnsupported, "it is another user's memory"};
  }
  gpu::IpcHandle handle;
  handle.fd.Reset(fcntl(region->fd.get(), F_DUPFD_CLOEXEC, 0));
  handle.opaque = region->handle;
  handle.size_bytes = region->size_bytes();
  handle.allocation_id = region->allocation_id;
  handle.device = static_cast<int32_t>(region->device);
  return region->Import(*gpus_, handle);
}

bool ProgressPlane::ReleaseGpus() {
  if (gpus_ != nullptr) {
    gpus_->ReleaseIdle(MonotonicNs());
  }
  return gpus_ != nullptr && gpus_->is_open();
}

Status ProgressPlane::AddRegion(const std::string& job_id, uint32_t rank,
                                std::shared_ptr<const Region> region) {
  Status status;
  thread_->Call(
      [&] { status = core_->control().AddRegion(job_id, rank, Claimable(job_id, region)); });
  if (status.ok()) {
    worker_->AddRegion(job_id, rank, std::move(region));
  }
  return status;
}

// `done` is called with the end of the signal, which this thread and the registrar hold.
void ProgressPlane::RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region,
                                 std::function<void()> done) {
  worker_->RemoveRegion(job_id, rank, region);
  const uint64_t deadline_ns = MonotonicNs() + operation_timeout_ns_;
  std::shared_ptr<progress::UnpinSignal> signal(
      new progress::UnpinSignal(), [done = std::move(done)](progress::UnpinSignal* ended) {
        delete ended;
        done();
      });
  thread_->Begin(
      [this, job_id, rank, region, deadline_ns, signal = std::move(signal)] {
        return core_->control().TryRemoveRegion(job_id, rank, region, deadline_ns, signal);
      },
      [] {});
}

void ProgressPlane::ReachWindows(const std::string& job_id, uint32_t rank,
                                 std::vector<NicWindow> windows,
                                 std::function<void(const Status&)> done) {
  struct Reaching {
    std::vector<NicWindow> windows;
    size_t next = 0;
    progress::Claim claim;  // on that one
    Status status;
  };
  auto reaching = std::make_shared<Reaching>();
  reaching->windows = std::move(windows);
  thread_->Begin(
      [this, job_id, rank, reaching, deadline_ns = MonotonicNs() + kReachNs] {
        for (; reaching->next < reaching->windows.size(); ++reaching->next) {
          const NicWindow& window = reaching->windows[reaching->next];
          progress::ServedRank* const served = core_->control().FindServed(job_id, rank);
          const ErrorCode code = served == nullptr || served->ended
                                     ? ErrorCode::kNotFound
                                     : pairs_and_rings_.Reach(*served, window, &reaching->claim);
          if (code == ErrorCode::kWouldBlock && MonotonicNs() < deadline_ns) {
            return false;
          }
          reaching->claim.Drop();
          if (code != ErrorCode::kOk) {
            reaching->status = {ErrorCode::kUnsupported,
                                "the network card does not take device memory (region " +
                                    std::to_string(window.region) + "): " + ErrorCodeText(code)};
            return true;
          }
        }
        return true;
      },
      [reaching, done = std::move(done)] { done(reaching->status); });
}

Status ProgressPlane::AddPair(const PairPlan& plan) {
  Status status;
  thread_->Call([&] {
    progress::ServedRank* const rank =
        core_->control().FindServed(plan.name.job_id, plan.name.rank);
    status = pairs_and_rings_.AddPair(rank, plan);
  });
  return status;
}

void ProgressPlane::EndPair(const PairName& name, uint64_t rounds, ErrorCode error) {
  thread_->Call([&] { pairs_and_rings_.EndPair(name, rounds, error); });
}

void ProgressPlane::RemovePair(const PairName& name) {
  thread_->Call([&] { pairs_and_rings_.RemovePair(name); });
}

Status ProgressPlane::AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route) {
  Status status;
  thread_->Call([&] { status = core_->control().AddNode(job_id, node, route); });
  return status;
}

void ProgressPlane::NodeReturned(const std::string& job_id, uint32_t node) {
  thread_->Call([&] { core_->ends().NodeReturned(job_id, node); });
}

void ProgressPlane::PartRanks(const std::string& job_id, uint32_t rank, uint32_t peer) {
  thread_->Call([&] { core_->ends().PartRanks(job_id, rank, peer); });
}

bool ProgressPlane::AreParted(const std::string& job_id, uint32_t rank, uint32_t peer) {
  bool are_parted = false;
  thread_->Call([&] { are_parted = core_->ends().AreParted(job_id, rank, peer); });
  return are_parted;
}

bool ProgressPlane::AreRejoined(const std::string& job_id, uint32_t rank, uint32_t peer) {
  bool are_rejoined = false;
  thread_->Call([&] { are_rejoined = core_->ends().AreRejoined(job_id, rank, peer); });
  return are_rejoined;
}

void ProgressPlane::RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error) {
  thread_->Call([&] { core_->ends().RankEnded(job_id, rank, error); });
}

void ProgressPlane::RanksEnded(const std::string& job_id, std::span<const RankEnd> ends) {
  std::vector<progress::CoreEnds::RankEnd> told;
  for (const auto& [rank, error] : ends) {
    told.push_back({rank, error});
  }
  thread_->Call([&] { core_->ends().RanksEnded(job_id, told); });
}

void ProgressPlane::NodeFailed(uint64_t link, ErrorCode error) {
  thread_->Call([&] { core_->ends().NodeFailed(link, error); });
}

void ProgressPlane::PoisonJob(const std::string& job_id, ErrorCode error) {
  thread_->Call([&] { core_->ends().PoisonJob(job_id, error); });
}

void ProgressPlane::Probe(std::function<void()> answer) { mailbox_->Post(std::move(answer)); }

bool ProgressPlane::Idle() const {
  bool idle = false;
  thread_->Call([&] { idle = core_->control().Idle(); });
  return idle && worker_->Idle();
}

StatusOr<std::unique_ptr<DataPlane>> CreateProgressPlane(
    const config::Options& options, std::unique_ptr<transport::Transport> transport,
    PlaneHooks hooks, std::shared_ptr<const Placement> placement,
    std::shared_ptr<gpu::GpuSource> gpus) {
  StatusOr<std::unique_ptr<ProgressPlane>> plane = ProgressPlane::Create(
      options, std::move(transport), std::move(hooks), std::move(placement), std::move(gpus));
  FERRY_RETURN_IF_ERROR(plane.status());
  return std::unique_ptr<DataPlane>(std::move(*plane));
}

}  // namespace ferry::daemon

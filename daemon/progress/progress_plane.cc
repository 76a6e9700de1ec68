#include "daemon/progress/progress_plane.h"

#include <optional>
#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "common/topology/affinity.h"
#include "daemon/faults/faulty_transport.h"
#include "daemon/worker/job_workers.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kNsPerUs = 1'000;
// How long a leaving rank's last messages may take to be accepted by the network, and the network
// to let go of its memory (otherwise it is kept): the control thread waits for it.
constexpr uint64_t kFarewellNs = 1'000 * kNsPerMs;

CoreOptions CoreOptionsOf(const config::Options& options,
                          const std::shared_ptr<const Placement>& placement, Faults* faults) {
  CoreOptions core;
  core.faults = faults;
  core.staging_block_bytes = options.staging_block_bytes;
  core.staging_blocks = static_cast<uint32_t>(options.staging_blocks);
  core.copy_workers = static_cast<uint32_t>(options.copy_workers);
  core.operation_timeout_ns = options.operation_timeout_ms * kNsPerMs;
  core.registrations = {options.registration_cache_entries, options.registration_cache_bytes};
  core.registration_piece_bytes = options.registration_piece_bytes;
  if (placement != nullptr) {
    core.settle_staging = [placement](std::byte* base, uint64_t bytes) {
      placement->SettleMemory(base, bytes);
    };
  }
  return core;
}

}  // namespace

StatusOr<std::unique_ptr<ProgressPlane>> ProgressPlane::Create(
    const config::Options& options, std::unique_ptr<transport::Transport> transport,
    PlaneHooks hooks, std::shared_ptr<const Placement> placement) {
  std::unique_ptr<daemon::Faults> faults;
  if (!options.faults.empty()) {
    StatusOr<std::unique_ptr<daemon::Faults>> parsed = daemon::Faults::Parse(options.faults);
    FERRY_RETURN_IF_ERROR(parsed.status());
    faults = std::move(*parsed);
    spdlog::warn("faults on purpose: {}", options.faults);
    transport = std::make_unique<FaultyTransport>(std::move(transport), *faults,
                                                  options.operation_timeout_ms * kNsPerMs);
  }
  auto mailbox = std::make_unique<Mailbox>();
  const auto ring = [box = mailbox.get()] { box->Ring(); };
  SupervisorEvents events;
  events.on_reach = hooks.on_reach;
  StatusOr<std::unique_ptr<ProgressCore>> core =
      ProgressCore::Create(CoreOptionsOf(options, placement, faults.get()), std::move(transport),
                           std::move(hooks), ring);
  FERRY_RETURN_IF_ERROR(core.status());
  events.on_failed = [box = mailbox.get(), to = core->get()](
                         const std::string& job_id, ErrorCode error, const std::string& text) {
    box->Post([=] { to->FailWorker(job_id, error, text); });
  };
  StatusOr<std::unique_ptr<JobWorkers>> worker =
      JobWorkers::Create(options, ring, std::move(events));
  FERRY_RETURN_IF_ERROR(worker.status());
  return std::unique_ptr<ProgressPlane>(new ProgressPlane(options, std::move(placement),
                                                          std::move(faults), std::move(mailbox),
                                                          std::move(*worker), std::move(*core)));
}

ProgressPlane::ProgressPlane(const config::Options& options,
                             std::shared_ptr<const Placement> placement,
                             std::unique_ptr<daemon::Faults> faults,
                             std::unique_ptr<Mailbox> mailbox, std::unique_ptr<WorkerClient> worker,
                             std::unique_ptr<ProgressCore> core)
    : operation_timeout_ns_(options.operation_timeout_ms * kNsPerMs),
      trace_events_(options.trace_events),
      placement_(std::move(placement)),
      farewell_(kFarewellNs),
      faults_(std::move(faults)),
      mailbox_(std::move(mailbox)),
      worker_(std::move(worker)),
      core_(std::move(core)),
      thread_(std::make_unique<ProgressThread>(
          *core_, *mailbox_, shm::WaitPolicy{0, options.daemon_idle_before_sleep_us * kNsPerUs},
          placement_ != nullptr ? placement_->progress_cpus() : topology::CpuSet())) {}

ProgressPlane::~ProgressPlane() = default;

std::vector<std::byte> ProgressPlane::FabricAddress() const { return core_->transport().Address(); }

NicStatistics ProgressPlane::Nic() const {
  NicStatistics nic;
  thread_->Call([&] { nic = core_->Nic(); });
  if (placement_ != nullptr) {
    if (const topology::Device* device = placement_->nic(); device != nullptr) {
      nic.pci = device->pci;
      nic.cpus = device->cpus.Text();
      nic.numa_node = static_cast<int32_t>(device->node);
    }
    nic.progress_cpus = placement_->progress_cpus().Text();
    if (const auto node = placement_->staging_node()) {
      nic.staging_node = static_cast<int32_t>(*node);
    }
  }
  return nic;
}

PlaceReport ProgressPlane::PlaceOf(const Session& session) const {
  PlaceReport place;
  // 0 stands for a process that this daemon's pid namespace does not show.
  const auto cpus = topology::AffinityOf(session.pid);
  if (placement_ == nullptr || session.pid == 0 || !cpus.ok()) {
    return place;
  }
  place.cpus = cpus->Text();
  place.nic = placement_->nic_name();
  if (const auto distance = placement_->DistanceTo(*cpus)) {
    place.nic_distance = static_cast<int32_t>(*distance);
  }
  return place;
}

Status ProgressPlane::StartTrace() {
  TraceRing ring(trace_events_);
  Status status;
  thread_->Call([&] { status = core_->StartTrace(std::move(ring)); });
  return status;
}

StatusOr<TraceDump> ProgressPlane::StopTrace() {
  std::optional<StatusOr<TraceDump>> dump;
  thread_->Call([&] { dump = core_->StopTrace(); });
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

RankReport ProgressPlane::Inspect(const std::string& job_id, uint32_t rank) const {
  RankReport report;
  thread_->Call([&] { report = core_->Inspect(job_id, rank); });
  return report;
}

Status ProgressPlane::AddJob(const JobPlan& plan) {
  Status status;
  thread_->Call([&] { status = core_->AddJob(plan); });
  if (status.ok()) {
    worker_->AddJob(plan);
  }
  return status;
}

void ProgressPlane::RemoveJob(const std::string& job_id) {
  thread_->Call([&] { core_->RemoveJob(job_id); });
  thread_->Unwatch(worker_->BellOf(job_id));
  worker_->RemoveJob(job_id);
}

Status ProgressPlane::AddSession(std::shared_ptr<Session> session) {
  Status status;
  thread_->Call([&] { status = core_->CheckSession(*session); });
  FERRY_RETURN_IF_ERROR(status);
  // The worker first: from then on the progress thread may ask it to attend.
  StatusOr<WorkerSeat> seat = worker_->AddSession(session);
  FERRY_RETURN_IF_ERROR(seat.status());
  thread_->Watch(session->doorbell.get());
  thread_->Watch(seat->bell);
  thread_->Call([&] { core_->AddSession(session, *seat); });
  return {};
}

void ProgressPlane::RemoveSession(const std::string& job_id, uint32_t rank) {
  const uint64_t deadline_ns = farewell_.DeadlineNs(MonotonicNs());
  int doorbell = -1;
  thread_->Call([&] { doorbell = core_->DoorbellOf(job_id, rank); });
  thread_->Unwatch(doorbell);
  thread_->Until([&] { return core_->TryRemoveSession(job_id, rank, deadline_ns); });
  worker_->RemoveSession(job_id, rank);
}

Status ProgressPlane::AddRegion(const std::string& job_id, uint32_t rank,
                                std::shared_ptr<const Region> region) {
  Status status;
  thread_->Call([&] { status = core_->AddRegion(job_id, rank, region); });
  if (status.ok()) {
    worker_->AddRegion(job_id, rank, std::move(region));
  }
  return status;
}

void ProgressPlane::RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region) {
  worker_->RemoveRegion(job_id, rank, region);
  const uint64_t deadline_ns = MonotonicNs() + operation_timeout_ns_;
  auto signal = std::make_shared<UnpinSignal>();
  const std::future<void> unpinned = signal->done.get_future();
  thread_->Until([&] { return core_->TryRemoveRegion(job_id, rank, region, deadline_ns, signal); });
  signal.reset();
  unpinned.wait();
}

Status ProgressPlane::AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route) {
  Status status;
  thread_->Call([&] { status = core_->AddNode(job_id, node, route); });
  return status;
}

void ProgressPlane::NodeReturned(const std::string& job_id, uint32_t node) {
  thread_->Call([&] { core_->NodeReturned(job_id, node); });
}

void ProgressPlane::RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error) {
  thread_->Call([&] { core_->RankEnded(job_id, rank, error); });
}

void ProgressPlane::NodeFailed(uint64_t incarnation, ErrorCode error) {
  thread_->Call([&] { core_->NodeFailed(incarnation, error); });
}

void ProgressPlane::PoisonJob(const std::string& job_id, ErrorCode error) {
  thread_->Call([&] { core_->PoisonJob(job_id, error); });
}

void ProgressPlane::Probe(std::function<void()> answer) { mailbox_->Post(std::move(answer)); }

bool ProgressPlane::Idle() const {
  bool idle = false;
  thread_->Call([&] { idle = core_->Idle(); });
  return idle && worker_->Idle();
}

StatusOr<std::unique_ptr<DataPlane>> CreateProgressPlane(
    const config::Options& options, std::unique_ptr<transport::Transport> transport,
    PlaneHooks hooks, std::shared_ptr<const Placement> placement) {
  StatusOr<std::unique_ptr<ProgressPlane>> plane =
      ProgressPlane::Create(options, std::move(transport), std::move(hooks), std::move(placement));
  FERRY_RETURN_IF_ERROR(plane.status());
  return std::unique_ptr<DataPlane>(std::move(*plane));
}

}  // namespace ferry::daemon

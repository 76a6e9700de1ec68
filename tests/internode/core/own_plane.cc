#include "tests/internode/core/own_plane.h"

#include <future>
#include <optional>

#include "common/clock.h"
#include "daemon/faults/faulty_transport.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kFarewellNs = 1'000'000'000;

}  // namespace

StatusOr<std::unique_ptr<OwnPlane>> OwnPlane::Create(
    const config::Options& options, std::unique_ptr<transport::Transport> transport,
    progress::CoreHooks hooks, FindRank find_rank) {
  const uint64_t timeout_ns = options.operation_timeout_ms * 1'000'000;
  std::unique_ptr<OwnPlane> plane(new OwnPlane(timeout_ns, std::move(find_rank)));
  progress::CoreOptions core;
  core.staging_blocks = 0;
  core.push_max_bytes = 512 << 10;
  core.operation_timeout_ns = timeout_ns;
  core.registrations = {options.registration_cache_entries, options.registration_cache_bytes};
  core.registration_piece_bytes = options.registration_piece_bytes;
  if (!options.faults.empty()) {
    StatusOr<std::unique_ptr<daemon::Faults>> parsed = daemon::Faults::Parse(options.faults);
    FERRY_RETURN_IF_ERROR(parsed.status());
    plane->faults_ = std::move(*parsed);
    transport = MakeFaultyTransport(std::move(transport), *plane->faults_, timeout_ns);
  }
  progress::CoreParts parts;
  parts.transport = std::move(transport);
  parts.home = plane.get();
  auto created = progress::ProgressCore::Create(core, std::move(parts), std::move(hooks),
                                                [box = &plane->mailbox_] { box->Ring(); });
  FERRY_RETURN_IF_ERROR(created.status());
  plane->core_ = std::move(*created);
  plane->thread_ =
      std::make_unique<ProgressThread>(*plane->core_, plane->mailbox_, shm::WaitPolicy{0, 100'000});
  return plane;
}

OwnPlane::OwnPlane(uint64_t operation_timeout_ns, FindRank find_rank)
    : operation_timeout_ns_(operation_timeout_ns), find_rank_(std::move(find_rank)) {}

OwnPlane::~OwnPlane() = default;

std::byte* OwnPlane::Reach(const progress::ServedRank& rank, uint64_t address, uint64_t /*bytes*/) {
  return rank.session->private_memory_reachable ? reinterpret_cast<std::byte*>(address) : nullptr;
}

void OwnPlane::LetMatch(progress::ServedRank& rank) {
  if (PlaneRank* const found = find_rank_(rank.rank()); found != nullptr && found->has_engine()) {
    found->Progress();
  }
}

template <typename Answer>
Answer OwnPlane::Ask(const std::function<Answer(progress::ProgressCore&)>& question) const {
  std::optional<Answer> answer;
  thread_->Call([&] { answer.emplace(question(*core_)); });
  return std::move(*answer);
}

void OwnPlane::Tell(const std::function<void(progress::ProgressCore&)>& news) {
  thread_->Call([&] { news(*core_); });
}

std::vector<FaultReport> OwnPlane::Faults(bool release) {
  if (faults_ == nullptr) {
    return {};
  }
  if (release) {
    faults_->Release();
    mailbox_.Ring();
  }
  return faults_->Report();
}

std::vector<NicStatistics> OwnPlane::Nics() const {
  return Ask<std::vector<NicStatistics>>([](auto& core) { return core.control().Nics(); });
}

Status OwnPlane::StartTrace() {
  return Ask<Status>(
      [](auto& core) { return core.control().StartTrace(progress::TraceRing(1 << 16)); });
}

StatusOr<TraceDump> OwnPlane::StopTrace() {
  return Ask<StatusOr<TraceDump>>([](auto& core) { return core.control().StopTrace(); });
}

RankReport OwnPlane::Inspect(const std::string& job_id, uint32_t rank) const {
  return Ask<RankReport>([&](auto& core) { return core.control().Inspect(job_id, rank); });
}

Status OwnPlane::AddJob(const JobPlan& plan) {
  return Ask<Status>([&](auto& core) { return core.control().AddJob(plan); });
}

void OwnPlane::RemoveJob(const std::string& job_id) {
  Tell([&](auto& core) { core.control().RemoveJob(job_id); });
}

Status OwnPlane::AddSession(std::shared_ptr<Session> session) {
  thread_->Watch(session->doorbell.get());
  return Ask<Status>([&](auto& core) {
    Status status = core.control().CheckSession(*session);
    if (status.ok()) {
      doorbells_[{session->job_id, session->rank}] = session->doorbell.get();
      core.control().AddSession(session, seat(*session));
    }
    return status;
  });
}

void OwnPlane::RemoveSession(const std::string& job_id, uint32_t rank, Departure departure) {
  const uint64_t deadline_ns = MonotonicNs() + kFarewellNs;
  const auto step = [this, job_id, rank, deadline_ns, said_last = std::move(departure.said_last),
                     has_said = false]() mutable {
    if (const auto doorbell = doorbells_.extract({job_id, rank}); !doorbell.empty()) {
      thread_->Unwatch(doorbell.mapped());
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

Status OwnPlane::AddRegion(const std::string& job_id, uint32_t rank,
                           std::shared_ptr<const Region> region) {
  progress::ClaimableRegion memory;
  memory.base = region->mapping.base();
  memory.size_bytes = region->size_bytes();
  memory.number = region->id;
  memory.lent = region->lent;
  memory.keep_alive = std::move(region);
  return Ask<Status>(
      [&](auto& core) { return core.control().AddRegion(job_id, rank, std::move(memory)); });
}

void OwnPlane::RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region,
                            std::function<void()> done) {
  const uint64_t deadline_ns = MonotonicNs() + operation_timeout_ns_;
  auto signal = std::make_shared<progress::UnpinSignal>();
  const std::future<void> unpinned = signal->done.get_future();
  thread_->Until(
      [&] { return core_->control().TryRemoveRegion(job_id, rank, region, deadline_ns, signal); });
  signal.reset();
  unpinned.wait();
  done();
}

Status OwnPlane::AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route) {
  return Ask<Status>([&](auto& core) { return core.control().AddNode(job_id, node, route); });
}

void OwnPlane::NodeReturned(const std::string& job_id, uint32_t node) {
  Tell([&](auto& core) { core.ends().NodeReturned(job_id, node); });
}

void OwnPlane::PartRanks(const std::string& job_id, uint32_t rank, uint32_t peer) {
  Tell([&](auto& core) { core.ends().PartRanks(job_id, rank, peer); });
}

bool OwnPlane::AreParted(const std::string& job_id, uint32_t rank, uint32_t peer) {
  bool are_parted = false;
  Tell([&](auto& core) { are_parted = core.ends().AreParted(job_id, rank, peer); });
  return are_parted;
}

bool OwnPlane::AreRejoined(const std::string& job_id, uint32_t rank, uint32_t peer) {
  bool are_rejoined = false;
  Tell([&](auto& core) { are_rejoined = core.ends().AreRejoined(job_id, rank, peer); });
  return are_rejoined;
}

void OwnPlane::RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error) {
  Tell([&](auto& core) { core.ends().RankEnded(job_id, rank, error); });
}

void OwnPlane::NodeFailed(uint64_t link, ErrorCode error) {
  Tell([&](auto& core) { core.ends().NodeFailed(link, error); });
}

void OwnPlane::PoisonJob(const std::string& job_id, ErrorCode error) {
  Tell([&](auto& core) { core.ends().PoisonJob(job_id, error); });
}

bool OwnPlane::Idle() const {
  return Ask<bool>([](auto& core) { return core.control().Idle(); });
}

}  // namespace ferry::daemon

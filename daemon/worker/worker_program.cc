#include "daemon/worker/worker_program.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/process_memory.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "common/version.h"
#include "daemon/session/session.h"
#include "daemon/sockets/packet_socket.h"
#include "daemon/staging/device_copier.h"
#include "daemon/worker/control_layout.h"
#include "daemon/worker/job_turns.h"
#include "daemon/worker/worker_job.h"
#include "daemon/worker/worker_message.h"
#include "gpu_backends/api/gpu_source.h"
#include "internode/staging/copier.h"
#include "shm/atomic.h"
#include "shm/segment.h"
#include "shm/wait_policy.h"

namespace ferry::daemon {
namespace {

// Workers write no files (worker_main.cc), but drivers make some to share memory.
void AllowFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
}

constexpr int kLeaseRetryMs = 1;
constexpr int kCollectMs = 10;                  // a stream that failed sends no notice
constexpr int kReleaseMs = 500;                 // while the GPU's backend is to be closed
constexpr uint64_t kTurnsBetweenLooks = 1024;   // at the socket, while there is much to do
constexpr shm::WaitPolicy kWaiting{0, 50'000};  // the next block of a pipeline comes soon
constexpr uint32_t kMaxCapacity = 1U << 20;

Status Unexpected() { return {ErrorCode::kCorrupt, "ferryd sent what no ferryd sends"}; }

// Staging memory as a worker sees it. It stays while the job does.
struct WorkerStaging {
  shm::Mapping mapping;
  uint64_t block_bytes = 0;
};

// The GPUs of a worker process: its ranks' device memory, imported, and copies between that and
// staging memory, by streams.
//
// The vendor's library is loaded, and devices get their contexts, when the first import comes, and
// not before: most jobs need none of it. Some time after the last import they are given back.
//
// Main thread only. Import may block for as long as a driver takes to start, ReleaseIdle while it
// ends; nothing else does.
class WorkerGpu final : private progress::CopySink {
 public:
  using Done = std::function<void(const CopyCommand& command, ErrorCode error)>;

  // `done` tells how each copy has ended. At most `capacity` are under way at a time.
  WorkerGpu(std::shared_ptr<gpu::GpuSource> gpus, uint32_t capacity, Done done)
      : gpus_(std::move(gpus)),
        capacity_(capacity),
        done_(std::move(done)),
        bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  // Imports the region's device memory. Errors as of Region::Import.
  Status Import(const gpu::IpcHandle& handle, Region* region) {
    AllowFiles();
    FERRY_RETURN_IF_ERROR(region->Import(*gpus_, handle));
    MakeCopier();
    return {};
  }

  // No region is imported any more: once its copies are over, nothing keeps the backend open.
  void Rest() {
    resting_ = true;
    if (copier_ != nullptr && copier_->pending() == 0) {
      for (std::byte* const block : pinned_) {
        copier_->memory_user()->Dismiss(block);
      }
      pinned_.clear();
      copier_.reset();
    }
  }

  // Closes the backend if nothing has kept it open for a while. Returns true if it has to be called
  // again later.
  bool ReleaseIdle() { return gpus_->ReleaseIdle(MonotonicNs()); }

  // Begins the copy, whose staging memory lies within `staging`, and the rest in `region`.
  void Begin(const CopyCommand& command, WorkerStaging& staging,
             std::shared_ptr<const Region> region) {
    if (region == nullptr || region->device_memory == nullptr ||
        !region->IsInside(command.remote_address, command.size_bytes)) {
      return done_(command, ErrorCode::kInvalidBuffer);
    }
    Pin(staging, command.offset);
    Flight& flight = flights_[command.id];
    flight = {command, std::move(region)};
    progress::CopyTask task;
    task.direction = static_cast<progress::CopyTask::Direction>(command.direction);
    task.device = flight.region->device_memory->base() + command.remote_address;
    task.local = staging.mapping.base() + command.offset;
    task.size_bytes = command.size_bytes;
    task.context = &flight;
    if (!copier_->Submit(task)) {
      flights_.erase(command.id);
      done_(command, ErrorCode::kInternal);  // ferryd gives no more commands than there is room for
    }
  }

  // Tells of the copies that have ended; returns how many.
  uint32_t Collect() {
    if (pending() == 0) {
      return 0;
    }
    uint64_t rung = 0;
    (void)!read(bell_.get(), &rung, sizeof(rung));
    const uint32_t ended = copier_->Collect(*this);
    if (resting_) {
      Rest();
    }
    return ended;
  }

  uint32_t pending() const { return copier_ == nullptr ? 0 : copier_->pending(); }
  // Readable once a copy has ended; Collect silences it. After a failure it stays silent: while
  // copies are pending Collect is to be called now and then.
  int bell() const { return bell_.get(); }

 private:
  struct Flight {
    CopyCommand command;
    std::shared_ptr<const Region> region;  // stays imported until the copy is over
  };

  void MakeCopier() {
    resting_ = false;
    if (copier_ == nullptr) {
      copier_ = std::make_unique<DeviceCopier>(gpus_, [bell = bell_.get()] {
        const uint64_t one = 1;
        (void)!write(bell, &one, sizeof(one));
      });
      copier_->Allow(capacity_);
    }
  }

  // A whole block when it is first used: it stays in its pool (Stage::shrinks).
  void Pin(WorkerStaging& staging, uint64_t offset) {
    const uint64_t begin = offset - offset % staging.block_bytes;
    std::byte* const base = staging.mapping.base() + begin;
    if (pinned_.insert(base).second) {
      copier_->memory_user()->Admit(
          base, std::min(staging.block_bytes, staging.mapping.size_bytes() - begin));
    }
  }

  void OnCopied(const progress::CopyTask& task) override {
    const CopyCommand command = static_cast<Flight*>(task.context)->command;
    flights_.erase(command.id);
    done_(command, task.result);
  }

  const std::shared_ptr<gpu::GpuSource> gpus_;
  const uint32_t capacity_;
  const Done done_;
  UniqueFd bell_;
  std::unique_ptr<DeviceCopier> copier_;  // null before the first import, and after the last
  bool resting_ = false;                  // it goes with the last copy
  std::map<uint64_t, Flight> flights_;    // by the command's id
  std::set<std::byte*> pinned_;           // blocks of staging memory
};

class WorkerProgram {
 public:
  // `socket`: the end that ferryd gave us. `gpus`: for device memory.
  WorkerProgram(int socket, std::shared_ptr<gpu::GpuSource> gpus)
      : socket_(socket), gpus_(std::move(gpus)) {}

  // Serves until ferryd hangs up (ok), or something is wrong for good.
  Status Run() {
    FERRY_RETURN_IF_ERROR(Say(WorkerMessageKind::kReady, 0, ErrorCode::kOk));
    FERRY_RETURN_IF_ERROR(AwaitStart());
    shm::Waiter waiter(kWaiting);
    for (uint64_t turn = 1; !hung_up_; ++turn) {
      shm::StoreRelaxed(control_->turns, turn);
      uint32_t done = 0;
      // Pairs with WorkerSupervisor::Flush.
      if (shm::LoadAcquire(control_->messages) != messages_ || turn % kTurnsBetweenLooks == 0) {
        FERRY_RETURN_IF_ERROR(ReadMessages());
      }
      done += CarryNext() ? 1 : 0;
      done += gpu_->Collect();
      done += turns_->Turn();
      if (done != 0) {
        waiter.Reset();
      } else if (waiter.Idle()) {
        Sleep();
        FERRY_RETURN_IF_ERROR(ReadMessages());
      }
    }
    return {};
  }

 private:
  Status AwaitStart() {
    while (job_ == nullptr && !hung_up_) {
      pollfd readable{socket_, POLLIN, 0};
      poll(&readable, 1, -1);
      FERRY_RETURN_IF_ERROR(ReadMessages());
    }
    return {};
  }

  Status Start(SocketPacket& packet, const WorkerMessage& message) {
    if (packet.fds.size() != 2 || message.capacity == 0 || message.capacity > kMaxCapacity ||
        message.local_size > shm::kMaxLocalRanks) {
      return Unexpected();
    }
    capacity_ = message.capacity;
    at_ = PlacesOfControl(message.job_size, capacity_);
    StatusOr<shm::Mapping> control = shm::MapSegment(packet.fds[0].get(), at_.end);
    FERRY_RETURN_IF_ERROR(control.status());
    control_map_ = std::move(*control);
    control_ = reinterpret_cast<WorkerControlLayout*>(control_map_.base());
    bell_ = std::move(packet.fds[1]);
    options_.chunk_bytes = message.chunk_bytes;
    plan_.job_id.assign(message.job_id, strnlen(message.job_id, sizeof(message.job_id)));
    plan_.node = message.node;
    local_size_ = message.local_size;
    const auto* places = reinterpret_cast<const RankPlace*>(control_map_.base() + at_.places);
    for (uint32_t rank = 0; rank < message.job_size; ++rank) {
      plan_.node_of_rank.push_back(places[rank].node);
      plan_.local_index.push_back(places[rank].lane);
    }
    job_ = std::make_unique<WorkerJob>(plan_);
    turns_ = std::make_unique<JobTurns>(*job_, ring_);
    gpu_ = std::make_unique<WorkerGpu>(
        gpus_, capacity_,
        [this](const CopyCommand& command, ErrorCode error) { Answer(command, error); });
    return {};
  }

  // Handles the messages in the socket.
  Status ReadMessages() {
    while (true) {
      SocketPacket packet;
      const StatusOr<Received> received = ReceivePacket(socket_, &packet);
      FERRY_RETURN_IF_ERROR(received.status());
      if (*received == Received::kNothing) {
        return {};
      }
      if (*received == Received::kHangUp) {
        hung_up_ = true;
        return {};
      }
      const auto* message = packet.As<WorkerMessage>();
      if (message == nullptr || message->magic != kWorkerMagic ||
          message->layout_version != kLayoutVersion) {
        return Unexpected();
      }
      FERRY_RETURN_IF_ERROR(Handle(packet, *message));
    }
  }

  Status Handle(SocketPacket& packet, const WorkerMessage& message) {
    const auto kind = static_cast<WorkerMessageKind>(message.kind);
    if (kind == WorkerMessageKind::kWake) {
      return {};
    }
    ++messages_;
    if ((job_ == nullptr) != (kind == WorkerMessageKind::kStart)) {
      return Unexpected();
    }
    switch (kind) {
      case WorkerMessageKind::kStart:
        return Start(packet, message);
      case WorkerMessageKind::kSession:
        AddSession(packet, message);
        return {};
      case WorkerMessageKind::kEndSession:
        job_->RemoveRank(message.rank);
        RestIfNothingIsImported();
        return {};
      case WorkerMessageKind::kRegion:
      case WorkerMessageKind::kLent:
        return AddRegion(packet, message);
      case WorkerMessageKind::kEndRegion:
        if (WorkerRank* rank = job_->Find(message.rank); rank != nullptr) {
          rank->regions.erase(message.region);
        }
        RestIfNothingIsImported();
        return {};
      case WorkerMessageKind::kDevice:
        return AddDevice(packet, message);
      case WorkerMessageKind::kStaging:
        return AddStaging(packet, message);
      default:
        return Unexpected();
    }
  }

  void AddSession(SocketPacket& packet, const WorkerMessage& message) {
    auto session = std::make_shared<Session>();
    session->job_id = plan_.job_id;
    session->rank = message.rank;
    session->local_index = message.lane;
    session->local_size = local_size_;
    session->job_size = plan_.size();
    session->pid = message.pid;
    session->private_memory_reachable = IsProcessMemoryReachable(message.pid);
    Status status(ErrorCode::kCorrupt, "no segments");
    if (packet.fds.size() == 2 && message.lane < shm::kMaxLanes) {
      StatusOr<shm::Mapping> own = shm::MapSegment(packet.fds[0].get(), message.size_bytes);
      StatusOr<shm::Mapping> inbox = shm::MapSegment(packet.fds[1].get(), message.inbox_bytes);
      status = own.ok() ? inbox.status() : own.status();
      if (status.ok()) {
        session->session_map = std::move(*own);
        session->inbox_map = std::move(*inbox);
        // The word is in the control memory, which stays mapped.
        std::shared_ptr<uint32_t> wanted(std::shared_ptr<void>(),
                                         &control_->wanted[message.lane].word);
        status = job_->AddRank(session, std::move(wanted), options_);
      }
    }
    // A failed send is ignored: ferryd has gone then.
    if (!status.ok()) {
      (void)Say(WorkerMessageKind::kTrouble, message.rank, status.code()).ok();
      return;
    }
    const ErrorCode reach =
        session->private_memory_reachable ? ErrorCode::kOk : ErrorCode::kPermissionDenied;
    (void)Say(WorkerMessageKind::kReach, message.rank, reach).ok();
  }

  Status AddRegion(SocketPacket& packet, const WorkerMessage& message) {
    WorkerRank* rank = job_->Find(message.rank);
    if (rank == nullptr || packet.fds.size() != 1) {
      return rank == nullptr ? Status() : Unexpected();
    }
    StatusOr<shm::Mapping> mapping = shm::MapPart(packet.fds[0].get(), message.size_bytes);
    FERRY_RETURN_IF_ERROR(mapping.status());
    auto region = std::make_shared<Region>();
    region->id = message.region;
    region->mapping = std::move(*mapping);
    region->lent = message.kind == static_cast<uint32_t>(WorkerMessageKind::kLent);
    rank->regions[message.region] = std::move(region);
    return {};
  }

  // The rank is told by ferryd, which has it stage the memory by itself if we cannot import it.
  Status AddDevice(SocketPacket& packet, const WorkerMessage& message) {
    const Status status = ImportDevice(packet, message);
    WorkerMessage answer = MakeWorkerMessage(WorkerMessageKind::kImport);
    answer.rank = message.rank;
    answer.region = message.region;
    answer.code = static_cast<int32_t>(status.code());
    status.message().copy(answer.text, sizeof(answer.text) - 1);
    (void)Say(answer).ok();  // if ferryd does not listen, it is gone
    return {};
  }

  Status ImportDevice(SocketPacket& packet, const WorkerMessage& message) {
    WorkerRank* rank = job_->Find(message.rank);
    if (rank == nullptr) {
      return {ErrorCode::kPeerDied, "its rank has left"};
    }
    auto region = std::make_shared<Region>();
    region->id = message.region;
    region->kind = RegionKind::kDevice;
    region->by_stream = true;
    region->device_bytes = message.size_bytes;
    gpu::IpcHandle handle;
    handle.fd = packet.fds.empty() ? UniqueFd() : std::move(packet.fds[0]);
    std::copy(std::begin(message.handle), std::end(message.handle), handle.opaque.begin());
    handle.size_bytes = message.size_bytes;
    handle.allocation_id = message.allocation_id;
    handle.device = static_cast<int32_t>(message.device);
    FERRY_RETURN_IF_ERROR(gpu_->Import(handle, region.get()));
    rank->regions[message.region] = std::move(region);
    return {};
  }

  Status AddStaging(SocketPacket& packet, const WorkerMessage& message) {
    if (packet.fds.size() != 1 || message.chunk_bytes == 0) {
      return Unexpected();
    }
    StatusOr<shm::Mapping> mapping = shm::MapSegment(packet.fds[0].get(), message.size_bytes);
    FERRY_RETURN_IF_ERROR(mapping.status());
    staging_[message.pool] = {std::move(*mapping), message.chunk_bytes};
    return {};
  }

  void RestIfNothingIsImported() {
    for (const auto& [number, rank] : job_->ranks()) {
      if (std::any_of(rank->regions.begin(), rank->regions.end(),
                      [](const auto& entry) { return entry.second->device_memory != nullptr; })) {
        return;
      }
    }
    gpu_->Rest();
  }

  Status Say(WorkerMessageKind kind, uint32_t rank, ErrorCode code) {
    WorkerMessage message = MakeWorkerMessage(kind);
    message.rank = rank;
    message.code = static_cast<int32_t>(code);
    return Say(message);
  }

  Status Say(const WorkerMessage& message) {
    Status status;
    while ((status = SendPacket(socket_, message)).code() == ErrorCode::kWouldBlock) {
      pollfd room{socket_, POLLOUT, 0};
      poll(&room, 1, -1);
    }
    return status;
  }

  // The staging memory of the next command; null: there is no command, or its memory is not here:
  // commands may overtake the message that brings it, and wait for it.
  WorkerStaging* NextStaging(std::memory_order order) {
    // Pairs with RemoteCopier::Submit.
    if (shm::Load(control_->commands_tail, order) == commands_) {
      return nullptr;
    }
    const auto found = staging_.find(commands()[commands_ % capacity_].pool);
    return found == staging_.end() ? nullptr : &found->second;
  }

  bool CarryNext() {
    WorkerStaging* const staging = NextStaging(std::memory_order_acquire);
    if (staging == nullptr) {
      return false;
    }
    const CopyCommand command = commands()[commands_ % capacity_];
    ++commands_;
    Carry(command, *staging);
    return true;
  }

  void Carry(const CopyCommand& command, WorkerStaging& staging) {
    const WorkerRank* rank = job_->FindLocal(command.lane);
    const uint64_t staging_bytes = staging.mapping.size_bytes();
    if (rank == nullptr) {
      return Answer(command, ErrorCode::kPeerDied);
    }
    if (command.offset > staging_bytes || command.size_bytes > staging_bytes - command.offset) {
      return Answer(command, ErrorCode::kInvalidBuffer);
    }
    if (command.region == 0) {
      return Answer(command, CopyPrivate(command, staging, *rank));
    }
    const auto region = rank->regions.find(command.region);
    gpu_->Begin(command, staging, region == rank->regions.end() ? nullptr : region->second);
  }

  ErrorCode CopyPrivate(const CopyCommand& command, const WorkerStaging& staging,
                        const WorkerRank& rank) const {
    std::byte* local = staging.mapping.base() + command.offset;
    const pid_t pid = rank.session->pid;
    return command.direction == static_cast<uint32_t>(progress::CopyTask::Direction::kFromProcess)
               ? ReadProcessMemory(pid, command.remote_address, local, command.size_bytes)
               : WriteProcessMemory(pid, command.remote_address, local, command.size_bytes);
  }

  void Answer(const CopyCommand& command, ErrorCode error) {
    CopyResult& result = results()[results_ % capacity_];
    shm::StoreRelaxed(result.id, command.id);
    shm::StoreRelaxed(result.error, static_cast<int32_t>(error));
    ++results_;
    shm::StoreRelease(control_->results_tail, results_);  // Pairs with RemoteCopier::TakeResult.
    RingDaemon();
  }

  void RingDaemon() const {
    const uint64_t one = 1;
    (void)!write(bell_.get(), &one, sizeof(one));
  }

  void Sleep() {
    // Pairs with WorkerChannel::Rouse: either ferryd sees this, or this thread sees what ferryd
    // wrote.
    shm::Exchange(control_->sleeping, 1U, std::memory_order_seq_cst);
    const bool commanded = NextStaging(std::memory_order_seq_cst) != nullptr;
    if (!commanded && !turns_->IsWanted() &&
        shm::Load(control_->messages, std::memory_order_seq_cst) == messages_) {
      // Busy here means: a rank holds its lease and is not running.
      pollfd readable[] = {{socket_, POLLIN, 0}, {gpu_->bell(), POLLIN, 0}};
      poll(readable, std::size(readable),
           turns_->IsBusy()       ? kLeaseRetryMs
           : gpu_->pending() != 0 ? kCollectMs
           : gpu_->ReleaseIdle()  ? kReleaseMs
                                  : -1);
    }
    shm::Exchange(control_->sleeping, 0U, std::memory_order_seq_cst);
  }

  CopyResult* results() const {
    return reinterpret_cast<CopyResult*>(control_map_.base() + at_.results);
  }
  CopyCommand* commands() const {
    return reinterpret_cast<CopyCommand*>(control_map_.base() + at_.commands);
  }

  const int socket_;
  const std::shared_ptr<gpu::GpuSource> gpus_;
  bool hung_up_ = false;
  UniqueFd bell_;
  shm::Mapping control_map_;
  WorkerControlLayout* control_ = nullptr;
  uint32_t capacity_ = 0;
  ControlPlaces at_{};
  uint32_t local_size_ = 0;
  engine::EngineOptions options_;
  JobPlan plan_;
  std::map<uint32_t, WorkerStaging> staging_;  // by the number of its pool
  const std::function<void()> ring_ = [this] { RingDaemon(); };
  std::unique_ptr<WorkerJob> job_;
  std::unique_ptr<JobTurns> turns_;
  std::unique_ptr<WorkerGpu> gpu_;
  uint64_t messages_ = 0;  // received
  uint64_t commands_ = 0;  // taken
  uint64_t results_ = 0;   // given
};

}  // namespace

Status RunWorkerProgram(int socket, std::shared_ptr<gpu::GpuSource> gpus) {
  return WorkerProgram(socket, std::move(gpus)).Run();
}

}  // namespace ferry::daemon

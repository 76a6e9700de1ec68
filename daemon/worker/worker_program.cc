#include "daemon/worker/worker_program.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/process_memory.h"
#include "common/version.h"
#include "daemon/staging/copier.h"
#include "shm/atomic.h"
#include "shm/wait_policy.h"

namespace ferry::daemon {
namespace {

constexpr int kLeaseRetryMs = 1;
constexpr uint64_t kTurnsBetweenLooks = 1024;   // at the socket, while there is much to do
constexpr shm::WaitPolicy kWaiting{0, 50'000};  // the next block of a pipeline comes soon
constexpr uint32_t kMaxCapacity = 1U << 20;

Status Unexpected() { return {ErrorCode::kCorrupt, "ferryd sent what no ferryd sends"}; }

}  // namespace

Status WorkerProgram::Run() {
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
    CopyCommand command;
    if (NextCommand(&command)) {
      Answer(command, Carry(command));
      ++done;
    }
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

// ---- Messages
// ------------------------------------------------------------------------------------

Status WorkerProgram::Say(WorkerMessageKind kind, uint32_t rank, ErrorCode code) {
  WorkerMessage message = MakeWorkerMessage(kind);
  message.rank = rank;
  message.code = static_cast<int32_t>(code);
  Status status;
  while ((status = SendPacket(socket_, message)).code() == ErrorCode::kWouldBlock) {
    pollfd room{socket_, POLLOUT, 0};
    poll(&room, 1, -1);
  }
  return status;
}

Status WorkerProgram::AwaitStart() {
  while (job_ == nullptr && !hung_up_) {
    pollfd readable{socket_, POLLIN, 0};
    poll(&readable, 1, -1);
    FERRY_RETURN_IF_ERROR(ReadMessages());
  }
  return {};
}

Status WorkerProgram::ReadMessages() {
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

Status WorkerProgram::Handle(SocketPacket& packet, const WorkerMessage& message) {
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
      return {};
    case WorkerMessageKind::kRegion:
      return AddRegion(packet, message);
    case WorkerMessageKind::kEndRegion:
      if (WorkerRank* rank = job_->Find(message.rank); rank != nullptr) {
        rank->regions.erase(message.region);
      }
      return {};
    case WorkerMessageKind::kStaging: {
      StatusOr<shm::Mapping> mapping = shm::MapSegment(packet.fds.at(0).get(), message.size_bytes);
      FERRY_RETURN_IF_ERROR(mapping.status());
      staging_ = std::move(*mapping);
      return {};
    }
    default:
      return Unexpected();
  }
}

Status WorkerProgram::Start(SocketPacket& packet, const WorkerMessage& message) {
  if (packet.fds.size() != 2 || message.capacity == 0 || message.capacity > kMaxCapacity ||
      message.job_size > shm::kMaxRanks || message.local_size >= shm::kMaxLanes) {
    return Unexpected();
  }
  capacity_ = message.capacity;
  StatusOr<shm::Mapping> control =
      shm::MapSegment(packet.fds[0].get(), ControlSizeBytes(capacity_));
  FERRY_RETURN_IF_ERROR(control.status());
  control_map_ = std::move(*control);
  control_ = reinterpret_cast<WorkerControlLayout*>(control_map_.base());
  bell_ = std::move(packet.fds[1]);
  options_.chunk_bytes = message.chunk_bytes;
  plan_.job_id.assign(message.job_id, strnlen(message.job_id, sizeof(message.job_id)));
  plan_.node = message.node;
  local_size_ = message.local_size;
  for (uint32_t rank = 0; rank < message.job_size; ++rank) {
    plan_.node_of_rank.push_back(control_->places[rank].node);
    plan_.local_index.push_back(control_->places[rank].lane);
  }
  job_ = std::make_unique<WorkerJob>(plan_);
  turns_ = std::make_unique<JobTurns>(*job_, ring_);
  return {};
}

void WorkerProgram::AddSession(SocketPacket& packet, const WorkerMessage& message) {
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
      // In the control memory, which stays mapped.
      std::shared_ptr<uint32_t> wanted(std::shared_ptr<void>(),
                                       &control_->wanted[message.lane].word);
      status = job_->AddRank(session, std::move(wanted), options_);
    }
  }
  // If ferryd does not listen, it is gone.
  if (!status.ok()) {
    (void)Say(WorkerMessageKind::kTrouble, message.rank, status.code()).ok();
    return;
  }
  const ErrorCode reach =
      session->private_memory_reachable ? ErrorCode::kOk : ErrorCode::kPermissionDenied;
  (void)Say(WorkerMessageKind::kReach, message.rank, reach).ok();
}

Status WorkerProgram::AddRegion(SocketPacket& packet, const WorkerMessage& message) {
  WorkerRank* rank = job_->Find(message.rank);
  if (rank == nullptr || packet.fds.size() != 1) {
    return rank == nullptr ? Status() : Unexpected();
  }
  StatusOr<shm::Mapping> mapping = shm::MapSegment(packet.fds[0].get(), message.size_bytes);
  FERRY_RETURN_IF_ERROR(mapping.status());
  auto region = std::make_shared<Region>();
  region->id = message.region;
  region->mapping = std::move(*mapping);
  rank->regions[message.region] = std::move(region);
  return {};
}

// ---- Copies
// --------------------------------------------------------------------------------------

// Commands may overtake the message that brings the staging memory; they wait for it.
bool WorkerProgram::NextCommand(CopyCommand* command) {
  // Pairs with RemoteCopier::Submit.
  if (!staging_.valid() || shm::LoadAcquire(control_->commands_tail) == commands_) {
    return false;
  }
  *command = commands()[commands_ % capacity_];
  ++commands_;
  return true;
}

ErrorCode WorkerProgram::Carry(const CopyCommand& command) {
  const WorkerRank* rank = job_->FindLocal(command.lane);
  if (rank == nullptr) {
    return ErrorCode::kPeerDied;
  }
  if (command.offset > staging_.size_bytes() ||
      command.size_bytes > staging_.size_bytes() - command.offset) {
    return ErrorCode::kInvalidBuffer;
  }
  std::byte* local = staging_.base() + command.offset;
  const pid_t pid = rank->session->pid;
  return command.direction == static_cast<uint32_t>(CopyTask::Direction::kFromProcess)
             ? ReadProcessMemory(pid, command.remote_address, local, command.size_bytes)
             : WriteProcessMemory(pid, command.remote_address, local, command.size_bytes);
}

void WorkerProgram::Answer(const CopyCommand& command, ErrorCode error) {
  CopyResult& result = results()[results_ % capacity_];
  shm::StoreRelaxed(result.id, command.id);
  shm::StoreRelaxed(result.error, static_cast<int32_t>(error));
  ++results_;
  shm::StoreRelease(control_->results_tail, results_);  // Pairs with RemoteCopier::TakeResult.
  RingDaemon();
}

void WorkerProgram::RingDaemon() const {
  const uint64_t one = 1;
  (void)!write(bell_.get(), &one, sizeof(one));
}

// ---- Sleeping
// ------------------------------------------------------------------------------------

void WorkerProgram::Sleep() {
  // Pairs with WorkerChannel::Rouse: either ferryd sees this, or we see what it wrote.
  shm::Exchange(control_->sleeping, 1U, std::memory_order_seq_cst);
  const bool commanded = staging_.valid() &&
                         shm::Load(control_->commands_tail, std::memory_order_seq_cst) != commands_;
  if (!commanded && !turns_->IsWanted() &&
      shm::Load(control_->messages, std::memory_order_seq_cst) == messages_) {
    // Busy here means: a rank holds its lease and is not running.
    pollfd readable{socket_, POLLIN, 0};
    poll(&readable, 1, turns_->IsBusy() ? kLeaseRetryMs : -1);
  }
  shm::Exchange(control_->sleeping, 0U, std::memory_order_seq_cst);
}

}  // namespace ferry::daemon

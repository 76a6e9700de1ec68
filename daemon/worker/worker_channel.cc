#include "daemon/worker/worker_channel.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/clock.h"
#include "daemon/sockets/disposal.h"
#include "daemon/sockets/packet_socket.h"
#include "daemon/worker/worker_message.h"
#include "internode/staging/staging_pool.h"
#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

// Lets pass the errors that a copy can end with; no other is believed.
ErrorCode SaneError(int32_t error) {
  switch (static_cast<ErrorCode>(error)) {
    case ErrorCode::kOk:
    case ErrorCode::kPeerDied:
    case ErrorCode::kPermissionDenied:
    case ErrorCode::kInvalidBuffer:
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kSystem:
      return static_cast<ErrorCode>(error);
    default:
      return ErrorCode::kInternal;
  }
}

class RemoteAttention final : public progress::Attention {
 public:
  RemoteAttention(std::shared_ptr<WorkerChannel> channel, uint32_t lane)
      : channel_(std::move(channel)), word_(channel_->control()->wanted[lane].word) {}

  void Raise() override {
    // Pairs with WorkerProgram::Sleep: either it sees the word, or we see that it sleeps.
    if (shm::Exchange(word_, 1U, std::memory_order_seq_cst) == 0) {
      channel_->Rouse();
    }
  }

 private:
  const std::shared_ptr<WorkerChannel> channel_;
  uint32_t& word_;
};

}  // namespace

// ---- RemoteCopier ----

RemoteCopier::RemoteCopier(std::shared_ptr<WorkerChannel> channel, Share share,
                           std::function<void(const std::string& text)> condemn)
    : channel_(std::move(channel)),
      share_(std::move(share)),
      condemn_(std::move(condemn)),
      slots_(channel_->capacity()) {
  free_.reserve(slots_.size());
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    free_.push_back(slot);
  }
}

void RemoteCopier::Open(progress::StagingPool& pool) {
  const uint32_t number = pools_opened_++;
  pools_.push_back({&pool, number});
  share_(pool, number);
}

void RemoteCopier::Close(progress::StagingPool& pool) {
  std::erase_if(pools_, [&](const Shared& shared) { return shared.pool == &pool; });
  for (Slot& slot : slots_) {
    slot.pool = slot.pool == &pool ? nullptr : slot.pool;
  }
}

const RemoteCopier::Shared* RemoteCopier::PoolOf(const progress::CopyTask& task) const {
  const auto found = std::find_if(pools_.begin(), pools_.end(), [&](const Shared& shared) {
    const std::byte* const base = shared.pool->base();
    return base <= task.local && task.local < base + shared.pool->size_bytes();
  });
  return found == pools_.end() ? nullptr : &*found;
}

bool RemoteCopier::Submit(const progress::CopyTask& task) {
  const Shared* const shared = PoolOf(task);
  if (free_.empty() || shared == nullptr) {
    return false;
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.task = task;
  slot.pool = shared->pool;
  slot.task.place = progress::TracePlace::kFerryWorker;
  slot.task.begun_ns = task.timed ? MonotonicNs() : 0;  // it may wait there for others
  slot.used = true;
  ++slot.life;
  if (pending_++ == 0) {
    silent_since_ns_.store(MonotonicNs(), std::memory_order_relaxed);
  }
  CopyCommand& command = channel_->commands()[commands_ % channel_->capacity()];
  shm::StoreRelaxed(command.id, uint64_t{slot.life} << 32 | index);
  shm::StoreRelaxed(command.remote_address, task.remote_address);
  shm::StoreRelaxed(command.offset, static_cast<uint64_t>(task.local - shared->pool->base()));
  shm::StoreRelaxed(command.size_bytes, task.size_bytes);
  shm::StoreRelaxed(command.direction, static_cast<uint32_t>(task.direction));
  shm::StoreRelaxed(command.lane, task.lane);
  shm::StoreRelaxed(command.region, task.region);
  shm::StoreRelaxed(command.pool, shared->number);
  ++commands_;
  // Pairs with WorkerProgram::NextStaging: publishes the command. Sequentially consistent for
  // Rouse.
  shm::Exchange(channel_->control()->commands_tail, commands_, std::memory_order_seq_cst);
  channel_->Rouse();
  return true;
}

uint32_t RemoteCopier::Collect(progress::CopySink& sink) {
  const uint32_t before = pending_;
  if (failed_.load(std::memory_order_acquire)) {
    FailAll(sink);
    return before;
  }
  uint32_t taken = 0;
  while (taken < channel_->capacity() && TakeResult(sink)) {
    ++taken;
  }
  if (taken != 0) {
    silent_since_ns_.store(pending_ == 0 ? 0 : MonotonicNs(), std::memory_order_relaxed);
  }
  return taken;
}

bool RemoteCopier::TakeResult(progress::CopySink& sink) {
  // Pairs with WorkerProgram::Answer. Read once, as is the result.
  const uint64_t tail = shm::LoadAcquire(channel_->control()->results_tail);
  if (tail == results_) {
    return false;
  }
  if (tail - results_ > channel_->capacity()) {
    Condemn("its ring of results says that it holds " + std::to_string(tail - results_));
    return false;
  }
  const CopyResult& result = channel_->results()[results_ % channel_->capacity()];
  const uint64_t id = shm::LoadRelaxed(result.id);
  const ErrorCode error = SaneError(shm::LoadRelaxed(result.error));
  ++results_;
  const auto index = static_cast<uint32_t>(id);
  if (index >= slots_.size() || !slots_[index].used || slots_[index].life != id >> 32) {
    Condemn("it says that it has ended a copy that is not under way");
    return false;
  }
  End(slots_[index], error, sink);
  return true;
}

void RemoteCopier::End(Slot& slot, ErrorCode result, progress::CopySink& sink) {
  slot.used = false;
  free_.push_back(static_cast<uint32_t>(&slot - slots_.data()));
  progress::CopyTask task = slot.task;
  if (task.abandoned) {
    if (slot.pool != nullptr) {
      slot.pool->Return(task.local);
    }
    return;
  }
  --pending_;
  task.result = result;
  task.ended_ns = task.timed ? MonotonicNs() : 0;
  sink.OnCopied(task);
}

void RemoteCopier::FailAll(progress::CopySink& sink) {
  for (Slot& slot : slots_) {
    if (slot.used) {
      End(slot, ErrorCode::kWorkerDied, sink);
    }
  }
  silent_since_ns_.store(0, std::memory_order_relaxed);
}

bool RemoteCopier::Abandon(uint32_t lane, progress::CopySink& sink) {
  for (Slot& slot : slots_) {
    if (slot.used && slot.task.lane == lane && !slot.task.abandoned) {
      slot.task.abandoned = true;
      --pending_;
      progress::CopyTask task = slot.task;
      task.result = ErrorCode::kCancelled;
      sink.OnCopied(task);
    }
  }
  if (pending_ == 0) {
    silent_since_ns_.store(0, std::memory_order_relaxed);
  }
  return true;
}

void RemoteCopier::Condemn(const std::string& text) {
  Fail();
  condemn_(text);
}

// ---- WorkerChannel ----

StatusOr<std::shared_ptr<WorkerChannel>> WorkerChannel::Create(const JobPlan& plan,
                                                               uint32_t capacity) {
  std::shared_ptr<WorkerChannel> channel(new WorkerChannel());
  channel->capacity_ = capacity;
  channel->at_ = PlacesOfControl(plan.size(), capacity);
  StatusOr<UniqueFd> control = shm::CreateSegment("ferry-worker", channel->at_.end);
  FERRY_RETURN_IF_ERROR(control.status());
  StatusOr<shm::Mapping> mapping = shm::MapSegment(control->get(), 0);
  FERRY_RETURN_IF_ERROR(mapping.status());
  channel->control_fd_ = std::move(*control);
  channel->mapping_ = std::move(*mapping);
  channel->bell_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  int sockets[2];
  if (!channel->bell_.valid() ||
      socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
    return StatusFromErrno(errno, "descriptors of a worker process");
  }
  channel->socket_.Reset(sockets[0]);
  channel->worker_socket_.Reset(sockets[1]);
  for (uint32_t rank = 0; rank < plan.size(); ++rank) {
    channel->places()[rank] = {plan.node_of_rank[rank], plan.local_index[rank]};
  }
  return channel;
}

// The socket may hold any descriptors that the worker has passed.
WorkerChannel::~WorkerChannel() { Disposal::Instance().CloseSocket(std::move(socket_)); }

void WorkerChannel::Rouse() {
  // Pairs with WorkerProgram::Sleep.
  if (shm::Exchange(control()->sleeping, 0U, std::memory_order_seq_cst) != 0) {
    // If the packet does not fit, the socket holds unread packets, which end the sleep as well.
    (void)SendPacket(socket_.get(), MakeWorkerMessage(WorkerMessageKind::kWake)).ok();
  }
}

progress::AttentionPtr MakeRemoteAttention(std::shared_ptr<WorkerChannel> channel, uint32_t lane) {
  return std::make_shared<RemoteAttention>(std::move(channel), lane);
}

}  // namespace ferry::daemon

#include "daemon/worker/worker_channel.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "daemon/sockets/disposal.h"
#include "daemon/sockets/packet_socket.h"
#include "daemon/worker/worker_message.h"
#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

class RemoteAttention final : public Attention {
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

StatusOr<std::shared_ptr<WorkerChannel>> WorkerChannel::Create(const JobPlan& plan,
                                                               uint32_t capacity) {
  std::shared_ptr<WorkerChannel> channel(new WorkerChannel());
  channel->capacity_ = capacity;
  StatusOr<UniqueFd> control = shm::CreateSegment("ferry-worker", ControlSizeBytes(capacity));
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
    channel->control()->places[rank] = {plan.node_of_rank[rank], plan.local_index[rank]};
  }
  return channel;
}

// The socket may hold whatever the worker has passed.
WorkerChannel::~WorkerChannel() { Disposal::Instance().CloseSocket(std::move(socket_)); }

void WorkerChannel::Rouse() {
  // Pairs with WorkerProgram::Sleep.
  if (shm::Exchange(control()->sleeping, 0U, std::memory_order_seq_cst) != 0) {
    // If it does not fit, there is something unread, which ends the sleep as well.
    (void)SendPacket(socket_.get(), MakeWorkerMessage(WorkerMessageKind::kWake)).ok();
  }
}

AttentionPtr MakeRemoteAttention(std::shared_ptr<WorkerChannel> channel, uint32_t lane) {
  return std::make_shared<RemoteAttention>(std::move(channel), lane);
}

}  // namespace ferry::daemon

// The program ferry-worker: the progress worker of one job, as the job's user.
//
// It believes what ferryd tells it and nothing else is at stake: whatever it can do, its user can
// do. It ends when ferryd hangs up.
//
// Main thread only; the program has no others but those of GPU backends and their drivers.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/sockets/packet_socket.h"
#include "daemon/worker/control_layout.h"
#include "daemon/worker/job_turns.h"
#include "daemon/worker/worker_gpu.h"
#include "daemon/worker/worker_job.h"
#include "daemon/worker/worker_message.h"
#include "shm/segment.h"

namespace ferry::daemon {

class WorkerProgram {
 public:
  // `socket`: the end that ferryd gave us. `gpus`: for device memory.
  WorkerProgram(int socket, std::shared_ptr<gpu::GpuSource> gpus)
      : socket_(socket), gpus_(std::move(gpus)) {}

  // Serves until ferryd hangs up (ok), or something is wrong for good.
  Status Run();

 private:
  Status AwaitStart();
  Status Start(SocketPacket& packet, const WorkerMessage& message);
  // Handles what lies in the socket.
  Status ReadMessages();
  Status Handle(SocketPacket& packet, const WorkerMessage& message);
  void AddSession(SocketPacket& packet, const WorkerMessage& message);
  Status AddRegion(SocketPacket& packet, const WorkerMessage& message);
  Status AddDevice(SocketPacket& packet, const WorkerMessage& message);
  Status ImportDevice(SocketPacket& packet, const WorkerMessage& message);
  Status AddStaging(SocketPacket& packet, const WorkerMessage& message);
  void RestIfNothingIsImported();
  Status Say(WorkerMessageKind kind, uint32_t rank, ErrorCode code);
  Status Say(const WorkerMessage& message);

  // The staging memory of the next command; null: there is no command, or its memory is not here.
  WorkerStaging* NextStaging(std::memory_order order);
  bool CarryNext();
  void Carry(const CopyCommand& command, WorkerStaging& staging);
  ErrorCode CopyPrivate(const CopyCommand& command, const WorkerStaging& staging,
                        const WorkerRank& rank) const;
  void Answer(const CopyCommand& command, ErrorCode error);
  void RingDaemon() const;
  void Sleep();

  CopyResult* results() const {
    return reinterpret_cast<CopyResult*>(control_map_.base() + ControlResultsOffset(capacity_));
  }
  CopyCommand* commands() const {
    return reinterpret_cast<CopyCommand*>(control_map_.base() + ControlCommandsOffset());
  }

  const int socket_;
  const std::shared_ptr<gpu::GpuSource> gpus_;
  bool hung_up_ = false;
  UniqueFd bell_;
  shm::Mapping control_map_;
  WorkerControlLayout* control_ = nullptr;
  uint32_t capacity_ = 0;
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

}  // namespace ferry::daemon

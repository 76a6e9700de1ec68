// ferryd's end of what it shares with one worker process: the control memory, the socket, the bell.
//
// Calling thread: any, for all members; nothing blocks, whatever the worker does.
#pragma once

#include <cstdint>
#include <memory>

#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/plane/data_plane.h"
#include "daemon/plane/worker_client.h"
#include "daemon/worker/control_layout.h"
#include "shm/segment.h"

namespace ferry::daemon {

class WorkerChannel {
 public:
  // `capacity`: copies under way at a time. kOutOfMemory, kSystem.
  static StatusOr<std::shared_ptr<WorkerChannel>> Create(const JobPlan& plan, uint32_t capacity);
  ~WorkerChannel();

  // Ends the worker's sleep, if it sleeps. After whatever it is to see was written (sequentially
  // consistent).
  void Rouse();

  WorkerControlLayout* control() const {
    return reinterpret_cast<WorkerControlLayout*>(mapping_.base());
  }
  CopyCommand* commands() const {
    return reinterpret_cast<CopyCommand*>(mapping_.base() + ControlCommandsOffset());
  }
  CopyResult* results() const {
    return reinterpret_cast<CopyResult*>(mapping_.base() + ControlResultsOffset(capacity_));
  }
  uint32_t capacity() const { return capacity_; }
  int control_fd() const { return control_fd_.get(); }
  int bell() const { return bell_.get(); }
  int socket() const { return socket_.get(); }
  // The worker's end; ours to close once it has been handed over.
  UniqueFd& worker_socket() { return worker_socket_; }

 private:
  WorkerChannel() = default;

  uint32_t capacity_ = 0;
  UniqueFd control_fd_;
  shm::Mapping mapping_;
  UniqueFd bell_;  // the worker writes it, nobody reads it: a read could be made to block
  UniqueFd socket_;
  UniqueFd worker_socket_;
};

// For the rank at `lane`.
AttentionPtr MakeRemoteAttention(std::shared_ptr<WorkerChannel> channel, uint32_t lane);

}  // namespace ferry::daemon

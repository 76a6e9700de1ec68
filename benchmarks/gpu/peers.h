// Two processes that share memory of a device, and words of the host.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <utility>

#include "common/unique_fd.h"
#include "gpu_backends/api/backend.h"

namespace ferry::bench {

// One end of a pair of processes. For one thread; a failure ends the program.
class PeerProcess {
 public:
  // Starts the other process. Call it before the program uses any GPU, since libraries that have
  // opened one do not survive a fork. It returns in both processes, of which is_child() tells which
  // is which; the child ends with its parent.
  static PeerProcess Fork();
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  bool is_child() const { return child_ == 0; }

  // Block until the other end has sent or received.
  void Send(const gpu::IpcHandle& handle);
  gpu::IpcHandle Receive();

  // Tells the other end that this one has reached `value`; waits until the other end has.
  void Signal(uint64_t value);
  void Await(uint64_t value);

 private:
  PeerProcess(pid_t child, UniqueFd socket, uint64_t* words)
      : child_(child), socket_(std::move(socket)), words_(words) {}

  const pid_t child_;  // 0 in the child
  UniqueFd socket_;
  uint64_t* const words_;  // the parent's and, a cache line pair away, the child's
};

}  // namespace ferry::bench

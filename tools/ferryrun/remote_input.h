// The standard input of rank 0 on its way to another host.
//
// Main thread; nothing blocks.
#pragma once

#include <poll.h>

#include <cstdint>

#include "common/status.h"
#include "common/unique_fd.h"
#include "tools/ferryrun/remote_host.h"

namespace ferry::tools {

class RemoteInput {
 public:
  // Returns where to write the input for rank 0, which is on `host`.
  StatusOr<UniqueFd> Start(RemoteHost* host);
  // Ends it: what is written from now on goes nowhere.
  void Reset() { read_.Reset(); }

  // The event to poll for. fd -1: none, since the host has enough that the rank has not taken.
  pollfd Interest() const {
    return {under_way_bytes_ < kMostUnderWayBytes ? read_.get() : -1, POLLIN, 0};
  }
  // Sends a block of what has been written.
  void Advance();
  // Notes that the rank has taken so much.
  void OnTaken(uint32_t bytes);

 private:
  static constexpr uint32_t kMostUnderWayBytes = 1 << 18;

  RemoteHost* host_ = nullptr;
  UniqueFd read_;
  uint32_t under_way_bytes_ = 0;  // that the host has and the rank has not
};

}  // namespace ferry::tools

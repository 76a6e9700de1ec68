// What a worker process may say to ferryd, and when: first that it is ready, then one answer for
// each rank it was asked about. Whoever says anything else is no worker of this release.
//
// Calling thread: the supervisor's. Nothing blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "common/status.h"
#include "daemon/control/packet_socket.h"
#include "daemon/session/session.h"
#include "daemon/worker/worker_message.h"

namespace ferry::daemon {

class WorkerReplies {
 public:
  // kSession is sent for `session`; the answer will go into it.
  void Expect(std::shared_ptr<Session> session);

  // Reads some of what lies in `socket`, and calls `on_reach` for each rank that was answered for.
  // kNothing: all was read; kPacket: there may be more. kCorrupt: what no worker says, in words
  // that follow "the worker process".
  StatusOr<Received> Read(int socket, const std::function<void(uint32_t rank)>& on_reach);

 private:
  Status Handle(const WorkerMessage& message, const std::function<void(uint32_t rank)>& on_reach);

  bool ready_ = false;
  std::map<uint32_t, std::shared_ptr<Session>> asked_;  // by rank: kReach has not come
};

}  // namespace ferry::daemon

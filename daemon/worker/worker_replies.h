// Checks what a worker process says to ferryd, and when: first that it is ready, then one answer
// for each rank, and each region of device memory, that it was asked about. A process that says
// anything else is no worker of this release.
//
// Calling thread: the supervisor's. Nothing blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "common/status.h"
#include "daemon/session/session.h"
#include "daemon/sockets/packet_socket.h"
#include "daemon/worker/worker_message.h"

namespace ferry::daemon {

// Takes the answers of a worker.
struct WorkerNews {
  std::function<void(uint32_t rank)> on_reach;
  // kOk: it has imported the region; else why not.
  std::function<void(uint32_t rank, uint32_t region, const Status& status)> on_import;
};

class WorkerReplies {
 public:
  // kSession is sent for `session`; the answer will go into it.
  void Expect(std::shared_ptr<Session> session);
  // kDevice is sent for the region.
  void ExpectImport(uint32_t rank, uint32_t region) { imports_.insert({rank, region}); }

  // Reads some of what lies in `socket`, whose other end is `sender`'s, and tells `news` of each
  // answer. kNothing: all was read; kPacket: there may be more. kCorrupt: what no worker says, in
  // words that follow "the worker process".
  StatusOr<Received> Read(int socket, uid_t sender, const WorkerNews& news);

 private:
  Status Handle(const WorkerMessage& message, const WorkerNews& news);
  Status HandleImport(const WorkerMessage& message, const WorkerNews& news);

  bool ready_ = false;
  std::multiset<std::pair<uint32_t, uint32_t>> imports_;  // rank and region: kImport has not come
  std::map<uint32_t, std::shared_ptr<Session>> asked_;    // by rank: kReach has not come
};

}  // namespace ferry::daemon

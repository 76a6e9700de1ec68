// Bounds the answers that wait in ferryd because users do not read them. Each holds a thread, and
// memory twice, as objects and as bytes, until its last byte has left; and users may have a
// thousand calls open.
//
// Any thread; nothing blocks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>

#include "common/status.h"

namespace grpc {
class ServerBuilder;
class ServerContextBase;
}  // namespace grpc

namespace ferry::daemon {

class UnreadAnswers {
 public:
  // The most bytes of messages for one user. The longest answer, the counters of all ranks of a
  // full node, takes most of it.
  static constexpr uint64_t kMostBytes = 8 << 20;

  // Has the server that is built tell this object of its calls' ends. This object outlives the
  // server.
  void Watch(grpc::ServerBuilder& builder);
  // Counts the answer of a call at such a server, until the call has ended. kLimitExceeded: with
  // the user's other answers it is too much, and must not be kept.
  Status Keep(const grpc::ServerContextBase& call, uid_t uid, uint64_t bytes);

 private:
  class Watcher;
  class WatcherMaker;
  void End(const grpc::ServerContextBase* call);

  struct Answer {
    uid_t uid;
    uint64_t bytes;
  };
  std::mutex mutex_;
  std::map<const grpc::ServerContextBase*, Answer> answers_;
  std::map<uid_t, uint64_t> bytes_;
};

}  // namespace ferry::daemon

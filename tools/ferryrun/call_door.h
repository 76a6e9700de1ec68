// The port at which ferryrun's agents call it (agent_call.h): takes connections, and gives on those
// whose callers have the run's secret. It takes nothing from others but some bytes, for some
// seconds.
//
// Main thread; nothing blocks, but Open may for name service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "client/bootstrap/meeting_stream.h"
#include "common/secret.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "tools/ferryrun/agent_call.h"
#include "tools/ferryrun/event_set.h"

namespace ferry::tools {

class CallDoor {
 public:
  // Gets a caller whose first packet this is; may take its stream. May shut the door.
  using TakeCaller = std::function<void(const CallHello& hello, client::MeetingStream* stream)>;

  // Listens at the address in `network` (--network), or, without one, at all of this host. Callers
  // are to know `secret_of_job`, too, if it is not empty. Errors: there is no such network; no port
  // is free.
  Status Open(const std::string& network, const std::string& secret_of_job = {});
  // Where callers find it; and the same for people.
  const CallPlace& place() const { return place_; }
  const std::string& where() const { return where_; }

  // Serves callers whenever `events` is dispatched, of which it keeps at most `most` that have not
  // shown their secret: the oldest is dropped then. `on_full`: this process has no descriptor left
  // for any. `events` must outlive this object, or Shut.
  void Serve(EventSet* events, size_t most, TakeCaller take, std::function<void()> on_full);
  // Drops callers that have been silent for too long.
  void DropSilent(uint64_t now_ns);
  void Shut();

  // Says which callers were sent away, after other words: "; 1 caller with another secret ...".
  // Empty: none were.
  std::string Remarks() const;

 private:
  // A connection that has not shown the secret.
  struct Stranger {
    client::MeetingStream stream;
    uint64_t end_ns;
    std::string from;
  };

  void Accept();
  void Hear(int fd);
  void Drop(int fd);
  void DropOldest();

  EventSet* events_ = nullptr;  // null: it does not serve
  size_t most_ = 0;
  TakeCaller take_;
  std::function<void()> on_full_;
  CallPlace place_;
  std::string where_;
  Secret key_{};
  UniqueFd listener_;
  std::map<int, Stranger> strangers_;  // by descriptor
  size_t refused_ = 0;                 // callers with another secret
  std::string last_refused_;
};

}  // namespace ferry::tools

// The other hosts of a running job: their frames as they come, and those that are lost.
//
// Main thread; nothing blocks but Lost::Sentence.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/remote_host.h"

namespace ferry::tools {

class JobHosts {
 public:
  // `host` must outlive this object, or Clear.
  void Add(RemoteHost* host) { hosts_.push_back({.remote = host}); }
  void Clear() { hosts_.clear(); }

  size_t size() const { return hosts_.size(); }
  RemoteHost& operator[](size_t index) const { return *hosts_[index].remote; }
  // The processes of this machine that lead to hosts.
  std::vector<pid_t> pids() const;
  // Returns the hosts that may still send something.
  std::vector<RemoteHost*> Open() const;
  // Makes it one of those that do not, and NextLost does not tell of it.
  void GiveUp(const RemoteHost* host);
  void SendToAll(FrameKind kind, uint32_t rank, std::string_view payload) const;

  // Appends the events to poll for, always as many; OnReady takes the first of them back. `reads`:
  // frames are wanted.
  void AppendInterests(bool reads, std::vector<pollfd>* fds) const;
  void OnReady(const pollfd* fds) const;
  // Gives all frames that have come to `take`.
  void TakeFrames(const std::function<void(RemoteHost*, const Frame&)>& take);

  // Hosts that send nothing any more, because of one event.
  struct Lost {
    std::vector<RemoteHost*> hosts;  // at least one
    Status fault;                    // of what it has sent last
    // Says that those of `named` are lost, and why. Waits a moment for a launcher to end.
    std::string Sentence(const std::vector<const RemoteHost*>& named) const;
  };
  // Returns the next of them, of which TakeFrames has taken all; nothing, if there are no others.
  std::optional<Lost> NextLost();

 private:
  struct Host {
    RemoteHost* remote;
    bool over = false;  // it is lost, and NextLost has told of it
    Status fault = {};
  };
  std::vector<Host> hosts_;
};

}  // namespace ferry::tools

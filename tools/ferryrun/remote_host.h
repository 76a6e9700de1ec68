// Another host of the job, as ferryrun sees it: a stream that leads to an agent there
// (agent_protocol.h).
//
// Main thread. Await blocks until an answer comes; everything else returns at once.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/host_stream.h"
#include "tools/ferryrun/signals.h"

namespace ferry::tools {

class RemoteHost {
 public:
  // `stream` leads to an agent on host `name`. Its end, with this object, ends the agent's ranks
  // and daemon.
  RemoteHost(std::string name, std::unique_ptr<HostStream> stream)
      : name_(std::move(name)), stream_(std::move(stream)) {}
  // Starts `command`, which is to lead to an agent on host `name`.
  static StatusOr<std::unique_ptr<RemoteHost>> Start(const std::string& name,
                                                     const std::vector<std::string>& command);

  const std::string& name() const { return name_; }
  // The process of this machine that leads there.
  pid_t pid() const { return stream_->pid(); }

  // Queues a frame and sends as much as there is room for; Advance sends the rest. Receives
  // nothing: incoming data stays in the stream, where a poll finds it.
  void Send(FrameKind kind, uint32_t rank, std::string_view payload);

  // As Send, of a frame that other hosts get, too (AppendFrame).
  void SendShared(const std::shared_ptr<const std::string>& frame) { stream_->WriteShared(frame); }

  // Return the events to poll for: frames of the agent, and room for frames to it. fd -1: none.
  pollfd WordsInterest() const { return stream_->WordsInterest(); }
  pollfd RoomInterest() const { return stream_->RoomInterest(); }
  // Sends and receives as much as possible without waiting. Hosts behind one relay receive for each
  // other, so after it any of them may have a frame.
  void Advance() { stream_->Advance(); }
  // Returns the next frame that has come. kCorrupt, kVersionMismatch.
  StatusOr<std::optional<Frame>> Next();
  // Returns true if no more frames will come.
  bool ended() const { return stream_->ended(); }
  // Returns true if both hosts, which have ended, were lost by one event: a relay that led to both.
  bool IsLostWith(const RemoteHost& other) const { return stream_->IsLostWith(*other.stream_); }
  // Returns the launcher's standard error, for the caller to show; reading it does not block.
  UniqueFd TakeErrors() { return stream_->TakeErrors(); }

  // Waits for the answer `kind`. Errors: the agent's, if that comes instead; kTimeout after
  // `timeout_ms`; kCancelled when a signal asks ferryrun to end; kNodeUnreachable with the
  // launcher's last words when it ends.
  StatusOr<Frame> Await(FrameKind kind, uint64_t timeout_ms, SignalSource* signals);

  // Waits for the stream to end after kStop, at most `timeout_ms`.
  void AwaitEnd(uint64_t timeout_ms);

  // "host b".
  std::string Title() const { return "host " + name_; }
  // Says why the host sends nothing any more: "ssh exited with code 255", and the launcher's last
  // output.
  std::string LastWords();

 private:
  const std::string name_;
  const std::unique_ptr<HostStream> stream_;
  FrameReader reader_{/*greeting=*/true};
};

}  // namespace ferry::tools

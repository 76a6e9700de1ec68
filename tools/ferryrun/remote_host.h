// Another host of the job, as ferryrun sees it: a launcher (ssh and the like) whose standard
// streams lead to an agent there (agent_protocol.h).
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
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "config/options.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/signals.h"

namespace ferry::tools {

class RemoteHost {
 public:
  // Starts `command`, which is to lead to an agent on host `name`.
  static StatusOr<std::unique_ptr<RemoteHost>> Start(const std::string& name,
                                                     const std::vector<std::string>& command);
  ~RemoteHost();  // kills the launcher; the agent ends its ranks and its daemon then

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }

  // Queues a frame and sends as much as there is room for; Advance sends the rest. Receives
  // nothing: incoming data stays in the stream, where a poll finds it.
  void Send(FrameKind kind, uint32_t rank, std::string_view payload);

  // Return the events to poll for: frames of the agent, and room for frames to it. fd -1: none.
  pollfd WordsInterest() const { return {out_.get(), POLLIN, 0}; }
  pollfd RoomInterest() const { return {to_send_.empty() ? -1 : in_.get(), POLLOUT, 0}; }
  // Sends and receives as much as possible without waiting.
  void Advance();
  // Returns the next frame that has come. kCorrupt, kVersionMismatch.
  StatusOr<std::optional<Frame>> Next();
  // Returns true if no more frames will come.
  bool ended() const { return !out_.valid(); }
  // Returns the launcher's standard error, for the caller to show; reading it does not block.
  UniqueFd TakeErrors() { return std::move(err_); }

  // Waits for the answer `kind`. Errors: the agent's, if that comes instead; kTimeout after
  // `timeout_ms`; kCancelled when a signal asks ferryrun to end; kNodeUnreachable with the
  // launcher's last words when it ends.
  StatusOr<Frame> Await(FrameKind kind, uint64_t timeout_ms, SignalSource* signals);

  // Waits for the launcher to end after kStop, at most `timeout_ms`.
  void AwaitEnd(uint64_t timeout_ms);

  // "host b".
  std::string Title() const { return "host " + name_; }
  // Says why the host sends nothing any more: "ssh exited with code 255", and the launcher's last
  // output.
  std::string LastWords();

 private:
  RemoteHost(std::string name, std::string launcher)
      : name_(std::move(name)), launcher_(std::move(launcher)) {}
  void Transmit();
  void Receive();

  const std::string name_;
  const std::string launcher_;
  pid_t pid_ = -1;
  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  std::string to_send_;
  FrameReader reader_{/*greeting=*/true};
};

// Pure, any thread: returns the command that runs `program` with `arguments` on `host`, its name
// first: options `launcher` and `rsh`. Quotes the remote command for a shell where necessary, since
// ssh and the like pass it to one. kConfiguration: launcher is none, or rsh is empty.
StatusOr<std::vector<std::string>> LauncherCommand(const config::Options& options,
                                                   const std::string& host,
                                                   const std::string& program,
                                                   const std::vector<std::string>& arguments);

}  // namespace ferry::tools

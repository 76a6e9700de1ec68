// The three ways in which ferryrun reaches an agent: a launcher of its own (launcher_process.h), a
// channel to a relay that has started one (relay_link.h), or a connection that the agent has made
// (called_hosts.h).
//
// Main thread; nothing blocks but HowEnded.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "common/unique_fd.h"

namespace ferry::tools {

class HostStream {
 public:
  HostStream() = default;
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;
  virtual ~HostStream() = default;  // ends the agent's input

  // The process of this machine that leads to the agent.
  virtual pid_t pid() const = 0;
  // Queues bytes for the agent and sends as many as there is room for; Advance sends the rest.
  virtual void Write(std::string_view bytes) = 0;
  // As Write, for bytes that other agents get, too: a connection that several streams share carries
  // them once.
  virtual void WriteShared(const std::shared_ptr<const std::string>& bytes) { Write(*bytes); }
  // Return the events to poll for: bytes of the agent, and room for bytes to it, or, while there
  // are none, what else Advance has to see. fd -1: none.
  virtual pollfd WordsInterest() const = 0;
  virtual pollfd RoomInterest() const = 0;
  // Sends and receives as much as possible without waiting. Streams that share a connection receive
  // for each other, so after it any of them may have something to take.
  virtual void Advance() = 0;
  // Returns what has been received since the last call.
  virtual std::string Take() = 0;
  // Returns true if there is nothing to take, and nothing more will come.
  virtual bool ended() const = 0;
  // The standard error of the launcher that leads to the agent: text for people. Reading it does
  // not block. May be taken once, and is invalid then.
  virtual UniqueFd TakeErrors() { return std::move(errors_); }
  int errors_fd() const { return errors_.get(); }
  // Says how the launcher ended, once the stream has: "ssh exited with code 255". Waits a moment
  // for a process that has only closed its streams so far.
  virtual std::string HowEnded() = 0;
  // Returns true if both have ended by one and the same event, as hosts behind one relay do.
  virtual bool IsLostWith(const HostStream& other) const = 0;

 protected:
  UniqueFd errors_;
};

}  // namespace ferry::tools

// Descriptors whose close() does not return, as a stranger may pass them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::daemon {

// A connected stream socket, such as gRPC's.
StatusOr<UniqueFd> ConnectStream(const std::string& path);

// One end of a TCP connection over loopback with unsent data, whose close() waits a minute for a
// receiver that does not read.
class LingeringSocket {
 public:
  LingeringSocket();
  // The only copy, to be passed on; -1 without a loopback interface.
  int get() const { return sender_.get(); }
  // Closes this copy, as a stranger does once it is on its way: from then on another one is the
  // last.
  void CloseOwn();

 private:
  UniqueFd sender_;
  UniqueFd receiver_;
};

// A file of a FUSE server in this process, which never answers when one is closed.
class StuckFiles {
 public:
  // kUnsupported if it may not be mounted here. Blocks for the server's first answers.
  static StatusOr<std::unique_ptr<StuckFiles>> Mount();
  // Ends the server: callers that wait for it go on.
  ~StuckFiles();
  // Opens one more file. A thread that has to go on must not close it.
  StatusOr<int> Open();
  // The number of close() that wait for the server.
  int waiting() const { return waiting_.load(); }
  // True if a process has asked the server about the file itself, which it does not answer either.
  bool was_asked() const { return was_asked_.load(); }

 private:
  StuckFiles() = default;
  void Enter();
  void Serve();
  void Answer(uint64_t unique, int error, const void* bytes, size_t size);

  std::string directory_;
  UniqueFd device_;
  int root_ = -1;
  Status mounted_;
  std::thread server_;
  std::atomic<int> waiting_ = 0;
  std::atomic<bool> was_asked_ = false;
  std::atomic<bool> stop_ = false;
};

}  // namespace ferry::daemon

// What the two clients of a ferryd's Unix sockets share: whether somebody serves a socket, and what
// went wrong in a sentence for the user.
//
// Any thread.
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <string>

#include "common/status.h"
#include "proto/control.pb.h"

namespace ferry::tools {

// Where and how long a client calls.
struct DaemonPlace {
  std::string run_directory;
  const char* socket = "";  // file name
  uint64_t timeout_ms = 0;

  std::string SocketPath() const { return run_directory + "/" + socket; }
};

// kNoDaemon, kPermissionDenied (the socket is closed to this user), kRunDirectory. gRPC reports
// every failure to connect alike, so this comes before it is used.
Status ProbeDaemon(const DaemonPlace& place);

// What a call's status means: the daemon's own ErrorCode and sentence, or gRPC's in our words.
Status StatusOfCall(const DaemonPlace& place, const grpc::Status& status);

// kVersionMismatch names both versions.
Status CompareVersions(const DaemonPlace& place, const control::StatusReply& daemon);

}  // namespace ferry::tools

// Code shared by the two clients of a ferryd's Unix sockets: whether somebody serves a socket, and
// sentences for the user about errors.
//
// Any thread.
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <string>

#include "common/status.h"
#include "proto/control.pb.h"

namespace ferry::tools {

// The place that a client calls, and its timeout.
struct DaemonPlace {
  std::string run_directory;
  const char* socket = "";  // file name
  uint64_t timeout_ms = 0;

  std::string SocketPath() const { return run_directory + "/" + socket; }
};

// kNoDaemon, kPermissionDenied (the socket is closed to this user), kRunDirectory. gRPC reports
// every failure to connect alike, so this comes before it is used.
Status ProbeDaemon(const DaemonPlace& place);

// Translates a call's status: the daemon's own ErrorCode and sentence, or gRPC's status in our
// words.
Status StatusOfCall(const DaemonPlace& place, const grpc::Status& status);

// kVersionMismatch names both versions.
Status CompareVersions(const DaemonPlace& place, const control::StatusReply& daemon);

}  // namespace ferry::tools

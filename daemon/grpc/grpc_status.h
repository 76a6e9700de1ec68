// Status and grpc::Status, both ways (see proto/control.proto and proto/error_details.h); the
// caller's metadata.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <string>

#include "common/status.h"

namespace ferry::daemon {

grpc::Status ToGrpc(const Status& status);
// A failure without an ErrorCode is gRPC's own: kNodeUnreachable, kTimeout, kUnsupported (no such
// service there) or kInternal.
Status FromGrpc(const grpc::Status& status);

// What the caller sent as metadata of that name; empty if nothing.
std::string MetadataOf(const grpc::ServerContextBase& context, const char* name);
// The caller's token.
inline std::string TokenOf(const grpc::ServerContextBase& context) {
  return MetadataOf(context, "ferry-token");
}

}  // namespace ferry::daemon

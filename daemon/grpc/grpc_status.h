// Translates between Status and grpc::Status (see proto/control.proto and proto/error_details.h),
// and reads a caller's metadata.
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

// Returns the metadata of that name that the caller has sent; empty if there is none.
std::string MetadataOf(const grpc::ServerContextBase& context, const char* name);
// Returns the token that the caller has sent.
inline std::string TokenOf(const grpc::ServerContextBase& context) {
  return MetadataOf(context, "ferry-token");
}

}  // namespace ferry::daemon

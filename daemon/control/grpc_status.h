// Status and grpc::Status, both ways (see proto/control.proto and proto/error_details.h); the
// caller's token.
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

// The token that the caller sent as metadata "ferry-token"; empty without one.
std::string TokenOf(const grpc::ServerContextBase& context);

}  // namespace ferry::daemon

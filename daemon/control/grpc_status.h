// Status and grpc::Status, both ways (see proto/control.proto and proto/error_details.h).
#pragma once

#include <grpcpp/support/status.h>

#include "common/status.h"

namespace ferry::daemon {

grpc::Status ToGrpc(const Status& status);
// A failure without an ErrorCode is gRPC's own: kNodeUnreachable, kTimeout, kUnsupported (no such
// service there) or kInternal.
Status FromGrpc(const grpc::Status& status);

}  // namespace ferry::daemon

#include "daemon/grpc/grpc_status.h"

#include "proto/error_details.h"

namespace ferry::daemon {
namespace {

// UNAVAILABLE and UNIMPLEMENTED are left to gRPC itself: there they mean that no service answers.
grpc::StatusCode NearestCode(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return grpc::StatusCode::OK;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kInvalidRank:
    case ErrorCode::kInvalidTag:
    case ErrorCode::kInvalidBuffer:
    case ErrorCode::kInvalidRequest:
    case ErrorCode::kTruncated:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorCode::kPermissionDenied:
      return grpc::StatusCode::PERMISSION_DENIED;
    case ErrorCode::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case ErrorCode::kAlreadyExists:
    case ErrorCode::kAlreadyInitialized:
      return grpc::StatusCode::ALREADY_EXISTS;
    case ErrorCode::kLimitExceeded:
    case ErrorCode::kOutOfMemory:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorCode::kTimeout:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case ErrorCode::kCancelled:
      return grpc::StatusCode::CANCELLED;
    case ErrorCode::kPeerDied:
    case ErrorCode::kDaemonDied:
    case ErrorCode::kNodeUnreachable:
    case ErrorCode::kLinkDown:
    case ErrorCode::kAborted:
    case ErrorCode::kWorkerDied:
      return grpc::StatusCode::ABORTED;
    case ErrorCode::kWouldBlock:
    case ErrorCode::kNotInitialized:
    case ErrorCode::kNoDaemon:
    case ErrorCode::kVersionMismatch:
    case ErrorCode::kRunDirectory:
    case ErrorCode::kUnsupported:
    case ErrorCode::kDraining:
    case ErrorCode::kForked:
    case ErrorCode::kConfiguration:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case ErrorCode::kCorrupt:
      return grpc::StatusCode::DATA_LOSS;
    case ErrorCode::kSystem:
    case ErrorCode::kInternal:
      return grpc::StatusCode::INTERNAL;
  }
  return grpc::StatusCode::INTERNAL;
}

ErrorCode CodeOfGrpc(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
      return ErrorCode::kNodeUnreachable;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return ErrorCode::kTimeout;
    case grpc::StatusCode::UNIMPLEMENTED:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) {
    return grpc::Status::OK;
  }
  return {NearestCode(status.code()), status.message(),
          control::EncodeErrorDetails(static_cast<int32_t>(status.code()))};
}

std::string MetadataOf(const grpc::ServerContextBase& context, const char* name) {
  const auto found = context.client_metadata().find(name);
  return found == context.client_metadata().end()
             ? std::string()
             : std::string(found->second.data(), found->second.size());
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) {
    return {};
  }
  if (const int32_t code = control::DecodeErrorDetails(status.error_details()); code != 0) {
    return {static_cast<ErrorCode>(code), status.error_message()};
  }
  return {CodeOfGrpc(status.error_code()), status.error_message()};
}

}  // namespace ferry::daemon

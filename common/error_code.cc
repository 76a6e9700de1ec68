#include "common/error_code.h"

#include <cerrno>

namespace ferry {

const char* ErrorCodeText(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return "success";
    case ErrorCode::kWouldBlock:
      return "would block";
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kNotInitialized:
      return "Ferry is not initialised";
    case ErrorCode::kAlreadyInitialized:
      return "Ferry is already initialised";
    case ErrorCode::kNoDaemon:
      return "no ferryd serves the run directory";
    case ErrorCode::kVersionMismatch:
      return "the two sides have different versions";
    case ErrorCode::kPermissionDenied:
      return "permission denied";
    case ErrorCode::kRunDirectory:
      return "the run directory cannot be used";
    case ErrorCode::kInvalidRank:
      return "invalid rank";
    case ErrorCode::kInvalidTag:
      return "invalid tag";
    case ErrorCode::kTruncated:
      return "message truncated";
    case ErrorCode::kOutOfMemory:
      return "out of memory";
    case ErrorCode::kLimitExceeded:
      return "limit exceeded";
    case ErrorCode::kPeerDied:
      return "the peer rank died";
    case ErrorCode::kDaemonDied:
      return "the local ferryd died";
    case ErrorCode::kNodeUnreachable:
      return "the peer node is unreachable";
    case ErrorCode::kTimeout:
      return "timed out";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kAlreadyExists:
      return "already exists";
    case ErrorCode::kUnsupported:
      return "not supported";
    case ErrorCode::kInvalidBuffer:
      return "invalid buffer";
    case ErrorCode::kInvalidRequest:
      return "invalid request";
    case ErrorCode::kCorrupt:
      return "corrupt data from a peer";
    case ErrorCode::kSystem:
      return "system call failed";
    case ErrorCode::kDraining:
      return "the daemon is draining";
    case ErrorCode::kInternal:
      return "internal error";
    case ErrorCode::kForked:
      return "Ferry cannot be used in a forked child";
    case ErrorCode::kConfiguration:
      return "configuration error";
    case ErrorCode::kAborted:
      return "the job was aborted";
    case ErrorCode::kWorkerDied:
      return "the job's worker process died";
    case ErrorCode::kLinkDown:
      return "the link to the other node was cut";
  }
  return "unknown error code";
}

ErrorCode ErrorCodeFromErrno(int error_number) {
  switch (error_number) {
    case 0:
      return ErrorCode::kOk;
    case EAGAIN:
      return ErrorCode::kWouldBlock;
    case EINVAL:
      return ErrorCode::kInvalidArgument;
    case EACCES:
    case EPERM:
      return ErrorCode::kPermissionDenied;
    case ENOMEM:
      return ErrorCode::kOutOfMemory;
    case ENOENT:
      return ErrorCode::kNotFound;
    case EEXIST:
      return ErrorCode::kAlreadyExists;
    case EFAULT:
      return ErrorCode::kInvalidBuffer;
    case ETIMEDOUT:
      return ErrorCode::kTimeout;
    case EMFILE:
    case ENFILE:
      return ErrorCode::kLimitExceeded;
    case EOPNOTSUPP:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kSystem;
  }
}

}  // namespace ferry

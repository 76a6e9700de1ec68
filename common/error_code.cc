#include "common/error_code.h"

#include <array>
#include <cerrno>
#include <cstddef>

namespace ferry {
namespace {

// By their numbers.
constexpr std::array kTexts = {
    "success",
    "would block",
    "invalid argument",
    "Ferry is not initialised",
    "Ferry is already initialised",
    "no ferryd serves the run directory",
    "the two sides have different versions",
    "permission denied",
    "the run directory cannot be used",
    "invalid rank",
    "invalid tag",
    "message truncated",
    "out of memory",
    "limit exceeded",
    "the peer rank died",
    "the local ferryd died",
    "the peer node is unreachable",
    "timed out",
    "cancelled",
    "not found",
    "already exists",
    "not supported",
    "invalid buffer",
    "invalid request",
    "corrupt data from a peer",
    "system call failed",
    "the daemon is draining",
    "internal error",
    "Ferry cannot be used in a forked child",
    "configuration error",
    "the job was aborted",
    "the job's worker process died",
    "the link to the other node was cut",
};
static_assert(kTexts.size() == static_cast<size_t>(ErrorCode::kLinkDown) + 1);

}  // namespace

const char* ErrorCodeText(ErrorCode code) {
  const auto number = static_cast<size_t>(code);
  return number < kTexts.size() ? kTexts[number] : "unknown error code";
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

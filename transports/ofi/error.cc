#include "transports/ofi/error.h"

#include <rdma/fi_errno.h>

#include <cstdlib>

#include "transports/ofi/library.h"

namespace ferry::transport {

ErrorCode OperationError(int fabric_error) {
  switch (fabric_error) {
    case FI_ECANCELED:  // how tcp reports operations on a connection that broke
    case FI_ECONNABORTED:
    case FI_ECONNREFUSED:
    case FI_ECONNRESET:
    case FI_EHOSTDOWN:
    case FI_EHOSTUNREACH:
    case FI_EIO:
    case FI_ENETUNREACH:
    case FI_ENODEV:
    case FI_ENOENT:  // how sockets refuses a peer that it knows to be dead
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
    case FI_ETIMEDOUT:
      return ErrorCode::kNodeUnreachable;
    case FI_EACCES:
    case FI_EFAULT:
    case FI_EINVAL:
    case FI_EKEYREJECTED:
    case FI_EMSGSIZE:
    case FI_ENOKEY:
    case FI_EPERM:
      return ErrorCode::kInvalidBuffer;
    case FI_ETRUNC:
      return ErrorCode::kTruncated;
    case FI_ENOMEM:
      return ErrorCode::kOutOfMemory;
    default:
      return ErrorCode::kSystem;
  }
}

Status SetUpError(int fabric_error, const std::string& what) {
  const int error = std::abs(fabric_error);
  ErrorCode code = ErrorCode::kSystem;
  if (error == FI_ENOMEM) {
    code = ErrorCode::kOutOfMemory;
  } else if (error == FI_EADDRINUSE) {
    code = ErrorCode::kAlreadyExists;
  }
  return Status(code, what + ": " + OpenedLibfabric().strerror(error));
}

}  // namespace ferry::transport

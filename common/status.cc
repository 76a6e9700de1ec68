#include "common/status.h"

#include <sys/resource.h>

#include <cerrno>
#include <system_error>

namespace ferry {
namespace {

// Which limit may be the reason; empty: none is known.
std::string LimitOf(int error_number) {
  rlimit addresses{};
  switch (error_number) {
    case EMFILE:
      return "; `ulimit -n` bounds them";
    case EFBIG:
      return "; `ulimit -f` bounds files and shared memory";
    case ENOMEM:
      // The machine may have no memory left either: so only where there is a limit.
      return getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY
                 ? "; `ulimit -v` bounds the address space to " +
                       std::to_string(addresses.rlim_cur >> 20) + " MiB"
                 : "";
    default:
      return "";
  }
}

}  // namespace

std::string Status::ToString() const {
  std::string text = ErrorCodeText(code_);
  if (!message_.empty()) {
    text += ": " + message_;
  }
  return text;
}

Status StatusFromErrno(int error_number, const std::string& what) {
  return {ErrorCodeFromErrno(error_number),
          what + ": " + std::generic_category().message(error_number) + LimitOf(error_number)};
}

}  // namespace ferry

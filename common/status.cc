#include "common/status.h"

#include <cerrno>
#include <system_error>

namespace ferry {

std::string Status::ToString() const {
  std::string text = ErrorCodeText(code_);
  if (!message_.empty()) {
    text += ": " + message_;
  }
  return text;
}

Status StatusFromErrno(int error_number, const std::string& what) {
  const char* limit = error_number == EMFILE  ? "; `ulimit -n` bounds them"
                      : error_number == EFBIG ? "; `ulimit -f` bounds files and shared memory"
                                              : "";
  return {ErrorCodeFromErrno(error_number),
          what + ": " + std::generic_category().message(error_number) + limit};
}

}  // namespace ferry

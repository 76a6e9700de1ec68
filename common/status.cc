#include "common/status.h"

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
  return {ErrorCodeFromErrno(error_number),
          what + ": " + std::generic_category().message(error_number)};
}

}  // namespace ferry

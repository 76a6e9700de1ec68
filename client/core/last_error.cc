#include "client/core/last_error.h"

#include <string>
#include <utility>

namespace ferry::client {
namespace {

thread_local std::string last_error;

}  // namespace

int Fail(const Status& status) {
  last_error = status.ToString();
  return static_cast<int>(status.code());
}

int Fail(ErrorCode code, const char* message) { return Fail(Status(code, message)); }

const char* LastError() { return last_error.c_str(); }

void RestoreLastError(std::string sentence) { last_error = std::move(sentence); }

}  // namespace ferry::client

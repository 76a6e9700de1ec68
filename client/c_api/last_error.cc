#include "client/c_api/last_error.h"

#include <string>
#include <utility>

#include "common/per_thread.h"

namespace ferry::client {
namespace {

struct Last {
  std::string sentence;
};

std::string& LastSentence() { return OfThisThread<Last>().sentence; }

}  // namespace

int Fail(const Status& status) {
  LastSentence() = status.ToString();
  return static_cast<int>(status.code());
}

int Fail(ErrorCode code, const char* message) { return Fail(Status(code, message)); }

const char* LastError() { return LastSentence().c_str(); }

void RestoreLastError(std::string sentence) { LastSentence() = std::move(sentence); }

}  // namespace ferry::client

#include "client/shmem/fail.h"

#include <cstdio>
#include <cstdlib>

#include "client/include/ferry/ferry.h"
#include "common/library_words.h"

namespace ferry::shmem {
namespace {

constexpr int kExitCode = 1;

}  // namespace

void Warn(const char* call, const std::string& sentence) {
  SayToUser(ferry_rank(), std::string(call) + ": " + sentence);
}

void Fail(const char* call, const std::string& sentence) {
  Warn(call, sentence);
  if (ferry_initialized() == 0) {
    std::exit(kExitCode);
  }
  std::fflush(nullptr);
  ferry_abort(kExitCode);
}

std::string AddressText(const void* address) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", address);
  return address == nullptr ? "null" : text;
}

}  // namespace ferry::shmem

#include "shmem/base/fail.h"

#include <cstdio>
#include <cstdlib>

#include "common/library_words.h"
#include "include/ferry/ferry.h"

namespace ferry::shmem {
namespace {

constexpr int kExitCode = 1;

// Of the queue's call that this thread carries out; null: it carries out none.
thread_local const std::atomic<bool>* turn_is_cancelled = nullptr;

}  // namespace

QueueTurn::QueueTurn(const std::atomic<bool>& is_cancelled) { turn_is_cancelled = &is_cancelled; }

QueueTurn::~QueueTurn() { turn_is_cancelled = nullptr; }

void GiveUp(const char* call, ErrorCode error, const std::string& sentence) {
  if (turn_is_cancelled != nullptr) {
    throw GivenUp{{error, std::string(call) + ": " + sentence}};
  }
  Fail(call, sentence);
}

void LookForCancellation(const char* call) {
  if (turn_is_cancelled != nullptr && turn_is_cancelled->load(std::memory_order_relaxed)) {
    GiveUp(call, ErrorCode::kCancelled, "the stream of the queue is no more");
  }
}

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

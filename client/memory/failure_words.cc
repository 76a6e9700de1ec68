#include "client/memory/failure_words.h"

#include <utility>

#include "common/per_thread.h"

namespace ferry::client {
namespace {

struct Told {
  ErrorCode error = ErrorCode::kOk;  // kOk: of none since it last asked
  std::string words;
  Status found;  // what it is about to be told
};

}  // namespace

void FailureWords::Note(uint32_t request, uint32_t generation, Status found) {
  std::lock_guard lock(mutex_);
  found_.insert_or_assign(request, Found{generation, std::move(found)});
}

void FailureWords::Tell(uint32_t request, uint32_t generation, ErrorCode error) {
  std::string words;
  {
    std::lock_guard lock(mutex_);
    if (const auto noted = found_.find(request); noted != found_.end()) {
      const Found& found = noted->second;
      if (found.generation == generation && found.status.code() == error) {
        words = found.status.message();
      }
      found_.erase(noted);
    }
  }
  (void)Tell(error, std::move(words));
}

ErrorCode FailureWords::Tell(ErrorCode error, std::string words) {
  if (error != ErrorCode::kOk) {
    Told& told = OfThisThread<Told>();
    if (words.empty() && told.found.code() == error) {
      words = told.found.message();
    }
    // Several failures share this error: the one that is asked about is unknown.
    const bool is_only_one = told.error != error || told.words == words;
    told = {error, is_only_one ? std::move(words) : std::string(), Status()};
  }
  return error;
}

void FailureWords::NoteFound(uint32_t request, uint32_t generation, ErrorCode error) {
  Status found = std::exchange(OfThisThread<Told>().found, Status());
  if (found.code() == error) {
    Note(request, generation, std::move(found));
  }
}

ErrorCode FailureWords::Find(ErrorCode error, std::string words) {
  OfThisThread<Told>().found = {error, std::move(words)};
  return error;
}

std::string FailureWords::Take(ErrorCode error) {
  Told last = std::exchange(OfThisThread<Told>(), {});
  return last.error == error ? std::move(last.words) : std::string();
}

}  // namespace ferry::client

// Keeps the explanation of a failed copy, or of memory out of reach, as written where it was found.
// It serves errors that reach front ends as a mere code.
//
// Words belong to one life of one request: from when they are found until the request is collected.
// The thread that collects it may then ask for them, until it is told of another error. After that
// it gets words for neither error, since its question does not say which of the two it is about.
//
// Any thread. Used only for errors.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "common/status.h"

namespace ferry::client {

class FailureWords {
 public:
  // Notes the failure that was found for this life of the request, which another process may still
  // complete.
  void Note(uint32_t request, uint32_t generation, Status found);
  // Records that the calling thread is told that this life of the request ended with `error`, for
  // Take.
  void Tell(uint32_t request, uint32_t generation, ErrorCode error);
  // Records that the calling thread is told of a call's error, for Take, unless it is kOk. Returns
  // the error.
  static ErrorCode Tell(ErrorCode error) {
    return error == ErrorCode::kOk ? error : Tell(error, {});
  }
  static ErrorCode Tell(ErrorCode error, std::string words);
  // Keeps the words for an error that the calling thread is about to be told of without any.
  // Returns the error. If the thread is told of another error instead, the words are forgotten.
  static ErrorCode Find(ErrorCode error, std::string words);
  // Moves the words that Find kept to a request that ends with this error, of which the thread is
  // told later.
  void NoteFound(uint32_t request, uint32_t generation, ErrorCode error);
  // Returns the words for `error`, if it is the only error that the calling thread was told of
  // since it last asked; else an empty text.
  static std::string Take(ErrorCode error);

 private:
  struct Found {
    uint32_t generation;
    Status status;
  };
  std::mutex mutex_;
  std::map<uint32_t, Found> found_;  // by request
};

}  // namespace ferry::client

// Why a copy has failed, or memory was out of reach, in the words of who found out: for errors that
// reach front ends as a mere code.
//
// Words belong to one life of one request: from when they are found until the request is collected.
// Then the thread that collects it may ask for them, until it is told of another error: which of
// the two it then asks about, nobody can tell, and it gets words for neither.
//
// Any thread. Only errors come here.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "common/status.h"

namespace ferry::client {

class FailureWords {
 public:
  // What was found of this life of the request. It may succeed yet, by somebody else's doing.
  void Note(uint32_t request, uint32_t generation, Status found);
  // The calling thread is told that this life of the request has ended so.
  void Tell(uint32_t request, uint32_t generation, ErrorCode error);
  // It is told of a call's error, which is returned; of kOk it is not.
  static ErrorCode Tell(ErrorCode error) {
    return error == ErrorCode::kOk ? error : Tell(error, {});
  }
  static ErrorCode Tell(ErrorCode error, std::string words);
  // The words behind `error`, if that is the only one which the calling thread was told of since it
  // last asked; else empty.
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

// The code that programs that use ferry.h share: calls whose failure ends the program, and two
// ranks' talk.
//
// Calling thread: any.
#pragma once

#include <string>

#include "ferry/ferry.h"
#include "ferry/one_sided.h"
#include "tests/vendor_memory/buffer.h"

#define VENDOR_FERRY(call) ::ferry::vendor_memory::CheckFerry(__FILE__, __LINE__, #call, (call))

namespace ferry::vendor_memory {

inline void CheckFerry(const char* file, int line, const char* call, int code) {
  if (code != FERRY_SUCCESS) {
    const std::string text =
        std::string(call) + ": " + ferry_error_string(code) + ": " + ferry_last_error();
    Fail(file, line, text.c_str());
  }
}

// ---- Two ranks ----

inline int Peer() { return 1 - ferry_rank(); }

template <typename T>
T Exchanged(const T& mine) {
  T theirs{};
  ferry_request receive = FERRY_REQUEST_NULL;
  VENDOR_FERRY(ferry_irecv(&theirs, sizeof(theirs), Peer(), 1, &receive));
  VENDOR_FERRY(ferry_send(&mine, sizeof(mine), Peer(), 1));
  VENDOR_FERRY(ferry_wait(&receive, nullptr));
  return theirs;
}

inline ferry_place PlaceOf(const void* memory, size_t bytes) {
  ferry_place place{};
  VENDOR_FERRY(ferry_locate(memory, bytes, &place));
  return place;
}

}  // namespace ferry::vendor_memory

// What programs that use ferry.h share: calls whose failure ends the program, and two ranks' talk.
//
// Calling thread: any.
#pragma once

#include <dlfcn.h>

#include <string>

#include "config/environment.h"
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

// ---- Faults of the stand-in ----

// False: this is a real library.
inline bool SetFaults(const std::string& faults) {
  static auto* const set = [] {
    const auto driver = config::FindVariable(config::ProcessEnvironment(), "ZE_ENABLE_ALT_DRIVERS");
    void* const library = driver.has_value()
                              ? dlopen(std::string(*driver).c_str(), RTLD_NOW | RTLD_NOLOAD)
                              : RTLD_DEFAULT;
    return reinterpret_cast<int (*)(const char*)>(dlsym(library, "ferry_fixture_set_faults"));
  }();
  VENDOR_CHECK(set == nullptr || set(faults.c_str()) == 0);
  return set != nullptr;
}

}  // namespace ferry::vendor_memory

// Faults of a vendor's stand-in, for programs that are linked with it.
//
// Calling thread: any.
#pragma once

#include <dlfcn.h>

#include <string>

#include "config/environment.h"
#include "tests/vendor_memory/buffer.h"

namespace ferry::vendor_memory {

// As tests/fixtures/faults.h has it. False: this is a real library.
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

// The driver's calls fail while this lives, where `is_here`.
class Failing {
 public:
  Failing(const std::string& faults, bool is_here) {
    if (is_here) {
      SetFaults(faults);
    }
  }
  ~Failing() { SetFaults(""); }
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;
};

// Returns true if the words name what the driver said, its error 999.
inline bool NamesTheFault(const std::string& said) {
  for (const char* name : {"CUDA_ERROR_UNKNOWN", "hipErrorUnknown", "result 0x000003e7",
                           "ZE_RESULT_ERROR_DEVICE_LOST"}) {
    if (said.find(name) != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace ferry::vendor_memory

// Helpers for the tests of vendors' backends: a program that uses all of a backend, and access to
// the stand-in under it.
//
// Calling thread: one.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "gpu_backends/api/backend.h"

namespace ferry::gpu {

// Allocates, identifies, exports, registers, copies, waits for words and events, calls the host and
// frees, on the first device. Returns what did not work, and frees the rest.
std::vector<Status> UseEverything(GpuBackend& backend);

// Returns true if the stream calls a function of the host's, and ends.
bool CallsHost(Stream& stream);

// Each failure on one line, for messages.
std::string Text(const std::vector<Status>& failures);
// Returns true if one of the failures contains the words.
bool Mentions(const std::vector<Status>& failures, std::string_view words);

// A function of the library at `path`, which is opened if it is not yet; ends the program if there
// is none.
template <typename Function>
Function* VendorFunction(const std::string& path, const char* name) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* function = library == nullptr ? nullptr : dlsym(library, name);
  if (function == nullptr) {
    std::abort();  // the test has the wrong stand-in
  }
  return reinterpret_cast<Function*>(function);
}

// Sets what the stand-in at `path` does wrong while this lives.
class StandInFaults {
 public:
  StandInFaults(const std::string& path, const std::string& text) : path_(path) { Set(text); }
  ~StandInFaults() { Set(""); }
  StandInFaults(const StandInFaults&) = delete;
  StandInFaults& operator=(const StandInFaults&) = delete;

 private:
  void Set(const std::string& text) const {
    if (VendorFunction<int(const char*)>(path_, "ferry_fixture_set_faults")(text.c_str()) != 0) {
      std::abort();  // a test that believes it injects faults must not pass
    }
  }

  const std::string path_;
};

}  // namespace ferry::gpu

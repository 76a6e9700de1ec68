// An OpenCL run time for CPUs (PoCL), by which test programs run kernels on their own memory: it
// compiles them with a compiler, and schedules their work-groups in a way, that Ferry knows nothing
// of. One thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace ferry::opencl {

// Empty, or why there is none on this machine.
std::string WhyNone();

// One argument of a kernel: its bytes, or an address that kernels take as a pointer to __global.
struct Argument {
  template <typename T>
  static Argument Value(const T& value) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    return {std::string(bytes, sizeof(T)), nullptr};
  }
  static Argument Pointer(const void* address) { return {"", address}; }

  std::string bytes;  // empty: a pointer
  const void* address;
};

class Program {
 public:
  // Compiles `source`, which may include files from the working directory and Ferry's headers for
  // kernels. Ends the process, with what the compiler said, if it cannot.
  explicit Program(const std::string& source);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Runs a kernel to its end. Groups may wait for one another as far as ComputeUnits goes.
  void Launch(const char* kernel, size_t groups, size_t group_size,
              const std::vector<Argument>& arguments);
  // How many groups run at the same time.
  size_t ComputeUnits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ferry::opencl

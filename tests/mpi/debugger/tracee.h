// A process that a debugger looks at: its memory, its symbols, and a breakpoint (ptrace(2)).
//
// Main thread, which must be the one that traces. Blocks where a function says so.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ferry::mpi_tests {

class Tracee {
 public:
  explicit Tracee(pid_t pid) : pid_(pid) {}

  pid_t pid() const { return pid_; }
  // Copies memory. False: there is none at the address.
  bool Read(uint64_t address, void* to, size_t size_bytes) const;
  bool Write(uint64_t address, const void* from, size_t size_bytes) const;
  template <typename T>
  T Get(uint64_t address) const {
    T value{};
    (void)Read(address, &value, sizeof(value));
    return value;
  }
  std::string Text(uint64_t address) const;  // that a 0 ends
  // The address of a symbol of the program or of a library that it has loaded; nothing: none has
  // it.
  std::optional<uint64_t> Find(const std::string& symbol) const;

  // Stops a running process that is not traced yet. Blocks until it stands.
  void Attach() const;
  // Lets it go, as if it had never been traced.
  void Detach() const;
  // Lets a traced process that stands run until it comes to the function. Blocks. False: it has
  // ended before, or there is no such function.
  bool RunTo(const std::string& symbol) const;

 private:
  bool RunToTrap() const;

  const pid_t pid_;
};

// Starts a program that stands, traced, before its first instruction; its output goes to a pipe.
struct Started {
  pid_t pid = -1;
  int output = -1;
};
Started StartTraced(const std::vector<std::string>& words);

}  // namespace ferry::mpi_tests

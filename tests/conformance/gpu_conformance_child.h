// Another process for the IPC tests: the test program started again, since GPU runtimes do not
// survive a fork, with a socket over which handles and answers travel.
#pragma once

#include <sys/types.h>

#include <string>

#include "common/status.h"
#include "common/unique_fd.h"
#include "gpu_backends/api/types.h"

namespace ferry::gpu {

// The child's use of the handle that it receives. It answers with an empty text, or with its
// failure.
enum class ChildRole : char {
  kReadThenOverwrite = 'r',  // expects Pattern(n, 1), writes Pattern(n, 2)
  kCheckImportRules = 'c',   // identification, and the errors of CloseIpc and Free
  kWriteWord = 'w',          // writes kWordFromChild through a stream at the exported pointer
};

inline constexpr uint64_t kWordFromChild = 42;

// Owns the process: kills it, if it still runs, and reaps it. One thread.
class ConformanceChild {
 public:
  // Starts this program again to play `role` with the backend of that name.
  static StatusOr<ConformanceChild> Start(const std::string& backend_name, ChildRole role);
  ConformanceChild(ConformanceChild&& other) noexcept;
  ~ConformanceChild();

  Status Send(const IpcHandle& handle);
  // Blocks for the child's answer. An error if it died instead.
  StatusOr<std::string> Answer();

 private:
  ConformanceChild(pid_t pid, UniqueFd socket);

  pid_t pid_;
  UniqueFd socket_;
};

}  // namespace ferry::gpu

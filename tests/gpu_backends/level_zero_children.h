// Other processes of the Level Zero backend's tests: what the loader and the driver do is decided
// when a process begins, so each other decision needs another process. They are the test program,
// started again.
#pragma once

#include <string>
#include <vector>

#include "gpu_backends/api/types.h"

namespace ferry::gpu {

inline constexpr char kSoftwareDriver[] = "tests/fixtures/level_zero/libferry_level_zero.so";

// Starts the program again to play `role`, with those variables (NAME=VALUE) set besides those of
// this process, and returns its output, and its failure if it fails. Blocks. The roles:
//   describe           what the first device is, or why there is no backend
//   two_drivers        "ok" if the devices of two drivers work, beside each other and together
//   end_while_waiting  "ok", and streams wait as it ends
//   end_after_loss     "ok": a stream whose device was lost, and reset, ends
//   export             the opaque part of an IPC handle, in hexadecimal
std::string SaidByChild(const std::string& role, const std::vector<std::string>& variables);

// The faults of the driver in this process, which the loader has opened. A device that was lost is
// well again.
bool SetFaults(const std::string& text);

// The variable that chooses those options of the software driver.
std::string FixtureOptions(const std::string& options);

// The path of another file with the software driver in it, in that folder: the loader takes it for
// another driver. Empty if it could not be made.
std::string CopyOfSoftwareDriver(const std::string& folder);

// Fills in the handle of an exporter that has ended.
bool HandleOfDeadChild(IpcHandle* handle);

// Runs in place of the tests if this is such a process. Returns the exit code, or -1 if it is not.
int RunLevelZeroChild(int argc, char** argv);

}  // namespace ferry::gpu

// The exit codes of a ferryrun that cannot run its job, and what it says then.
//
// Any thread; Fail writes to standard error.
#pragma once

#include <cstdio>

#include "common/status.h"

namespace ferry::tools {

inline constexpr int kCannotStart = 1;
inline constexpr int kUsageError = 2;
inline constexpr int kNotExecutable = 126;  // as shells say it
inline constexpr int kNotFound = 127;

// Tells the user why, and returns `exit_code`.
inline int Fail(int exit_code, const Status& status) {
  std::fprintf(stderr, "ferryrun: %s\n", status.message().c_str());
  return exit_code;
}

// The exit code for a program that cannot be run because of `cannot_run`.
inline int ExitCodeOf(const Status& cannot_run) {
  return cannot_run.code() == ErrorCode::kNotFound ? kNotFound : kNotExecutable;
}

}  // namespace ferry::tools

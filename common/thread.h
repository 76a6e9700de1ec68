// Threads of Ferry's own, which may run inside the application's processes.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "common/status.h"

namespace ferry {

// Starts a thread that runs `main`, named `name` (at most 15 characters) for debuggers and `top`;
// what `name` points to outlives it. All signals are blocked on it, but for those of its own
// faults: the application's handlers must not run there. `main` runs as by RunThread. kSystem, with
// `purpose` ("that moves messages"), where the system starts no more threads. Any thread; does not
// block.
StatusOr<std::thread> StartThread(const char* name, std::string_view purpose,
                                  std::function<void()> main);

// Starts a thread as StartThread does, for programs of Ferry's own, which end if it cannot be
// started: throws std::system_error, as std::thread does.
std::thread MakeThread(const char* name, std::function<void()> main);

// Runs `main` on the calling thread, whose name is `name`. If `main` runs out of memory
// (std::bad_alloc) where it cannot go on, says so on the standard error output and ends the process
// (abort).
void RunThread(const char* name, const std::function<void()>& main);

}  // namespace ferry

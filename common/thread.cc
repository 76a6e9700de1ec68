#include "common/thread.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <system_error>
#include <utility>

namespace ferry {

// Allocates nothing once there is no memory.
void RunThread(const char* name, const std::function<void()>& main) {
  try {
    main();
  } catch (const std::bad_alloc&) {
    char words[256];
    const int size = std::snprintf(
        words, sizeof(words),
        "%s: the thread %s has run out of memory, and ends the process (is the address space "
        "limited, `ulimit -v`?)\n",
        program_invocation_short_name, name);
    (void)!write(STDERR_FILENO, words,
                 std::min<size_t>(static_cast<size_t>(size), sizeof(words) - 1));
    std::abort();
  }
}

StatusOr<std::thread> StartThread(const char* name, std::string_view purpose,
                                  std::function<void()> main) {
  try {
    return MakeThread(name, std::move(main));
  } catch (const std::system_error& error) {
    // Never "would block", as the system has it.
    return Status(ErrorCode::kSystem,
                  "starting the thread " + std::string(purpose) + ": " + error.code().message());
  }
}

std::thread MakeThread(const char* name, std::function<void()> main) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int own_fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) {
    sigdelset(&all, own_fault);  // blocked, they would end the process without asking its handler
  }
  pthread_sigmask(SIG_SETMASK, &all, &before);  // threads inherit it
  try {
    std::thread thread([name, main = std::move(main)] {
      pthread_setname_np(pthread_self(), name);
      RunThread(name, main);
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

}  // namespace ferry

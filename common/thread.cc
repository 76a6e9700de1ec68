#include "common/thread.h"

#include <pthread.h>
#include <signal.h>

#include <string>
#include <system_error>
#include <utility>

namespace ferry {

StatusOr<std::thread> StartThread(const char* name, std::string_view purpose,
                                  std::function<void()> main) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int own_fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) {
    sigdelset(&all, own_fault);  // blocked, they would end the process without asking its handler
  }
  pthread_sigmask(SIG_SETMASK, &all, &before);  // threads inherit it
  std::thread thread;
  Status status;
  try {
    thread = std::thread([name, main = std::move(main)] {
      pthread_setname_np(pthread_self(), name);
      main();
    });
  } catch (const std::system_error& error) {
    // Never "would block", as the system has it.
    status = {ErrorCode::kSystem,
              "starting the thread " + std::string(purpose) + ": " + error.code().message()};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!status.ok()) {
    return status;
  }
  return thread;
}

}  // namespace ferry

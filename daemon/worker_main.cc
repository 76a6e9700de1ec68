// ferry-worker: see worker_program.h. Started by ferryd only.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "common/status.h"
#include "common/version.h"
#include "config/environment.h"
#include "daemon/worker/worker_filter.h"
#include "daemon/worker/worker_message.h"
#include "daemon/worker/worker_program.h"
#include "gpu_backends/loader/loader.h"

namespace {

using ferry::StatusOr;
using ferry::daemon::WorkerCalls;

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

bool IsSeqpacket(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

// Under systemd ferryd may be protected from the kernel's memory shortage; its users' work is not.
void ForgetProtection() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  (void)!write(fd, "0", 1);
  close(fd);
}

// Here and not before the program starts: ThreadSanitizer writes a file first.
// worker_program.cc takes it back for the sake of drivers.
void WriteNoFiles() {
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = 0;
  setrlimit(RLIMIT_FSIZE, &limit);
}

int Run() {
  // ferryd has put the options of GPUs into the environment.
  const StatusOr<ferry::config::Options> options =
      ferry::config::OptionsFromEnvironment(ferry::config::ProcessEnvironment());
  if (!options.ok()) {
    return kFailed;
  }
  const auto calls =
      ferry::gpu::MayHaveGpus(*options) ? WorkerCalls::kWithDrivers : WorkerCalls::kCopies;
  if (!ferry::daemon::RefuseOtherCalls(calls).ok()) {
    return ferry::daemon::kExitNoIsolation;
  }
  return ferry::daemon::RunWorkerProgram(ferry::daemon::kWorkerSocket,
                                         ferry::gpu::SourceOf(*options))
                 .ok()
             ? 0
             : kFailed;
}

}  // namespace

int main() {
  if (!IsSeqpacket(ferry::daemon::kWorkerSocket)) {
    std::fprintf(stderr, "ferry-worker %s copies for the ranks of one job; only ferryd starts it\n",
                 ferry::kFerryVersion);
    return kBadUsage;
  }
  prctl(PR_SET_NAME, "ferry-worker");
  ForgetProtection();
  WriteNoFiles();
  // The user's other processes have no business in here. They may stop or kill it.
  prctl(PR_SET_DUMPABLE, 0);
  // No destructors, no checks at the end: the kernel takes all back.
  _exit(Run());
}

#include "daemon/worker/worker_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <utility>

#include "common/open_files.h"
#include "common/own_program.h"
#include "common/passed_descriptors.h"
#include "common/process_handle.h"
#include "common/thread.h"
#include "daemon/worker/worker_message.h"

namespace ferry::daemon {
namespace {

constexpr char kProgram[] = "ferry-worker";
constexpr const char* kPlaces[] = {"/", "/../libexec/ferry/", "/../lib/ferry/"};
constexpr int kHighFd = 64;          // above those that the child is to have
constexpr int kChildsOwnFds = 3;     // that it opens there
constexpr rlim_t kWorkerFds = 4096;  // drivers of GPUs have many, some for each import

// Everything that the child needs, made before the fork: after it only system calls are safe.
struct ChildPlan {
  int program = -1;
  int socket = -1;
  int null = -1;
  uid_t uid;
  gid_t gid;
  bool change;
  const gid_t* groups;
  size_t group_count;
  char* const* argv;
  char* const* envp;
  int last_fd = -1;  // none is open beyond, whatever the child opens before it closes the others
};

long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  return syscall(number, a, b, c, d, e);
}

template <typename T>
long At(const T* pointer) {
  return reinterpret_cast<long>(pointer);
}

// Uses system calls, not the C library's functions: those change every thread of a process.
bool BecomeUser(const ChildPlan& plan) {
  return !plan.change ||
         (Call(SYS_setgroups, static_cast<long>(plan.group_count), At(plan.groups)) == 0 &&
          Call(SYS_setresgid, plan.gid, plan.gid, plan.gid) == 0 &&
          Call(SYS_setresuid, plan.uid, plan.uid, plan.uid) == 0);
}

bool DropCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  // Without ambient capabilities on an old kernel the first call fails, and does not matter.
  Call(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
  return Call(SYS_capset, At(&header), At(&none[0])) == 0 &&
         Call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1) == 0;
}

// Closes those from `first` to `last`: one by one where the kernel does not (Linux before 5.9). The
// table is the spawner's, which has next to none.
bool CloseRange(const ChildPlan& plan, int first, int last) {
  if (Call(SYS_close_range, first, last, 0) == 0) {
    return true;
  }
  for (int fd = first; fd <= last && fd <= plan.last_fd; ++fd) {
    Call(SYS_close, fd);
  }
  return plan.last_fd >= 0;
}

bool KeepDescriptors(const ChildPlan& plan, int* program) {
  const auto socket = static_cast<int>(Call(SYS_fcntl, plan.socket, F_DUPFD_CLOEXEC, kHighFd));
  const auto null = static_cast<int>(Call(SYS_fcntl, plan.null, F_DUPFD_CLOEXEC, kHighFd));
  *program = static_cast<int>(Call(SYS_fcntl, plan.program, F_DUPFD_CLOEXEC, kHighFd));
  if (socket < 0 || null < 0 || *program < 0) {
    return false;
  }
  for (int fd = 0; fd < kWorkerSocket; ++fd) {
    if (Call(SYS_dup3, null, fd, 0) < 0) {
      return false;
    }
  }
  return Call(SYS_dup3, socket, kWorkerSocket, 0) >= 0 &&
         CloseRange(plan, kWorkerSocket + 1, *program - 1) &&
         CloseRange(plan, *program + 1, INT_MAX);
}

// Lowers a limit, but never raises it.
bool Limit(int resource, rlim_t value) {
  rlimit limit{};
  if (Call(SYS_prlimit64, 0, resource, 0, At(&limit)) != 0) {
    return false;
  }
  limit.rlim_max = value < limit.rlim_max ? value : limit.rlim_max;
  limit.rlim_cur = limit.rlim_max;
  return Call(SYS_prlimit64, 0, resource, At(&limit)) == 0;
}

[[noreturn]] void BecomeWorker(const ChildPlan& plan) {
  int program = -1;
  const uint64_t no_signals = 0;
  Call(SYS_rt_sigprocmask, SIG_SETMASK, At(&no_signals), 0, sizeof(no_signals));
  Call(SYS_setsid);
  Call(SYS_umask, 077);
  if (Call(SYS_chdir, At("/")) != 0 || !KeepDescriptors(plan, &program) ||
      !Limit(RLIMIT_NOFILE, kWorkerFds + kHighFd) || !Limit(RLIMIT_CORE, 0)) {
    Call(SYS_exit_group, kExitNoIsolation);
  }
  if (!BecomeUser(plan) || !DropCapabilities()) {
    Call(SYS_exit_group, kExitNoUser);
  }
  Call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);  // becoming another user clears it
  // Executes the program by its descriptor: the user may have no access to the program's directory.
  Call(SYS_execveat, program, At(""), At(plan.argv), At(plan.envp), AT_EMPTY_PATH);
  Call(SYS_exit_group, kExitNoProgram);
  __builtin_unreachable();
}

// An order to the thread of a spawner, and how it went.
struct Order {
  ChildPlan plan;  // without the descriptors, which come with the order
  pid_t pid = -1;
  int error = 0;
  std::atomic<bool> done = false;

  void CarryOut(const std::vector<UniqueFd>& fds) {
    const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (fds.size() == 2 && null.valid()) {
      plan.program = fds[0].get();
      plan.socket = fds[1].get();
      plan.null = null.get();
      const int last = LastDescriptor();
      plan.last_fd = last < 0 ? -1 : std::max(last, kHighFd) + kChildsOwnFds;
      // _Fork in place of fork: no fork handler of a library may run in the child of a process with
      // threads.
      pid = _Fork();
      if (pid == 0) {
        BecomeWorker(plan);
      }
    }
    error = errno;
  }
};
using OrderPtr = std::shared_ptr<Order>;

}  // namespace

StatusOr<UniqueFd> OpenWorkerProgram(const std::string& path) {
  std::vector<std::string> candidates;
  if (!path.empty()) {
    candidates.push_back(path);
  } else {
    for (const char* place : kPlaces) {
      candidates.push_back(OwnDirectory() + place + kProgram);
    }
  }
  std::string tried;
  for (const std::string& candidate : candidates) {
    UniqueFd program(open(candidate.c_str(), O_PATH | O_CLOEXEC));
    struct stat info {};
    if (program.valid() && fstat(program.get(), &info) == 0 && S_ISREG(info.st_mode) &&
        (info.st_mode & S_IXUSR) != 0) {
      return program;
    }
    tried += (tried.empty() ? "" : ", ") + candidate;
  }
  return Status(ErrorCode::kNotFound, "there is no program " + tried +
                                          ": install ferry-worker with ferryd, or name it by "
                                          "worker_program");
}

bool MayBecomeOthers() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  constexpr uint32_t kNeeded = 1U << CAP_SETUID | 1U << CAP_SETGID;
  return syscall(SYS_capget, &header, &data) == 0 && (data[0].effective & kNeeded) == kNeeded;
}

std::vector<gid_t> GroupsOf(const WorkerUser& user) {
  std::array<char, 16384> strings{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(user.uid, &entry, strings.data(), strings.size(), &found) != 0 ||
      found == nullptr) {
    return {user.gid};
  }
  std::vector<gid_t> groups(64);
  for (int count = static_cast<int>(groups.size());;) {
    const bool fits = getgrouplist(entry.pw_name, user.gid, groups.data(), &count) >= 0;
    groups.resize(static_cast<size_t>(count));
    if (fits) {
      return groups;
    }
  }
}

WorkerSpawner::WorkerSpawner() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    ready_ = StatusFromErrno(errno, "socketpair for starting worker processes");
    return;
  }
  handover_.Reset(ends[0]);
  receiver_.Reset(ends[1]);
  std::promise<bool> apart;
  StatusOr<std::thread> thread = StartThread("ferry-spawner", "that starts worker processes",
                                             [this, &apart, receiver = receiver_.get()] {
                                               apart.set_value(OwnDescriptors(receiver));
                                               Loop(receiver);
                                             });
  ready_ = thread.status();
  if (!ready_.ok()) {
    return;
  }
  thread_ = std::move(*thread);
  if (apart.get_future().get()) {
    receiver_.Reset();
  }
}

WorkerSpawner::~WorkerSpawner() {
  if (thread_.joinable()) {
    shutdown(handover_.get(), SHUT_RDWR);
    thread_.join();
  }
}

void WorkerSpawner::Loop(int receiver) {
  for (;;) {
    OrderPtr* told = nullptr;
    std::vector<UniqueFd> fds;
    if (ReceiveWithDescriptors(receiver, std::as_writable_bytes(std::span(&told, 1)), &fds, 0) !=
        sizeof(told)) {
      return;
    }
    const OrderPtr order = std::move(*told);
    delete told;
    order->CarryOut(fds);
    order->done.store(true);  // Pairs with Spawn.
    order->done.notify_one();
  }
}

StatusOr<SpawnedWorker> WorkerSpawner::Spawn(int program, const WorkerUser& user,
                                             const std::vector<gid_t>& groups, int socket,
                                             const std::string& name,
                                             const std::vector<std::string>& environment) {
  FERRY_RETURN_IF_ERROR(ready_);
  std::string program_name = kProgram;
  std::string job = name;
  char* const argv[] = {program_name.data(), job.data(), nullptr};
  std::vector<char*> envp;
  envp.reserve(environment.size() + 1);
  for (const std::string& entry : environment) {
    envp.push_back(const_cast<char*>(entry.c_str()));
  }
  envp.push_back(nullptr);
  const OrderPtr order = std::make_shared<Order>();
  order->plan = {
      -1, -1, -1, user.uid, user.gid, user.change, groups.data(), groups.size(), argv, envp.data()};
  auto* const told = new OrderPtr(order);
  if (SendWithDescriptors(handover_.get(), std::as_bytes(std::span(&told, 1)),
                          std::array{program, socket}, 0) < 0) {
    delete told;
    return StatusFromErrno(errno, "handing a worker process to the thread that starts it");
  }
  order->done.wait(false);  // Pairs with Loop.
  SpawnedWorker spawned;
  spawned.pid = order->pid;
  if (spawned.pid < 0) {
    return StatusFromErrno(order->error, "fork of a worker process");
  }
  StatusOr<UniqueFd> handle = OpenProcessHandle(spawned.pid);
  if (!handle.ok()) {
    kill(spawned.pid, SIGKILL);
    waitpid(spawned.pid, nullptr, 0);
    return handle.status();
  }
  spawned.pidfd = std::move(*handle);
  return spawned;
}

}  // namespace ferry::daemon

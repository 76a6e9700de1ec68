#include "daemon/worker/worker_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

namespace ferry::daemon {
namespace {

// The calls for copies, and those of the C library and of sanitizers in a running process.
constexpr int kOfCopies[] = {
    // The socket and the bell.
    SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(poll),
    SCMP_SYS(ppoll), SCMP_SYS(close), SCMP_SYS(eventfd2), SCMP_SYS(fstat), SCMP_SYS(newfstatat),
    SCMP_SYS(fstatfs), SCMP_SYS(lseek),
    // Memory; with conditions: mmap, mprotect.
    SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(munmap), SCMP_SYS(mremap),
    SCMP_SYS(madvise), SCMP_SYS(mincore), SCMP_SYS(brk),
    // Waiting and time.
    SCMP_SYS(futex), SCMP_SYS(sched_yield), SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep),
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    SCMP_SYS(restart_syscall), SCMP_SYS(membarrier),
    // The process itself.
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getcpu), SCMP_SYS(sched_getaffinity),
    SCMP_SYS(getrandom), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack), SCMP_SYS(rseq), SCMP_SYS(set_robust_list), SCMP_SYS(exit),
    SCMP_SYS(exit_group)};

// CUDA, ROCm and Level Zero. Calls that they try, and do without, are not here: sockets, pidfds and
// the programs that load kernel modules.
constexpr int kOfDrivers[] = {
    // Files, among them libraries, /sys and caches.
    SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
    SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(statx), SCMP_SYS(statfs), SCMP_SYS(readlink),
    SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(getcwd), SCMP_SYS(pread64),
    SCMP_SYS(pwrite64), SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(ftruncate), SCMP_SYS(fallocate),
    SCMP_SYS(flock), SCMP_SYS(fsync), SCMP_SYS(mkdir), SCMP_SYS(mkdirat), SCMP_SYS(unlink),
    SCMP_SYS(unlinkat), SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(umask),
    // Devices, descriptors and the memory that they share.
    SCMP_SYS(ioctl), SCMP_SYS(dup), SCMP_SYS(dup2), SCMP_SYS(dup3), SCMP_SYS(pipe), SCMP_SYS(pipe2),
    SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait),
    SCMP_SYS(select), SCMP_SYS(pselect6), SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime),
    SCMP_SYS(memfd_create), SCMP_SYS(mmap), SCMP_SYS(mprotect), SCMP_SYS(msync), SCMP_SYS(mlock),
    SCMP_SYS(mlock2), SCMP_SYS(munlock), SCMP_SYS(mbind), SCMP_SYS(get_mempolicy),
    SCMP_SYS(set_mempolicy), SCMP_SYS(move_pages), SCMP_SYS(kcmp),
    // Threads; with conditions: clone.
    SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_getparam), SCMP_SYS(sched_getscheduler),
    SCMP_SYS(sched_get_priority_max), SCMP_SYS(sched_get_priority_min), SCMP_SYS(getpriority),
    SCMP_SYS(set_tid_address), SCMP_SYS(arch_prctl),
    // The process's user, parent and machine.
    SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(getppid),
    SCMP_SYS(getresuid), SCMP_SYS(getresgid), SCMP_SYS(uname), SCMP_SYS(sysinfo),
    SCMP_SYS(getrusage), SCMP_SYS(times)};

struct Release {
  void operator()(void* context) const { seccomp_release(context); }
};

// Collects rules, and the first error.
class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM))) {
    if (context_ == nullptr) {
      error_ = ENOMEM;
      return;
    }
    Note(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_TSYNC, 1));
    // Older kernels go through all rules at each call: by halves, not one by one.
    Note(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2));
  }

  template <size_t Count>
  void AllowAll(const int (&calls)[Count]) {
    for (const int call : calls) {
      Add(SCMP_ACT_ALLOW, call);
    }
  }
  template <typename... Conditions>
  void Allow(int call, Conditions... conditions) {
    Add(SCMP_ACT_ALLOW, call, conditions...);
  }
  template <typename... Conditions>
  void Add(uint32_t action, int call, Conditions... conditions) {
    if (error_ == 0) {
      Note(seccomp_rule_add(context_.get(), action, call, sizeof...(conditions), conditions...));
    }
  }

  Status Load() {
    if (error_ == 0) {
      Note(seccomp_load(context_.get()));
    }
    return error_ == 0 ? Status() : StatusFromErrno(error_, "a filter of system calls (seccomp)");
  }

 private:
  void Note(int result) {
    if (error_ == 0 && result < 0) {
      error_ = -result;
    }
  }

  const std::unique_ptr<void, Release> context_;
  int error_ = 0;
};

}  // namespace

Status RefuseOtherCalls(WorkerCalls allowed) {
  Filter filter;
  filter.AllowAll(kOfCopies);
  const auto self = static_cast<scmp_datum_t>(getpid());
  filter.Allow(SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, self));  // abort
  for (const scmp_datum_t process : {scmp_datum_t{0}, self}) {
    filter.Allow(SCMP_SYS(prlimit64), SCMP_A0(SCMP_CMP_EQ, process));
  }
  for (const int option : {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA}) {
    filter.Allow(SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(option)));
  }
  // Without commands that have the kernel signal another process when a descriptor can be read.
  for (const int command :
       {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GET_SEALS, F_ADD_SEALS}) {
    filter.Allow(SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, static_cast<scmp_datum_t>(command)));
  }
  // The C library first tries clone3 to make a thread, whose arguments no filter can see.
  filter.Add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3));
  if (allowed == WorkerCalls::kWithDrivers) {
    filter.AllowAll(kOfDrivers);
    filter.Allow(SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
    filter.Allow(SCMP_SYS(socketpair), SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
  } else {
    for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)}) {
      filter.Allow(call, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    }
  }
  return filter.Load();
}

}  // namespace ferry::daemon

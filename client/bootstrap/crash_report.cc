#include "client/bootstrap/crash_report.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "client/bootstrap/function_names.h"
#include "common/library_words.h"

namespace ferry::client {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr size_t kFrames = 32;        // that are told
constexpr size_t kFramesOfOurs = 12;  // at most, of the handler and of abort()
constexpr size_t kStackBytes = 64 << 10;
constexpr uintptr_t kNullBytes = 64 << 10;  // an access up to there was by a null pointer
constexpr int kOthersTurnMs = 2000;
constexpr int kFullPipeMs = 1000;

// All that the handler needs.
char program[PATH_MAX];
char prefix[64];
pid_t owner = 0;
std::atomic<pid_t> reporter{0};  // the thread that reports; 0: none so far
int reported_signal = 0;
CodePlace places[kFrames + kFramesOfOurs];
size_t frame_count = 0;  // of `places`
sigjmp_buf way_back;     // out of a fault while the stack is read
volatile sig_atomic_t may_go_back = 0;

// A line that is composed without memory of its own; what does not fit is left out. It is written
// whole, since it is no longer than PIPE_BUF.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    const size_t size = std::min(text.size(), sizeof(bytes_) - 1 - size_);
    std::memcpy(bytes_ + size_, text.data(), size);
    size_ += size;
    return *this;
  }
  Line& Hex(uint64_t number) {
    char digits[2 + 16];
    size_t first = sizeof(digits);
    do {
      digits[--first] = "0123456789abcdef"[number % 16];
      number /= 16;
    } while (number > 0);
    digits[--first] = 'x';
    digits[--first] = '0';
    return *this << std::string_view(digits + first, sizeof(digits) - first);
  }
  // Gives up where the reader takes nothing: it may wait for this process's end.
  void Write() {
    bytes_[size_++] = '\n';
    pollfd room{STDERR_FILENO, POLLOUT, 0};
    if (poll(&room, 1, kFullPipeMs) == 1 && (room.revents & POLLOUT) != 0) {
      [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, bytes_, size_);
    }
  }

 private:
  char bytes_[PIPE_BUF];
  size_t size_ = 0;
};

bool IsInCode(uintptr_t address) {
  dl_find_object object{};
  return _dl_find_object(reinterpret_cast<void*>(address), &object) == 0;
}

void AddFrame(uintptr_t address) {
  places[frame_count] = CodePlace{};
  places[frame_count++].address = address;
}

_Unwind_Reason_Code TakeFrame(_Unwind_Context* context, void* /*argument*/) {
  int is_before = 0;  // the instruction; else behind that of a call
  const uintptr_t address = _Unwind_GetIPInfo(context, &is_before);
  if (address == 0 || frame_count == std::size(places)) {
    return _URC_END_OF_STACK;
  }
  AddFrame(address - (is_before != 0 ? 0 : 1));
  // The unwinder reads what it takes for code.
  return IsInCode(places[frame_count - 1].address) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// As far as the stack can be read: a fault on the way ends the walk.
void Walk() {
  frame_count = 0;
  if (sigsetjmp(way_back, 1) == 0) {
    may_go_back = 1;
    _Unwind_Backtrace(&TakeFrame, nullptr);
  }
  may_go_back = 0;
}

uintptr_t CounterOf(const ucontext_t& context) {
#if defined(__x86_64__)
  return static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return context.uc_mcontext.pc;
#else
#error "the program counter of a ucontext_t on this architecture"
#endif
}

// Where the function returns to whose first instruction is next; 0: unknown.
uintptr_t ReturnOf(const ucontext_t& context) {
#if defined(__x86_64__)  // the call has pushed it
  uintptr_t caller = 0;
  const iovec to{&caller, sizeof(caller)};
  const iovec from{reinterpret_cast<void*>(context.uc_mcontext.gregs[REG_RSP]), sizeof(caller)};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof(caller) ? caller : 0;
#elif defined(__aarch64__)
  constexpr size_t kLink = 30;
  return context.uc_mcontext.regs[kLink];
#endif
}

// Fills `places`, and returns those of the program, the innermost first.
std::span<CodePlace> FramesOf(const ucontext_t& context) {
  const uintptr_t at = CounterOf(context);
  Walk();
  for (size_t first = 0; first < frame_count; ++first) {
    if (places[first].address == at && (first + 1 < frame_count || IsInCode(at))) {
      return std::span(places).subspan(first, frame_count - first);
    }
  }
  // The program counter is nowhere, as after a call by a null pointer.
  frame_count = 0;
  AddFrame(at);
  if (const uintptr_t caller = ReturnOf(context); caller != 0 && IsInCode(caller)) {
    AddFrame(caller - 1);
  }
  return std::span(places).first(frame_count);
}

// Leaves out what abort() is made of.
std::span<CodePlace> WithoutAbort(std::span<CodePlace> frames) {
  const size_t most = std::min(frames.size(), kFramesOfOurs);
  for (size_t i = 0; i + 1 < most; ++i) {
    if (std::string_view(frames[i].name) == "abort") {
      return frames.subspan(i + 1);
    }
  }
  return frames;
}

std::string_view FileName(const char* path) {
  const std::string_view whole(path);
  return whole.substr(whole.rfind('/') + 1);
}

void Tell(int signal, const siginfo_t& info, const ucontext_t& context) {
  std::span<CodePlace> frames = FramesOf(context);
  FindFunctions(frames, program);
  if (signal == SIGABRT) {
    frames = WithoutAbort(frames);
  }
  Line line;
  line << prefix << "SIG" << sigabbrev_np(signal);
  const auto address = reinterpret_cast<uintptr_t>(info.si_addr);
  // Another address would be another one in each rank.
  if ((signal == SIGSEGV || signal == SIGBUS) && info.si_code > 0 && address < kNullBytes) {
    line << " at address ";
    line.Hex(address);
  }
  const char* before = " in ";
  for (const CodePlace& frame : frames.first(std::min(frames.size(), kFrames))) {
    const std::string_view name(frame.name);
    line << before << (name.empty() ? "?" : name);
    if (frame.file != nullptr) {
      line << " (" << FileName(frame.file) << "+";
      line.Hex(frame.offset) << ")";
    } else {
      line << " (no code)";
    }
    before = ", from ";
    if (name == "main") {
      break;  // its callers are the same in all programs
    }
  }
  line.Write();
}

// The default handling, for the next time: a fault comes again at once, when the handler returns.
void Default(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
}

void Mask(int how, int signal) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(how, &one, nullptr);
}

// Ends the process by that signal, from wherever it is.
void EndBy(int signal) {
  Default(signal);
  Mask(SIG_UNBLOCK, signal);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
}

void OnCrash(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  pid_t other = 0;
  if (owner != getpid()) {
    // A child: its end is its parent's business.
  } else if (reporter.compare_exchange_strong(other, self)) {
    reported_signal = signal;
    Tell(signal, *info, *static_cast<const ucontext_t*>(context));
    reporter.store(-1);
  } else if (other == self) {
    if (may_go_back != 0) {
      may_go_back = 0;
      siglongjmp(way_back, 1);
    }
    return EndBy(reported_signal);
  } else {
    for (int ms = 0; ms < kOthersTurnMs && reporter.load() > 0; ++ms) {
      poll(nullptr, 0, 1);  // the report of another thread
    }
  }
  Default(signal);
  const bool is_news = signal == SIGBUS && info->si_code == BUS_MCEERR_AO;  // of memory elsewhere
  if (info->si_code <= 0 || is_news) {
    // It does not come again by itself. Blocked in here, it is taken where the thread was.
    Mask(SIG_BLOCK, signal);
    syscall(SYS_tgkill, getpid(), self, signal);
  }
  errno = error;
}

// The calling thread's, where it has none.
void GiveSignalStack() {
  stack_t now{};
  if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) {
    return;
  }
  void* const memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory != MAP_FAILED) {
    const stack_t stack{.ss_sp = memory, .ss_flags = 0, .ss_size = kStackBytes};
    (void)sigaltstack(&stack, nullptr);  // kept for the thread's life
  }
}

}  // namespace

void ReportCrashes(int64_t rank) {
  const ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
  program[std::max<ssize_t>(size, 0)] = '\0';
  std::string words(kLibraryWords);
  words += rank < 0 ? "" : RankWords(static_cast<uint32_t>(rank));
  words.copy(prefix, sizeof(prefix) - 1);
  owner = getpid();
  bool is_new = false;
  for (const int signal : kSignals) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) != 0 || (before.sa_flags & SA_SIGINFO) != 0 ||
        before.sa_handler != SIG_DFL) {
      continue;
    }
    struct sigaction action {};
    action.sa_sigaction = &OnCrash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // faults of its own come back to it
    sigemptyset(&action.sa_mask);
    is_new |= sigaction(signal, &action, nullptr) == 0;
  }
  if (is_new) {
    GiveSignalStack();
  }
}

}  // namespace ferry::client

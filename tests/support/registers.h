// The registers of a traced process that stands (ptrace(2)), by what they are for.
#pragma once

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <array>
#include <cstdint>

namespace ferry::tests {

// The thread that traces. False: the kernel refuses, and errno says why.
class Registers {
 public:
  bool Read(pid_t process) { return Move(PTRACE_GETREGSET, process); }
  bool Write(pid_t process) { return Move(PTRACE_SETREGSET, process); }

#if defined(__x86_64__)
  using Instruction = uint8_t;
  static constexpr Instruction kBreakpoint = 0xcc;
  // How far a process stands behind the beginning of a breakpoint, and of a system call that a
  // signal has interrupted.
  static constexpr uint64_t kBehindBreakpoint = 1;
  static constexpr uint64_t kBehindCall = 2;

  uint64_t counter() const { return words_.rip; }
  void set_counter(uint64_t counter) { words_.rip = counter; }
  // Number and arguments of the next system call, if the process stands at one.
  void SetCall(uint64_t number, const std::array<uint64_t, 6>& arguments) {
    words_.orig_rax = ~uint64_t{0};  // the call in which it was is not begun anew
    words_.rax = number;
    words_.rdi = arguments[0];
    words_.rsi = arguments[1];
    words_.rdx = arguments[2];
    words_.r10 = arguments[3];
    words_.r8 = arguments[4];
    words_.r9 = arguments[5];
  }
  int64_t result() const { return static_cast<int64_t>(words_.rax); }
#elif defined(__aarch64__)
  using Instruction = uint32_t;
  static constexpr Instruction kBreakpoint = 0xd4200000;  // brk #0
  // Before it stops a process in a call that is begun anew, the kernel puts it back there.
  static constexpr uint64_t kBehindBreakpoint = 0;
  static constexpr uint64_t kBehindCall = 0;

  uint64_t counter() const { return words_.pc; }
  void set_counter(uint64_t counter) { words_.pc = counter; }
  void SetCall(uint64_t number, const std::array<uint64_t, 6>& arguments) {
    constexpr size_t kNumber = 8;
    words_.regs[kNumber] = number;
    for (size_t i = 0; i < arguments.size(); ++i) {
      words_.regs[i] = arguments[i];
    }
  }
  int64_t result() const { return static_cast<int64_t>(words_.regs[0]); }
#else
#error "the registers of this architecture"
#endif

 private:
  bool Move(__ptrace_request request, pid_t process) {
    iovec all{&words_, sizeof(words_)};
    return ptrace(request, process, NT_PRSTATUS, &all) == 0;
  }

  user_regs_struct words_{};
};

}  // namespace ferry::tests

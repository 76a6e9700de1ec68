// A rank that a fault ends: `crashes HOW [RANK]`, that rank, or all of them. HOW: null, abort,
// overflow, jump (a call by a null pointer), wild (by one that points nowhere), stack (whose
// pointer points nowhere), asked (SIGSEGV from itself), thread (in another one), name (in a
// function of C++); own (as null, with a handler from before ferry_init, which exits with 7), later
// (one from after it); child (of a child, whose end it tells as its exit code).
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "ferry/ferry.h"

namespace crashing {

// A pointer of which the compiler does not know where it points.
template <typename Pointer>
Pointer Hidden(Pointer pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

[[gnu::noinline]] void WriteTo(int* address) {
  *address = 1;
  asm volatile("" ::: "memory");  // so that this is no jump to another function
}

}  // namespace crashing

extern "C" {

[[gnu::noinline]] void touch_nothing() {
  *crashing::Hidden<int*>(nullptr) = 1;
  asm volatile("" ::: "memory");
}

[[gnu::noinline]] void call_nothing(void (*function)()) {
  function();
  asm volatile("" ::: "memory");
}

[[gnu::noinline]] void give_up() { std::abort(); }

[[gnu::noinline]] int go_down(int depth) {
  char block[4096];
  char* const bytes = crashing::Hidden(&block[0]);
  if (depth == INT_MAX) {
    return 0;
  }
  bytes[depth % 4096] = static_cast<char>(depth);
  const int below = go_down(depth + 1);
  return below + bytes[depth % 4096];
}

[[gnu::noinline]] void lose_stack() {
#if defined(__aarch64__)
  asm volatile("mov x9, #16\n\tmov sp, x9\n\tmov x9, #0\n\tstr xzr, [x9]" ::: "x9", "memory");
#else
  asm volatile("movq $8, %%rsp\n\tmovq $0, 0" ::: "memory");
#endif
}

[[gnu::noinline]] void end_itself() {
  raise(SIGSEGV);
  asm volatile("" ::: "memory");
}

}  // extern "C"

namespace {

constexpr int kOwnCode = 7;

void HandleIt(int /*signal*/) {
  constexpr char kWords[] = "own handler\n";
  (void)!write(STDERR_FILENO, kWords, sizeof(kWords) - 1);
  _exit(kOwnCode);
}

int Crash(const std::string& how) {
  if (how == "abort") {
    give_up();
  } else if (how == "overflow") {
    return go_down(0);
  } else if (how == "jump") {
    call_nothing(crashing::Hidden<void (*)()>(nullptr));
  } else if (how == "wild") {
    call_nothing(crashing::Hidden(reinterpret_cast<void (*)()>(0x123456789abc)));
  } else if (how == "stack") {
    lose_stack();
  } else if (how == "asked") {
    end_itself();
  } else if (how == "thread") {
    std::thread(touch_nothing).join();
  } else if (how == "name") {
    crashing::WriteTo(crashing::Hidden<int*>(nullptr));
  } else if (how == "child") {
    const pid_t child = fork();
    if (child == 0) {
      touch_nothing();
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  } else {
    touch_nothing();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "null";
  if (how == "own") {
    signal(SIGSEGV, HandleIt);
  }
  if (ferry_init(FERRY_THREAD_SINGLE, nullptr) != FERRY_SUCCESS ||
      ferry_barrier() != FERRY_SUCCESS) {
    return 1;
  }
  if (how == "later") {
    signal(SIGSEGV, HandleIt);
  }
  if (argc > 2 && std::atoi(argv[2]) != ferry_rank()) {
    while (true) {
      pause();
    }
  }
  return Crash(how);
}

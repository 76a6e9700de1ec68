// Prints the answer of ferry_init and, if it succeeded and there is an argument, the answer to a
// fork.
#include <ferry/ferry.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace {

void Print(const char* call, int code) {
  std::printf("%s: %d %s\n", call, code, code == FERRY_SUCCESS ? "" : ferry_last_error());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char**) {
  const int code = ferry_init(FERRY_THREAD_SINGLE, nullptr);
  Print("init", code);
  if (code != FERRY_SUCCESS) {
    return 0;
  }
  if (argc > 1) {
    const pid_t child = fork();
    if (child == 0) {
      Print("fork", ferry_barrier());
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  Print("finalize", ferry_finalize());
}

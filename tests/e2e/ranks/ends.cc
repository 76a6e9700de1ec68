// A rank that ends as it is told. `ends HOW RANK [stay]`: that rank ends so; the others wait for
// the outcome and, with `stay`, for their launcher to end them. HOW: abort, exit, kill; finalize
// (all of them, in good order); start (as finalize, once that rank has run this program as its
// child).
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "ferry/ferry.h"

namespace {

constexpr int kAbortCode = 37;
constexpr int kExitCode = 3;

int Complain(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, ferry_last_error());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "finalize";
  const int who = argc > 2 ? std::atoi(argv[2]) : 0;
  if (ferry_init(FERRY_THREAD_SINGLE, nullptr) != FERRY_SUCCESS) {
    return Complain("ferry_init");
  }
  std::printf("rank %d of %d\n", ferry_rank(), ferry_size());
  std::fflush(stdout);
  if (how == "start" && ferry_rank() == who) {
    const std::string again = std::string(argv[0]) + " || echo its code is $?";
    (void)!std::system(again.c_str());
  }
  if (how == "finalize" || how == "start") {
    return ferry_finalize() == FERRY_SUCCESS ? 0 : Complain("ferry_finalize");
  }
  if (ferry_rank() == who) {
    if (how == "abort") {
      ferry_abort(kAbortCode);
    }
    if (how == "kill") {
      raise(SIGKILL);
    }
    std::_Exit(kExitCode);
  }
  // The others see the end of that rank as an error here.
  char byte = 0;
  if (ferry_recv(&byte, 1, who, 0, nullptr) != FERRY_SUCCESS) {
    while (argc > 3) {
      pause();
    }
    return Complain("ferry_recv");
  }
  return 1;
}

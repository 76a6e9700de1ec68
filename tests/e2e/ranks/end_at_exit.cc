// Calls ferry_finalize while the process ends (end_at_exit.h), after messages.
#include "tests/e2e/ranks/end_at_exit.h"

#include <ferry/ferry.h>

#include "tests/e2e/ranks/check.h"

namespace {

void Exchange() {
  static char sent[100'000];
  static char received[100'000];
  ferry_request request = FERRY_REQUEST_NULL;
  CHECK_OK(ferry_irecv(received, sizeof(received), ferry::ranks::Left(), 1, &request));
  CHECK_OK(ferry_send(sent, sizeof(sent), ferry::ranks::Right(), 1));
  CHECK_OK(ferry_wait(&request, nullptr));
}

// The last error of this thread is remembered in a long sentence.
void Refuse() {
  CHECK_REFUSED(ferry_send(nullptr, 1, 0, 1), FERRY_ERR_BUFFER, "the buffer is null");
}

void End() {
  Exchange();
  Refuse();
  CHECK_OK(ferry_finalize());
  std::puts("left at exit");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !EndAtExit(argv[1], End)) {
    return 2;
  }
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  Exchange();
  Refuse();
  return 0;
}

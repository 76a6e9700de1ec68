/* deaths OPERATION ORDER: PE 1 is killed; PE 0 goes on working in its memory, and orders that. */
#include <signal.h>

#include "tests/shmem/ranks/check.h"

static long word;

static void operate(const char* operation) {
  const long one = 1;
  long got = 0;
  if (strcmp(operation, "put") == 0) {
    shmem_long_put(&word, &one, 1, 1);
  } else if (strcmp(operation, "get") == 0) {
    shmem_long_get(&got, &word, 1, 1);
  } else {
    shmem_long_atomic_inc(&word, 1);
  }
}

static void order(const char* how, shmem_ctx_t context) {
  const int target = 1;
  if (strcmp(how, "quiet") == 0) {
    shmem_quiet();
  } else if (strcmp(how, "fence") == 0) {
    shmem_fence();
  } else if (strcmp(how, "pe_quiet") == 0) {
    shmem_pe_quiet(&target, 1);
  } else {
    shmem_ctx_quiet(context);
  }
}

int main(int argc, char** argv) {
  begin();
  CHECK(argc == 3);
  shmem_ctx_t context;
  CHECK(shmem_ctx_create(SHMEM_CTX_SERIALIZED, &context) == 0);
  shmem_barrier_all();
  if (me == 1) {
    raise(SIGKILL);
  }
  for (;;) {
    operate(argv[1]);
    order(argv[2], context);
  }
}

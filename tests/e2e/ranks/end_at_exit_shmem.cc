// Calls shmem_finalize while the process ends (tests/e2e/ranks/end_at_exit.h).
#include <shmem.h>

#include "tests/e2e/ranks/end_at_exit.h"

namespace {

void End() {
  shmem_finalize();
  std::puts("left at exit");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !EndAtExit(argv[1], End)) {
    return 2;
  }
  shmem_init();
  auto* const word = static_cast<int*>(shmem_calloc(1, sizeof(int)));
  shmem_int_p(word, shmem_my_pe() + 1, (shmem_my_pe() + 1) % shmem_n_pes());
  shmem_barrier_all();
  return *word == 0 ? 1 : 0;
}

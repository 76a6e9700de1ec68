/* Global and static data of the program and of a library of its own are symmetric, wherever the
 * loader has put them, and children that are forked have their own. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shmem/ranks/check.h"

extern int part_word;
extern int part_words[];
int* part_hidden(void);

enum { kMany = 100000 };

int initialised = 17;
long zeroed[kMany];
static char sparse[(size_t)1 << 30]; /* takes pages only where it is used */
static const char* const names[] = {"zero", "one"};
static long lock;

static void check_puts(void) {
  static int hidden = 3;
  CHECK(initialised == 17 && hidden == 3 && part_word == 5 && part_hidden()[2] == 3);
  CHECK(zeroed[kMany - 1] == 0 && strcmp(names[1], "one") == 0);
  shmem_barrier_all();
  shmem_int_p(&initialised, me + 100, after);
  shmem_int_p(&hidden, me + 200, after);
  shmem_int_p(&part_word, me + 300, after);
  shmem_int_p(part_hidden() + 9, me + 400, after);
  shmem_int_p(part_words + 2999, me + 500, after);
  sparse[sizeof(sparse) - 1] = 'x';
  shmem_char_p(sparse + sizeof(sparse) - 2, (char)me, after);
  shmem_barrier_all();
  CHECK(initialised == before + 100 && hidden == before + 200 && part_word == before + 300);
  CHECK(part_hidden()[9] == before + 400 && part_words[2999] == before + 500);
  CHECK(shmem_int_g(&initialised, after) == me + 100);
  CHECK(sparse[sizeof(sparse) - 2] == (char)before);
  CHECK(shmem_char_g(sparse + sizeof(sparse) - 1, after) == 'x');
  shmem_barrier_all();
  initialised = 17, hidden = 3, part_word = 5;
}

static void check_atomics_and_collectives(void) {
  static long sum;
  const int many = rounds(2000);
  for (int i = 0; i < many; ++i) {
    shmem_long_atomic_add(zeroed, 1, 0);
    shmem_set_lock(&lock);
    shmem_long_p(zeroed + 1, shmem_long_g(zeroed + 1, 0) + 1, 0);
    shmem_clear_lock(&lock);
  }
  shmem_barrier_all();
  if (me == 0) CHECK(zeroed[0] == (long)many * pes && zeroed[1] == (long)many * pes);
  shmem_barrier_all();
  for (long i = 0; i < kMany; ++i) zeroed[i] = i + me;
  CHECK(shmem_long_max_reduce(SHMEM_TEAM_WORLD, zeroed, zeroed, kMany) == 0);
  for (long i = 0; i < kMany; ++i) CHECK(zeroed[i] == i + pes - 1);
  zeroed[0] = me;
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, zeroed, 1);
  CHECK(sum == (long)pes * (pes - 1) / 2);
  shmem_barrier_all();
  zeroed[0] = zeroed[1] = zeroed[kMany - 1] = 0;
}

static void check_fork(void) {
  zeroed[5] = 55;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const int saw = zeroed[5] == 55 && initialised == 17 && part_word == 5;
    zeroed[5] = 66;
    part_word = 66;
    errno = 0;
    exit(saw ? 9 : 8);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 9);
  CHECK(zeroed[5] == 55 && part_word == 5);
  /* Still where others reach it. */
  shmem_barrier_all();
  shmem_long_p(zeroed + 5, me, after);
  shmem_barrier_all();
  CHECK(zeroed[5] == before);
  char word[16] = "";
  FILE* const command = popen("echo popped", "r");
  CHECK(command != NULL && fgets(word, sizeof(word), command) != NULL);
  CHECK(strcmp(word, "popped\n") == 0 && pclose(command) == 0);
}

int main(void) {
  for (int round = 0; round < 2; ++round) {
    begin();
    check_puts();
    check_atomics_and_collectives();
    check_fork();
    shmem_barrier_all();
    if (round == 0) shmem_finalize();
  }
  CHECK(!shmem_addr_accessible(names, after) || shmem_ptr((void*)names, me) == (void*)names);
  return end_well();
}

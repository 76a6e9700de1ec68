/* Runs the cases that it is linked with on two PEs. The argument is the function that the program
 * begins with: shmem_init, shmem_init_thread, start_pes, shmemx_heap_preinit or
 * shmemx_heap_preinit_thread; or shmem_global_exit, by which it ends then. Prints how many cases
 * each PE has run, and on stderr what is wrong. For C and C++. */
#include <stdio.h>

#include "tests/shmem/names/case.h"

int me;
int other;
shmem_ctx_t ctx;
unsigned char* dest_arena;
unsigned char* source_arena;
unsigned char* private_arena;
long* sync_array;
uint64_t* signal_word;
ferry_queue stream_queue;

static const char* running = "";
static int failures;

void settle(void) {
  shmem_ctx_quiet(ctx);
  shmem_barrier_all();
}

int end_of_queue(int error) {
  if (error == 0) {
    error = ferry_queue_wait(stream_queue);
  }
  check(error == 0, ferry_last_error(), __LINE__);
  return error;
}

unsigned char pattern(int pe, size_t i) {
  const unsigned char value = (unsigned char)(101 * (unsigned)pe + 7 * i + i / 32 + 1);
  return value == kCanary ? 0 : value;
}

bool holds(const void* place, int pe, size_t first, size_t count, size_t bytes) {
  const unsigned char* found = (const unsigned char*)place;
  for (size_t i = 0; i < count * bytes; ++i) {
    if (found[i] != pattern(pe, first * bytes + i)) {
      return false;
    }
  }
  return true;
}

bool untouched(const unsigned char* arena, size_t from) {
  for (size_t i = from; i < kArenaBytes; ++i) {
    if (arena[i] != kCanary) {
      return false;
    }
  }
  return true;
}

void check(bool condition, const char* what, int line) {
  if (condition) {
    return;
  }
  ++failures;
  fprintf(stderr, "PE %d, %s, line %d: not %s\n", me, running, line, what);
}

static void begin(const struct Case* next) {
  running = next->name;
  memset(dest_arena, kCanary, kArenaBytes);
  memset(private_arena, kCanary, kArenaBytes);
  for (size_t i = 0; i < kArenaBytes; ++i) {
    source_arena[i] = pattern(me, i);
  }
  *signal_word = 0;
  shmem_barrier_all();
}

static void run_all(void) {
  ferry_stream stream = NULL;
  me = shmem_my_pe();
  other = 1 - me;
  dest_arena = (unsigned char*)shmem_align(64, kArenaBytes);
  source_arena = (unsigned char*)shmem_align(64, kArenaBytes);
  sync_array = (long*)shmem_calloc(SHMEM_SYNC_SIZE, sizeof(long));
  signal_word = (uint64_t*)shmem_malloc(sizeof(uint64_t));
  private_arena = (unsigned char*)malloc(kArenaBytes);
  check(shmem_ctx_create(0, &ctx) == 0, "shmem_ctx_create", __LINE__);
  check(ferry_stream_create(0, &stream) == 0, "ferry_stream_create", __LINE__);
  check(ferry_queue_init(FERRY_QUEUE_FERRY, &stream, &stream_queue) == 0, "a queue", __LINE__);
  for (int i = 0; i < kCaseCount; ++i) {
    begin(&kCases[i]);
    kCases[i].run();
    shmem_barrier_all();
  }
  check(ferry_queue_free(&stream_queue) == 0, "ferry_queue_free", __LINE__);
  check(ferry_stream_destroy(&stream) == 0, "ferry_stream_destroy", __LINE__);
  shmem_ctx_destroy(ctx);
  free(private_arena);
}

/* A heap of 4096 bytes in memory of the program's own, and the end of the beginning. */
static void create_heap(void) {
  static void* base;
  CHECK(shmem_n_pes() == 2);
  CHECK(ferry_alloc(4096, FERRY_MEMORY_HOST, 0, &base) == 0);
  shmemx_heap_create(base, 4096, SHMEMX_EXTERNAL_HEAP_HOST, -1);
  shmemx_heap_postinit();
  CHECK(shmem_addr_accessible((char*)base + 4095, 1 - shmem_my_pe()) == 1);
}

static void begin_by(const char* call) {
  int provided = -1;
  int initialized = -1;
  running = call;
  shmem_query_initialized(&initialized);
  CHECK(initialized == 0);
  if (strcmp(call, "shmem_init_thread") == 0) {
    CHECK(shmem_init_thread(SHMEM_THREAD_SERIALIZED, &provided) == 0);
    CHECK(provided >= SHMEM_THREAD_SERIALIZED);
  } else if (strcmp(call, "start_pes") == 0) {
    start_pes(0);
  } else if (strcmp(call, "shmemx_heap_preinit") == 0) {
    shmemx_heap_preinit();
    create_heap();
  } else if (strcmp(call, "shmemx_heap_preinit_thread") == 0) {
    CHECK(shmemx_heap_preinit_thread(SHMEM_THREAD_FUNNELED, &provided) == 0);
    CHECK(provided >= SHMEM_THREAD_FUNNELED);
    create_heap();
  } else {
    shmem_init();
  }
}

int main(int argc, char** argv) {
  int initialized = -1;
  const char* call = argc == 2 ? argv[1] : "shmem_init";
  begin_by(call);
  if (strcmp(call, "shmem_global_exit") == 0) {
    if (shmem_my_pe() == 1) {
      shmem_global_exit(23);
    }
    shmem_barrier_all(); /* which PE 1 never reaches */
    return 0;
  }
  run_all();
  shmem_finalize();
  shmem_query_initialized(&initialized);
  CHECK(initialized == 0);
  printf("PE %d: %d cases, %d failures\n", me, kCaseCount, failures);
  return failures == 0 ? 0 : 1;
}

/* A word that a PE stores in another one comes once, and whole. Its owner takes it away as soon as
 * it sees it, hears when the call that has stored it is over, and then finds nothing there: by each
 * call that stores words, in static memory and in the heap. The same of gets, whose words a thread
 * of the same PE takes away.
 *
 * words ROUNDS: of each call. Two PEs, or the first and the last of several.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "tests/shmem/ranks/check.h"

enum { room_bytes = 24000 };

static unsigned char static_room[room_bytes] __attribute__((aligned(64)));
static unsigned char* heap_room;
static unsigned char source[room_bytes] __attribute__((aligned(64)));
static long over, taken; /* rounds: told to the owner, and to the other one */
static uint64_t signal_word;
static long rounds_of_each, returned, torn;
static int other;

/* Long ones between nodes may land by copies of the kernel, packet by packet (docs/one_sided.md).
 */
static int comes_whole(size_t bytes) { return bytes <= 8192 || is_local(other); }

/* ---- The calls that store a word ---- */

struct way {
  const char* name;
  size_t word_at, word_bytes; /* what the owner looks at */
  void (*store)(unsigned char* room, int of, const struct way* way);
  size_t bytes; /* that `store` moves, where it may be any */
};

/* Names of elements by their sizes: the functions have one prototype each. */
static void p_1(unsigned char* room, int pe, const struct way* way) {
  (void)way;
  shmem_char_p((char*)room, (char)source[0], pe);
}
static void p_2(unsigned char* room, int pe, const struct way* way) {
  (void)way;
  shmem_short_p((short*)(void*)room, *(short*)(void*)source, pe);
}
static void p_4(unsigned char* room, int pe, const struct way* way) {
  (void)way;
  shmem_int_p((int*)(void*)(room + way->word_at), *(int*)(void*)source, pe);
}
static void p_8(unsigned char* room, int pe, const struct way* way) {
  (void)way;
  shmem_long_p((long*)(void*)room, *(long*)(void*)source, pe);
}
static void put_int(unsigned char* room, int pe, const struct way* way) {
  shmem_int_put((int*)(void*)(room + way->word_at), (int*)(void*)source, 1, pe);
}
static void putmem(unsigned char* room, int pe, const struct way* way) {
  shmem_putmem(room, source, way->bytes, pe);
}
static void putmem_from_afar(unsigned char* room, int pe, const struct way* way) {
  shmem_putmem(room, source + 3, way->bytes, pe); /* of which nothing is aligned as there */
}
static void putmem_behind(unsigned char* room, int pe, const struct way* way) {
  shmem_putmem(room + 5, source, way->bytes, pe); /* begins in the middle of a word */
}
static void putmem_nbi(unsigned char* room, int pe, const struct way* way) {
  shmem_putmem_nbi(room, source, way->bytes, pe);
}
static void iput_int(unsigned char* room, int pe, const struct way* way) {
  shmem_int_iput((int*)(void*)room, (int*)(void*)source, 3, 1, way->bytes, pe);
}
static void put_signal(unsigned char* room, int pe, const struct way* way) {
  shmem_putmem_signal(room, source, way->bytes, &signal_word, 1, SHMEM_SIGNAL_SET, pe);
}
static void set_int(unsigned char* room, int pe, const struct way* way) {
  (void)way;
  shmem_int_atomic_set((int*)(void*)room, *(int*)(void*)source, pe);
}

static const struct way ways[] = {
    {"shmem_char_p", 0, 1, p_1, 0},
    {"shmem_short_p", 0, 2, p_2, 0},
    {"shmem_int_p", 0, 4, p_4, 0},
    {"shmem_int_p between words of 8 bytes", 12, 4, p_4, 0},
    {"shmem_long_p", 0, 8, p_8, 0},
    {"shmem_int_put", 0, 4, put_int, 0},
    {"shmem_int_put between words of 8 bytes", 12, 4, put_int, 0},
    {"shmem_putmem of 1", 0, 1, putmem, 1},
    {"shmem_putmem of 2", 0, 2, putmem, 2},
    {"shmem_putmem of 4", 0, 4, putmem, 4},
    {"shmem_putmem of 8", 0, 8, putmem, 8},
    {"shmem_putmem of 12", 8, 4, putmem, 12},
    {"shmem_putmem of 16", 8, 8, putmem, 16},
    {"shmem_putmem of 16 from afar", 8, 8, putmem_from_afar, 16},
    {"shmem_putmem of 11 behind", 8, 8, putmem_behind, 11},
    {"shmem_putmem of 20", 8, 8, putmem, 20},
    {"shmem_putmem of 100", 96, 4, putmem, 100},
    {"shmem_putmem of 300", 288, 8, putmem, 300},
    {"shmem_putmem of 8192", 8184, 8, putmem, 8192},
    {"shmem_putmem of 20000", 19992, 8, putmem, 20000},
    {"shmem_putmem_nbi of 4", 0, 4, putmem_nbi, 4},
    {"shmem_int_iput of 1", 0, 4, iput_int, 1},
    {"shmem_int_iput of 3", 24, 4, iput_int, 3},
    {"shmem_putmem_signal of 4", 0, 4, put_signal, 4},
    {"shmem_putmem_signal of 16", 8, 8, put_signal, 16},
    {"shmem_int_atomic_set", 0, 4, set_int, 0},
};
enum { way_count = sizeof(ways) / sizeof(ways[0]) };

/* ---- Words ---- */

static uint64_t load(const unsigned char* word, size_t bytes) {
  switch (bytes) {
    case 1:
      return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    case 2:
      return __atomic_load_n((const uint16_t*)(const void*)word, __ATOMIC_ACQUIRE);
    case 4:
      return __atomic_load_n((const uint32_t*)(const void*)word, __ATOMIC_ACQUIRE);
    default:
      return __atomic_load_n((const uint64_t*)(const void*)word, __ATOMIC_ACQUIRE);
  }
}

static void clear(unsigned char* word, size_t bytes) {
  switch (bytes) {
    case 1:
      return __atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
    case 2:
      return __atomic_store_n((uint16_t*)(void*)word, 0, __ATOMIC_SEQ_CST);
    case 4:
      return __atomic_store_n((uint32_t*)(void*)word, 0, __ATOMIC_SEQ_CST);
    default:
      return __atomic_store_n((uint64_t*)(void*)word, 0, __ATOMIC_SEQ_CST);
  }
}

static void wait_for(const long* word, long value) {
  for (int i = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; ++i) {
    if (i % 2048 == 2047) sched_yield();
  }
}

/* All bytes of a word are the same, and none is 0. */
static unsigned char byte_of(long round) { return (unsigned char)(1 + round % 255); }

/* Takes the word away once it is there, and once more when `is_over` says that it was stored. */
static void take(unsigned char* word, size_t bytes, unsigned char pattern, const long* is_over,
                 long round, int is_whole) {
  uint64_t expected = 0;
  uint64_t found;
  memset(&expected, pattern, bytes);
  for (int i = 0; (found = load(word, bytes)) == 0; ++i) {
    if (i % 2048 == 2047) sched_yield();
  }
  torn += found != expected && is_whole;
  clear(word, bytes);
  wait_for(is_over, round);
  returned += load(word, bytes) != 0;
  clear(word, bytes);
}

static void report(const char* name, const char* where) {
  if (returned + torn != 0) {
    fprintf(stderr, "PE %d: %s, %s: %ld of %ld words came back, %ld came in parts\n", me, name,
            where, returned, rounds_of_each, torn);
  }
}

/* ---- From the first PE to the last, and back ---- */

static void run_way(const struct way* way, unsigned char* room, const char* where, int is_owner) {
  for (long round = 1; round <= rounds_of_each; ++round) {
    if (is_owner) {
      take(room + way->word_at, way->word_bytes, byte_of(round), &over, round,
           comes_whole(way->bytes));
      shmem_long_atomic_set(&taken, round, other);
    } else {
      memset(source, byte_of(round), way->bytes + 16);
      way->store(room, other, way);
      shmem_quiet();
      shmem_long_atomic_set(&over, round, other);
      wait_for(&taken, round);
    }
  }
  report(way->name, where);
}

static int run_puts(void) {
  int is_wrong = 0;
  for (int i = 0; i < 2 * way_count; ++i) {
    const int in_heap = i % 2;
    over = taken = 0;
    returned = torn = 0;
    memset(in_heap ? heap_room : static_room, 0, room_bytes);
    shmem_barrier_all();
    if (me == 0 || me == pes - 1) {
      run_way(&ways[i / 2], in_heap ? heap_room : static_room, in_heap ? "heap" : "static memory",
              (me == 0) == (i / 2 % 2 == 0));
    }
    is_wrong |= returned + torn != 0;
    shmem_barrier_all();
  }
  return is_wrong;
}

/* ---- Gets ---- */

static unsigned char got[room_bytes] __attribute__((aligned(64)));
static const size_t got_bytes[] = {1, 2, 4, 8, 12, 16, 20, 100, 300, 8192, 20000};
enum { got_count = sizeof(got_bytes) / sizeof(got_bytes[0]) };
static long got_over, got_taken;
static int got_wrong;

/* The last 4 bytes of those, or all of fewer. */
static size_t got_word(size_t bytes) { return bytes < 4 ? bytes : 4; }

static void* take_gets(void* unused) {
  long done = 0;
  for (size_t i = 0; i < got_count; ++i) {
    const size_t bytes = got_bytes[i];
    returned = torn = 0;
    for (long round = 1; round <= rounds_of_each; ++round) {
      take(got + bytes - got_word(bytes), got_word(bytes), byte_of(0), &got_over, ++done,
           comes_whole(bytes));
      __atomic_store_n(&got_taken, done, __ATOMIC_RELEASE);
    }
    report("shmem_getmem", "static memory");
    got_wrong |= returned + torn != 0;
  }
  return unused;
}

static int run_gets(void) {
  memset(heap_room, byte_of(0), room_bytes);
  shmem_barrier_all();
  if (me == 0) {
    pthread_t taker;
    long done = 0;
    CHECK(pthread_create(&taker, NULL, take_gets, NULL) == 0);
    for (size_t i = 0; i < got_count; ++i) {
      for (long round = 1; round <= rounds_of_each; ++round) {
        shmem_getmem(got, heap_room, got_bytes[i], other);
        __atomic_store_n(&got_over, ++done, __ATOMIC_RELEASE);
        wait_for(&got_taken, done);
      }
    }
    CHECK(pthread_join(taker, NULL) == 0);
  }
  shmem_barrier_all();
  return got_wrong;
}

int main(int argc, char** argv) {
  int is_wrong;
  begin();
  CHECK(argc == 2 && pes > 1);
  rounds_of_each = atol(argv[1]);
  other = me == 0 ? pes - 1 : 0;
  heap_room = shmem_align(64, room_bytes);
  CHECK(heap_room != NULL);
  is_wrong = run_puts();
  is_wrong |= run_gets();
  if (is_wrong) shmem_global_exit(1);
  shmem_barrier_all();
  shmem_free(heap_room);
  return end_well();
}

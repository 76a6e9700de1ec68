/* The order of what a PE does in another one: an operation, a call that orders, and another
 * operation. Whoever sees the second finds all of the first. Every pair of operations with each of
 * the calls, in static memory and in the heap; the PE that looks computes meanwhile or waits in the
 * library, and so does the other one. Both PEs do so at the same time.
 *
 * order ROUNDS. Two PEs.
 */
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdint.h>

#include "tests/shmem/ranks/check.h"

enum { short_bytes = 64, long_bytes = 100000, spread = 16, room_bytes = 100352 };

/* What an operation stores is all of one place. */
struct place {
  long word; /* of single words, signals, and behind strided elements */
  int spread_words[2 * spread];
  unsigned char bytes[room_bytes] __attribute__((aligned(64)));
};
/* Of the first operation, and of the second. */
static struct place static_places[2];
static struct place* heap_places;
static unsigned char source[room_bytes] __attribute__((aligned(64)));
static long taken;
static int other;

enum op {
  put_short,
  put_long,
  put_nbi,
  put_signal,
  p_word,
  set_word,
  add_word,
  put_strided,
  get_bytes,
  op_count
};
enum call { by_fence, by_quiet, by_barrier, call_count };
static const char* const op_names[] = {"put", "long put", "put_nbi", "put_signal", "p",
                                       "set", "add",      "iput",    "get"};
static const char* const call_names[] = {"fence", "quiet", "barrier_all"};

struct round {
  long number;
  enum op first, second;
  enum call call;
  struct place* places;
  int looks_inside, waits_inside; /* the library */
};

static struct round round_of(long number) {
  struct round round = {.number = number};
  long rest = number;
  round.looks_inside = rest % 2 != 0;
  rest /= 2;
  round.waits_inside = rest % 2 != 0;
  rest /= 2;
  round.places = rest % 2 != 0 ? heap_places : static_places;
  rest /= 2;
  round.first = (enum op)(rest % op_count);
  rest /= op_count;
  round.second = (enum op)(rest % op_count);
  rest /= op_count;
  round.call = (enum call)(rest % call_count);
  return round;
}
enum { all_rounds = 8 * op_count * op_count * call_count };

static void fail(const struct round* round, const char* what) {
  fprintf(stderr, "PE %d, round %ld: %s, %s, %s in %s memory, %s: %s\n", me, round->number,
          op_names[round->first], call_names[round->call], op_names[round->second],
          round->places == heap_places ? "heap" : "static",
          round->looks_inside ? "seen by the library" : "seen by loads", what);
  shmem_global_exit(1);
}

/* Multiples of 8, so that the last word is one. */
static size_t bytes_of(enum op op, long number) {
  switch (op) {
    case put_long:
      return number % 7 == 0 ? long_bytes : 8200 + (size_t)(number * 808 % 8192);
    case put_nbi:
      return 8 + (size_t)(number * 808 % 8096);
    default:
      return 8 + (size_t)(number * 8 % short_bytes);
  }
}
static int has_bytes(enum op op) { return op <= put_signal || op == get_bytes; }

/* Bytes of a round end with its number. */
static void fill_for(unsigned char* bytes, size_t size, long number) {
  fill(bytes, size, (unsigned)number);
  memcpy(bytes + size - sizeof(number), &number, sizeof(number));
}
static int is_filled_for(const unsigned char* bytes, size_t size, long number) {
  long last;
  memcpy(&last, bytes + size - sizeof(number), sizeof(number));
  return last == number && is_filled(bytes, size - sizeof(number), (unsigned)number);
}

static void wait_for(const long* word, long value, int inside) {
  if (inside) {
    shmem_long_wait_until((long*)word, SHMEM_CMP_EQ, value);
    return;
  }
  for (int i = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; ++i) {
    if (i % 1024 == 1023) sched_yield();
  }
}

/* ---- The PE that does it ---- */

static void run(enum op op, struct place* to, const struct round* round) {
  const size_t bytes = bytes_of(op, round->number);
  const long number = round->number;
  int elements[spread];
  if (has_bytes(op)) fill_for(source, bytes, number);
  switch (op) {
    case put_short:
    case put_long:
      shmem_putmem(to->bytes, source, bytes, other);
      break;
    case put_nbi:
      shmem_putmem_nbi(to->bytes, source, bytes, other);
      break;
    case put_signal:
      shmem_putmem_signal(to->bytes, source, bytes, (uint64_t*)&to->word, (uint64_t)number,
                          SHMEM_SIGNAL_SET, other);
      break;
    case p_word:
      shmem_long_p(&to->word, number, other);
      break;
    case set_word:
      shmem_long_atomic_set(&to->word, number, other);
      break;
    case add_word: /* the word holds 0 */
      shmem_long_atomic_add(&to->word, number, other);
      break;
    case put_strided:
      for (int i = 0; i < spread; ++i) elements[i] = (int)(number + i);
      shmem_int_iput(to->spread_words, elements, 2, 1, spread, other);
      break;
    default: { /* what the other has made of its place in the round before */
      memset(source, 0, bytes);
      shmem_getmem(source, to->bytes, bytes, other);
      if (!is_filled_for(source, bytes, number)) fail(round, "what was got is wrong");
    }
  }
}

/* ---- The PE that looks ---- */

/* Gets find here what they look for; adds begin at nothing. */
static void prepare(enum op op, struct place* at, const struct round* round) {
  if (op == get_bytes) fill_for(at->bytes, bytes_of(op, round->number), round->number);
  at->word = 0;
}

static void await(enum op op, struct place* at, const struct round* round) {
  const long number = round->number;
  if (op == put_strided) {
    int* const last = &at->spread_words[2 * (spread - 1)];
    const int value = (int)(number + spread - 1);
    if (round->looks_inside) {
      shmem_int_wait_until(last, SHMEM_CMP_EQ, value);
    } else {
      for (int i = 0; __atomic_load_n(last, __ATOMIC_ACQUIRE) != value; ++i) {
        if (i % 1024 == 1023) sched_yield();
      }
    }
  } else if (op <= put_nbi) {
    wait_for((long*)(void*)(at->bytes + bytes_of(op, number) - sizeof(long)), number,
             round->looks_inside);
  } else if (op != get_bytes) {
    wait_for(&at->word, number, round->looks_inside);
  }
}

static void check(enum op op, const struct place* at, const struct round* round) {
  if (has_bytes(op) && !is_filled_for(at->bytes, bytes_of(op, round->number), round->number)) {
    fail(round, "the bytes of the first are not there");
  }
  if ((op == put_signal || (op >= p_word && op <= add_word)) && at->word != round->number) {
    fail(round, "the word of the first is not there");
  }
  for (int i = 0; op == put_strided && i < spread; ++i) {
    if (at->spread_words[2 * i] != (int)(round->number + i)) {
      fail(round, "an element of the first is not there");
    }
  }
}

static void run_round(const struct round* round) {
  /* A get is over when it returns, and a fence says nothing of what it finds. */
  const int is_get = round->second == get_bytes;
  prepare(round->first, &round->places[0], round);
  prepare(round->second, &round->places[1], round);
  shmem_barrier_all();
  run(round->first, &round->places[0], round);
  if (round->call == by_fence) shmem_fence();
  if (round->call == by_quiet) shmem_quiet();
  if (round->call == by_barrier) {
    shmem_barrier_all();
    check(round->first, &round->places[0], round);
  }
  if (is_get && round->call != by_fence && has_bytes(round->first)) {
    const size_t bytes = bytes_of(round->first, round->number);
    shmem_getmem(source, round->places[0].bytes, bytes, other);
    if (!is_filled_for(source, bytes, round->number)) {
      fail(round, "a get does not find the bytes of the first");
    }
  }
  run(round->second, &round->places[1], round);
  if (!is_get) {
    await(round->second, &round->places[1], round);
    check(round->first, &round->places[0], round);
  }
  shmem_long_atomic_set(&taken, round->number, other);
  wait_for(&taken, round->number, round->waits_inside);
}

int main(int argc, char** argv) {
  begin();
  CHECK(argc == 2 && pes == 2);
  const long rounds_to_run = atol(argv[1]);
  other = 1 - me;
  heap_places = shmem_align(64, 2 * sizeof(struct place));
  CHECK(heap_places != NULL);
  memset(heap_places, 0, 2 * sizeof(struct place));
  shmem_barrier_all();
  for (long i = 0; i < rounds_to_run; ++i) {
    /* All combinations, in an order in which neighbours have little in common. */
    struct round round = round_of(i * 1013 % all_rounds);
    round.number = i + 1;
    run_round(&round);
  }
  shmem_barrier_all();
  shmem_free(heap_places);
  return end_well();
}

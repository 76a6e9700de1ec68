/* The order of what a rank does in a window of another one (MPI 5.0, 12.5): an operation, a call
 * that ends it, and something by which the other one learns of it, which then finds all of it.
 * Every operation with each of the calls and each of the tidings, in memory of every kind that CPUs
 * reach; the rank that learns of it computes meanwhile or waits in MPI. Both ranks do so at the
 * same time.
 *
 * rma_order ROUNDS. Two ranks. Rank 0 says how far it is.
 */
#define _POSIX_C_SOURCE 200809L
#include <sched.h>

#include "tests/mpi/ranks/rma.h"

enum { short_bytes = 64, long_bytes = 100000, spread = 16 };

/* What an operation stores is all of one. */
struct place {
  int64_t word;
  int64_t tidings;
  int64_t spread_words[2 * spread];
  unsigned char bytes[long_bytes];
};

enum op { put_short, put_long, put_strided, replace, sum, get_replace, fetch_sum, swap, op_count };
static const char* const op_names[] = {"MPI_Put",
                                       "long MPI_Put",
                                       "strided MPI_Put",
                                       "MPI_Accumulate MPI_REPLACE",
                                       "MPI_Accumulate MPI_SUM",
                                       "MPI_Get_accumulate",
                                       "MPI_Fetch_and_op",
                                       "MPI_Compare_and_swap"};
/* The first three end an epoch that never ends, the others end theirs, for both. */
enum call { by_flush, by_flush_all, by_unlock, by_fence, by_pscw, call_count };
static const char* const call_names[] = {"MPI_Win_flush", "MPI_Win_flush_all", "MPI_Win_unlock",
                                         "MPI_Win_fence", "MPI_Win_complete"};
enum tidings { by_message, by_put, by_replace, by_fetch, tidings_count };
static const char* const tidings_names[] = {"a message", "MPI_Put", "MPI_Accumulate",
                                            "MPI_Fetch_and_op"};

struct round {
  int64_t number;
  enum op op;
  enum call call;
  enum tidings tidings;
  int waits_inside;
};
enum { all_rounds = 2 * op_count * call_count * tidings_count };

static struct round round_of(int64_t number) {
  struct round round = {.number = number};
  int64_t rest = number;
  round.waits_inside = rest % 2 != 0;
  rest /= 2;
  round.op = (enum op)(rest % op_count);
  rest /= op_count;
  round.call = (enum call)(rest % call_count);
  rest /= call_count;
  round.tidings = (enum tidings)(rest % tidings_count);
  return round;
}

static enum memory memory;
/* One for each kind of epoch: whole jobs long, of locks, of fences, and of groups. */
static struct window lasting, locked, fenced, grouped;
static MPI_Group partner;
static MPI_Datatype every_other;
static unsigned char source[long_bytes];

static struct window* window_of(enum call call) {
  return call == by_unlock  ? &locked
         : call == by_fence ? &fenced
         : call == by_pscw  ? &grouped
                            : &lasting;
}
static struct place* place_of(const struct window* window) {
  return (struct place*)(void*)window->base;
}

static void fail(const struct round* round, const char* what) {
  fprintf(stderr, "rank %d, round %lld: %s, %s, %s, %s memory, learnt %s: %s\n", rank,
          (long long)round->number, op_names[round->op], call_names[round->call],
          tidings_names[round->tidings], memory_names[memory],
          round->waits_inside ? "in MPI" : "by loads", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int bytes_of(const struct round* round) {
  return round->op == put_short   ? 1 + (int)(round->number * 809 % short_bytes)
         : round->number % 7 == 0 ? long_bytes
                                  : 8193 + (int)(round->number * 809 % 8192);
}

/* ---- The rank that does it ---- */

static MPI_Aint at(size_t offset) { return (MPI_Aint)offset; }
#define AT(member) at(offsetof(struct place, member))

static void run(const struct round* round, MPI_Win win) {
  static int64_t words[spread], found[spread];
  const int64_t nothing = 0;
  const int bytes = bytes_of(round);
  for (int i = 0; i < spread; ++i) words[i] = round->number + i;
  switch (round->op) {
    case put_short:
    case put_long:
      fill(source, (size_t)bytes, (unsigned)round->number);
      OK(MPI_Put(source, bytes, MPI_BYTE, next, AT(bytes), bytes, MPI_BYTE, win));
      break;
    case put_strided:
      OK(MPI_Put(words, spread, MPI_INT64_T, next, AT(spread_words), 1, every_other, win));
      break;
    case replace:
      OK(MPI_Accumulate(words, spread, MPI_INT64_T, next, AT(spread_words), 1, every_other,
                        MPI_REPLACE, win));
      break;
    case sum: /* to nothing */
      OK(MPI_Accumulate(words, spread, MPI_INT64_T, next, AT(spread_words), 1, every_other, MPI_SUM,
                        win));
      break;
    case get_replace:
      OK(MPI_Get_accumulate(words, spread, MPI_INT64_T, found, spread, MPI_INT64_T, next,
                            AT(spread_words), 1, every_other, MPI_REPLACE, win));
      break;
    case fetch_sum:
      OK(MPI_Fetch_and_op(words, found, MPI_INT64_T, next, AT(word), MPI_SUM, win));
      break;
    default:
      OK(MPI_Compare_and_swap(words, &nothing, found, MPI_INT64_T, next, AT(word), win));
  }
}

static void tell(const struct round* round) {
  int64_t unused;
  const MPI_Win win = lasting.win;
  switch (round->tidings) {
    case by_message:
      OK(MPI_Send(&round->number, 1, MPI_INT64_T, next, 0, MPI_COMM_WORLD));
      break;
    case by_put:
      OK(MPI_Put(&round->number, 1, MPI_INT64_T, next, AT(tidings), 1, MPI_INT64_T, win));
      break;
    case by_replace:
      OK(MPI_Accumulate(&round->number, 1, MPI_INT64_T, next, AT(tidings), 1, MPI_INT64_T,
                        MPI_REPLACE, win));
      break;
    default:
      OK(MPI_Fetch_and_op(&round->number, &unused, MPI_INT64_T, next, AT(tidings), MPI_REPLACE,
                          win));
  }
  OK(MPI_Win_flush(next, win));
}

/* ---- The rank that learns of it ---- */

static void learn(const struct round* round) {
  const int64_t* const tidings = &place_of(&lasting)->tidings;
  int64_t told = 0;
  int flag = 0;
  if (round->tidings == by_message) {
    /* Computes until the message has come, or waits for it. */
    while (!round->waits_inside && !flag) {
      for (int i = 0; i < 100; ++i) sched_yield();
      OK(MPI_Iprobe(before, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    }
    OK(MPI_Recv(&told, 1, MPI_INT64_T, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (told != round->number) fail(round, "another message came");
  }
  for (int i = 0; round->tidings != by_message && told != round->number; ++i) {
    if (round->waits_inside) {
      OK(MPI_Fetch_and_op(NULL, &told, MPI_INT64_T, rank, AT(tidings), MPI_NO_OP, lasting.win));
      OK(MPI_Win_flush(rank, lasting.win));
    } else {
      told = __atomic_load_n(tidings, __ATOMIC_ACQUIRE);
    }
    if (i % 128 == 127) sched_yield();
  }
  OK(MPI_Win_sync(lasting.win));
}

static void check(const struct round* round, const struct place* place) {
  const size_t bytes = (size_t)bytes_of(round);
  if (round->op <= put_long && !is_filled(place->bytes, bytes, (unsigned)round->number)) {
    fail(round, "bytes are not there");
  }
  if (round->op >= fetch_sum && place->word != round->number) fail(round, "the word is not there");
  for (int i = 0; i < spread && round->op > put_long && round->op < fetch_sum; ++i) {
    if (place->spread_words[2 * i] != round->number + i) fail(round, "an element is not there");
    if (place->spread_words[2 * i + 1] != 0) fail(round, "something is between the elements");
  }
}

/* ---- Both ---- */

static void clear(struct window* window) {
  struct place* const place = place_of(window);
  place->word = 0;
  memset(place->spread_words, 0, sizeof(place->spread_words));
  if (window != &fenced) OK(MPI_Win_sync(window->win));
}

static void run_round(const struct round* round) {
  struct window* const window = window_of(round->call);
  clear(window);
  barrier();
  if (round->call == by_unlock) OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window->win));
  if (round->call == by_fence) OK(MPI_Win_fence(0, window->win));
  if (round->call == by_pscw) {
    OK(MPI_Win_post(partner, 0, window->win));
    OK(MPI_Win_start(partner, 0, window->win));
  }
  run(round, window->win);
  if (round->call == by_flush) OK(MPI_Win_flush(next, window->win));
  if (round->call == by_flush_all) OK(MPI_Win_flush_all(window->win));
  if (round->call == by_unlock) OK(MPI_Win_unlock(next, window->win));
  if (round->call == by_fence) OK(MPI_Win_fence(0, window->win));
  if (round->call == by_pscw) {
    OK(MPI_Win_complete(window->win));
    OK(MPI_Win_wait(window->win));
  }
  if (round->call < by_fence) {
    tell(round);
    learn(round);
    OK(MPI_Win_sync(window->win));
  }
  check(round, place_of(window));
}

static void run_rounds(long rounds) {
  MPI_Group world;
  const size_t bytes = sizeof(struct place);
  lasting = make_window(memory, bytes, 1);
  locked = make_window(memory, bytes, 1);
  fenced = make_window(memory, bytes, 1);
  grouped = make_window(memory, bytes, 1);
  memset(lasting.base, 0, bytes);
  memset(fenced.base, 0, bytes);
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_incl(world, 1, &next, &partner));
  OK(MPI_Group_free(&world));
  OK(MPI_Win_lock_all(0, lasting.win));
  for (long i = 0; i < rounds; ++i) {
    /* All combinations, in an order in which neighbours have little in common. */
    struct round round = round_of(i * 101 % all_rounds);
    round.number = i + 1;
    run_round(&round);
    if (rank == 0 && round.number % 100000 == 0) {
      fprintf(stderr, "%s memory: %ld rounds\n", memory_names[memory], i + 1);
    }
  }
  barrier();
  OK(MPI_Win_unlock_all(lasting.win));
  OK(MPI_Group_free(&partner));
  drop_window(&lasting);
  drop_window(&locked);
  drop_window(&fenced);
  drop_window(&grouped);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  CHECK(argc == 2 && size == 2);
  OK(MPI_Type_vector(spread, 1, 2, MPI_INT64_T, &every_other));
  OK(MPI_Type_commit(&every_other));
  for (memory = allocated; memory <= ordinary; ++memory) {
    const long rounds = atol(argv[1]);
    step = memory_names[memory];
    /* Ordinary memory of other nodes is reached by messages, which take a thousand times as long.
     */
    run_rounds(memory != ordinary || rounds <= all_rounds ? rounds
               : rounds / 100 > all_rounds                ? rounds / 100
                                                          : all_rounds);
  }
  OK(MPI_Type_free(&every_other));
  printf("all was in order\n");
  OK(MPI_Finalize());
  return 0;
}

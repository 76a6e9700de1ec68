/* Partitioned collectives against the plain ones on the same data: every kind of them, in place and
 * not, with partitions readied in any order by several threads, and results used before the next
 * partition is ready. Any number of ranks.
 */
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/mpi/ranks/partitioned_runs.h"

static void run_rounds(struct run* run) {
  for (int round = 0; round < 4; ++round) {
    set(run, round);
    OK(MPI_Start(&run->request));
    if (round == 1) OK(MPIX_Pbuf_prepare(run->request));
    if (readies(run)) {
      if (round % 3 == 0) ready_by_threads(run);
      if (round % 3 == 1) ready_alone(run);
      if (round % 3 == 2) ready_ranges(run);
    }
    if (arrives(run) && round % 2 == 0) {
      for (int p = run->partitions - 1; p >= 0; --p) {
        while (!has_arrived(run, p)) sched_yield();
        compare(run, p);
      }
    }
    OK(MPI_Wait(&run->request, MPI_STATUS_IGNORE));
    compare_all(run);
    check_gaps(run);
  }
}

/* A partition is used before the next one is ready, on all ranks. */
static void run_one_by_one(struct run* run) {
  set(run, 9);
  OK(MPI_Start(&run->request));
  for (int p = 0; p < run->partitions; ++p) {
    if (arrives(run) && readies(run)) CHECK(!has_arrived(run, p));
    if (readies(run)) OK(MPI_Pready(p, run->request));
    while (arrives(run) && !has_arrived(run, p)) sched_yield();
    compare(run, p);
    if (arrives(run)) CHECK(has_arrived(run, p));
  }
  OK(MPI_Wait(&run->request, MPI_STATUS_IGNORE));
  if (arrives(run)) CHECK(has_arrived(run, 0)); /* an inactive request */
}

static int may_be_in_place(const struct run* run) {
  switch (run->kind) {
    case BCAST:
      return 0;
    case REDUCE:
    case GATHER:
    case SCATTER:
      return is_root(run);
    default:
      return 1;
  }
}

static void check_kind(enum collective kind, int partitions, int count, MPI_Datatype type,
                       MPI_Op op, int words, int used, const char* least_bytes,
                       const char* most_units) {
  step = names[kind];
  MPI_Info info = hints(least_bytes, most_units);
  struct run run = make(kind, partitions, count, type, op, words, used);
  for (int in_place = 0; in_place < 2; ++in_place) {
    run.root = in_place ? size - 1 : size / 2;
    run.in_place = in_place && may_be_in_place(&run);
    OK(init(&run, info));
    run_rounds(&run);
    if (least_bytes != NULL && most_units == NULL && partitions <= 64) run_one_by_one(&run);
    OK(MPI_Request_free(&run.request));
  }
  drop(&run);
  OK(MPI_Info_free(&info));
}

/* ---- Kinds of elements ---- */

/* Maps x -> a x + b of unsigned numbers: composing them keeps to the order of the ranks. */
static void compose(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  const unsigned* const first = in;
  unsigned* const second = inout;
  for (int i = 0; i < *length; ++i) {
    const unsigned a = first[2 * i] * second[2 * i];
    second[2 * i + 1] += second[2 * i] * first[2 * i + 1];
    second[2 * i] = a;
  }
}

static void check_all_kinds(void) {
  MPI_Datatype pair, gapped;
  MPI_Op own;
  OK(MPI_Type_contiguous(2, MPI_UNSIGNED, &pair));
  OK(MPI_Type_commit(&pair));
  OK(MPI_Type_create_resized(MPI_UNSIGNED, 0, 3 * sizeof(int), &gapped));
  OK(MPI_Type_commit(&gapped));
  OK(MPI_Op_create(compose, 0, &own));
  for (int kind = 0; kind < KINDS; ++kind) {
    check_kind(kind, 1, 5, MPI_UNSIGNED, MPI_SUM, 1, 1, NULL, NULL);
    check_kind(kind, 7, 3, MPI_UNSIGNED, MPI_SUM, 1, 1, "1", NULL);
    check_kind(kind, 100, 2, MPI_UNSIGNED, MPI_BXOR, 1, 1, NULL, NULL); /* one unit of all */
    check_kind(kind, 100, 1, MPI_UNSIGNED, MPI_MAX, 1, 1, "1", NULL);
    check_kind(kind, 100, 2, MPI_UNSIGNED, MPI_SUM, 1, 1, "1", "1"); /* no more than 32 in a unit */
    check_kind(kind, 5, 3000, MPI_UNSIGNED, MPI_SUM, 1, 1, NULL, NULL);
    check_kind(kind, 4, 9000, MPI_UNSIGNED, MPI_MIN, 1, 1, "1", NULL);
    check_kind(kind, 9, 0, MPI_UNSIGNED, MPI_SUM, 1, 1, "1", NULL);
    check_kind(kind, 6, 50, pair, own, 2, 2, "1", "3");
    if (kind < REDUCE || kind > REDUCE_SCATTER) {
      check_kind(kind, 8, 11, gapped, MPI_OP_NULL, 3, 1, "1", NULL);
    }
  }
  OK(MPI_Op_free(&own));
  OK(MPI_Type_free(&pair));
  OK(MPI_Type_free(&gapped));
}

/* Types that pack: an operation of the program's on elements with gaps. */
static void add_gapped(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((unsigned*)inout)[3 * i] += ((unsigned*)in)[3 * i];
}

static void check_packed_reductions(void) {
  MPI_Datatype gapped;
  MPI_Op own;
  OK(MPI_Type_create_resized(MPI_UNSIGNED, 0, 3 * sizeof(int), &gapped));
  OK(MPI_Type_commit(&gapped));
  OK(MPI_Op_create(add_gapped, 1, &own));
  for (int kind = REDUCE; kind <= REDUCE_SCATTER; ++kind) {
    check_kind(kind, 8, 11, gapped, own, 3, 1, "1", NULL);
    check_kind(kind, 8, 11, gapped, own, 3, 1, NULL, NULL);
  }
  OK(MPI_Op_free(&own));
  OK(MPI_Type_free(&gapped));
}

/* The request keeps the type and the operation that the program frees. */
static void check_freed(void) {
  step = "a type and an operation that were freed";
  MPI_Datatype gapped, given;
  MPI_Op own, given_op;
  OK(MPI_Type_create_resized(MPI_UNSIGNED, 0, 3 * sizeof(int), &gapped));
  OK(MPI_Type_commit(&gapped));
  OK(MPI_Op_create(add_gapped, 1, &own));
  for (int kind = REDUCE; kind < KINDS; ++kind) {
    OK(MPI_Type_dup(gapped, &given));
    OK(MPI_Op_create(add_gapped, 1, &given_op));
    struct run run = make(kind, 5, 7, given, given_op, 3, 1);
    OK(init(&run, MPI_INFO_NULL));
    OK(MPI_Type_free(&given));
    OK(MPI_Op_free(&given_op));
    run.type = gapped;
    run.op = own;
    run_rounds(&run);
    drop(&run);
  }
  OK(MPI_Op_free(&own));
  OK(MPI_Type_free(&gapped));
}

/* In the first round, too, it is carried on while a rank waits for something else. In place: inside
 * a node that goes by messages. */
static void check_waits_elsewhere(void) {
  enum { PARTITIONS = 4, COUNT = 20000 };
  step = "a rank that waits for something else in the first round";
  const int all = PARTITIONS * COUNT * size;
  unsigned* const blocks = memory(sizeof(unsigned) * all);
  for (int i = 0; i < all; ++i) blocks[i] = (unsigned)(rank * 31 + i / (PARTITIONS * COUNT));
  MPI_Request request;
  OK(MPIX_Palltoall_init(MPI_IN_PLACE, blocks, PARTITIONS, COUNT, MPI_UNSIGNED, MPI_COMM_WORLD,
                         MPI_INFO_NULL, &request));
  OK(MPI_Start(&request));
  OK(MPI_Pready_range(0, PARTITIONS - 1, request));
  const int last = size - 1;
  if (rank != last) {
    OK(MPI_Recv(NULL, 0, MPI_BYTE, last, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else {
    for (int p = 0, arrived = 0; p < PARTITIONS; p += arrived) {
      OK(MPI_Parrived(request, p, &arrived));
    }
    for (int i = 0; i < last; ++i) OK(MPI_Send(NULL, 0, MPI_BYTE, i, 9, MPI_COMM_WORLD));
  }
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < all; ++i) {
    CHECK(blocks[i] == (unsigned)(i / (PARTITIONS * COUNT) * 31 + rank));
  }
  OK(MPI_Request_free(&request));
  free(blocks);
}

static int is_one_node(void) {
  MPI_Comm node;
  int near = 0;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  OK(MPI_Comm_size(node, &near));
  OK(MPI_Comm_free(&node));
  return near == size;
}

/* The sums of `count` numbers in the order of ranks. */
static void add_in_order(double* in, double* sums, int count) {
  double* const all = memory(sizeof(double) * count * size);
  OK(MPI_Allgather(in, count, MPI_DOUBLE, all, count, MPI_DOUBLE, MPI_COMM_WORLD));
  memcpy(sums, all, sizeof(double) * count);
  for (int i = count; i < count * size; ++i) sums[i % count] += all[i];
  free(all);
}

/* Sums of floating-point numbers, to the last bit: inside a node in the order of ranks, else those
 * of the plain persistent collective on each unit. */
static void check_bits(int partitions, int count, int units) {
  step = "bits of floating-point sums";
  char text[12];
  snprintf(text, sizeof text, "%d", units);
  MPI_Info info = hints("1", text);
  const int all = partitions * count, slice = all / units;
  double* const in = memory(sizeof(double) * all);
  double* const out = memory(sizeof(double) * all);
  double* const expected = memory(sizeof(double) * all);
  for (int i = 0; i < all; ++i) in[i] = 1.0 / (1 + rank * 31 + i % 977) - 1e3 * ((rank + i) % 3);
  const int near = is_one_node() && size > 1;
  if (near) add_in_order(in, expected, all);
  for (int u = 0; u < units && !near; ++u) {
    MPI_Request plain;
    OK(MPI_Allreduce_init(in + u * slice, expected + u * slice, slice, MPI_DOUBLE, MPI_SUM,
                          MPI_COMM_WORLD, MPI_INFO_NULL, &plain));
    OK(MPI_Start(&plain));
    OK(MPI_Wait(&plain, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&plain));
  }
  MPI_Request request;
  OK(MPIX_Pallreduce_init(in, out, partitions, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, info,
                          &request));
  for (int round = 0; round < 2; ++round) {
    memset(out, 0, sizeof(double) * all);
    OK(MPI_Start(&request));
    for (int p = 0; p < partitions; ++p) OK(MPI_Pready((p + round) % partitions, request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(memcmp(out, expected, sizeof(double) * all) == 0);
  }
  OK(MPI_Request_free(&request));
  OK(MPI_Info_free(&info));
  free(in);
  free(out);
  free(expected);
}

/* ---- Beside each other, and beside others ---- */

static void check_several(void) {
  step = "several at once";
  enum { ALL = 4 };
  MPI_Info info = hints("1", NULL);
  struct run runs[ALL];
  MPI_Request requests[ALL + 3];
  for (int i = 0; i < ALL; ++i) {
    runs[i] = make(i == 3 ? BCAST : ALLREDUCE, 5 + i, 40, MPI_UNSIGNED, MPI_SUM, 1, 1);
    OK(init(&runs[i], info));
    requests[i] = runs[i].request;
  }
  int own = 0, sum = 0, coming = -1;
  OK(MPI_Allreduce_init(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                        &requests[ALL]));
  OK(MPI_Send_init(&own, 1, MPI_INT, next, 4, MPI_COMM_WORLD, &requests[ALL + 1]));
  OK(MPI_Recv_init(&coming, 1, MPI_INT, before, 4, MPI_COMM_WORLD, &requests[ALL + 2]));
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < ALL; ++i) set(&runs[i], round);
    own = rank + round;
    MPI_Request turned[ALL + 3]; /* each rank starts them in another order */
    for (int i = 0; i < ALL + 3; ++i) turned[i] = requests[(i + rank) % (ALL + 3)];
    OK(MPI_Startall(ALL + 3, turned));
    for (int p = 0; p < 8; ++p) {
      for (int i = 0; i < ALL; ++i) {
        const struct run* const run = &runs[(i + rank + round) % ALL];
        if (p < run->partitions && readies(run)) OK(MPI_Pready(p, run->request));
      }
    }
    if (round % 2 == 0) {
      OK(MPI_Waitall(ALL + 3, turned, MPI_STATUSES_IGNORE));
    } else {
      for (int left = ALL + 3; left > 0; --left) {
        int index = -1;
        OK(MPI_Waitany(ALL + 3, turned, &index, MPI_STATUS_IGNORE));
        CHECK(index >= 0);
      }
    }
    for (int i = 0; i < ALL; ++i) compare_all(&runs[i]);
    CHECK(sum == size * (size - 1) / 2 + size * round && coming == before + round);
  }
  for (int i = ALL; i < ALL + 3; ++i) OK(MPI_Request_free(&requests[i]));
  for (int i = 0; i < ALL; ++i) drop(&runs[i]);
  OK(MPI_Info_free(&info));
}

/* A thread waits while others make partitions ready, and ask for them. */
static void* wait_for_it(void* argument) {
  MPI_Request request = *(MPI_Request*)argument;
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  return NULL;
}

static void check_waiting_thread(void) {
  step = "a thread that waits";
  MPI_Info info = hints("1", NULL);
  struct run run = make(ALLREDUCE, 12, 10, MPI_UNSIGNED, MPI_SUM, 1, 1);
  OK(init(&run, info));
  for (int round = 0; round < 30; ++round) {
    pthread_t waiting;
    set(&run, round);
    OK(MPI_Start(&run.request));
    CHECK(pthread_create(&waiting, NULL, wait_for_it, &run.request) == 0);
    if (round % 2 == 0) usleep(300);
    ready_by_threads(&run);
    CHECK(pthread_join(waiting, NULL) == 0);
    compare_all(&run);
  }
  drop(&run);
  OK(MPI_Info_free(&info));
}

/* Of memory that the library writes meanwhile. A program may not do that: ThreadSanitizer need not
 * say so. */
__attribute__((noinline, no_sanitize("thread"))) static unsigned peek(const unsigned* at) {
  return atomic_load_explicit((const atomic_uint*)at, memory_order_relaxed);
}

/* Nobody is in the library while the others' partitions go through the ranks. */
static void check_progress(void) {
  step = "progress while ranks compute";
  struct run run = make(ALLREDUCE, 4, 5000, MPI_UNSIGNED, MPI_SUM, 1, 1);
  OK(init(&run, MPI_INFO_NULL));
  for (int round = 0; round < 3; ++round) {
    set(&run, round);
    OK(MPI_Start(&run.request));
    for (int p = 0; p < run.partitions; ++p) OK(MPI_Pready(p, run.request));
    /* The result comes without a call of MPI. */
    const int last = words_of(&run) - 1;
    while (peek(&run.out[last]) != run.expected[last]) sched_yield();
    OK(MPI_Wait(&run.request, MPI_STATUS_IGNORE));
    compare_all(&run);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  drop(&run);
}

/* Each partition is named once, when it has arrived. */
static void check_names(void) {
  step = "MPIX_Parrived_any";
  MPI_Info info = hints("1", NULL);
  struct run run = make(ALLGATHER, 9, 3, MPI_UNSIGNED, MPI_OP_NULL, 1, 1);
  OK(init(&run, info));
  for (int round = 0; round < 3; ++round) {
    int named[9] = {0}, partition = -1, flag = -1;
    set(&run, round);
    OK(MPI_Start(&run.request));
    OK(MPIX_Parrived_any(run.request, &partition, &flag));
    CHECK(flag == 0 && partition == MPI_UNDEFINED);
    ready_by_threads(&run);
    for (int i = 0; i < 9; ++i) {
      for (flag = 0; !flag; sched_yield()) OK(MPIX_Parrived_any(run.request, &partition, &flag));
      CHECK(partition >= 0 && partition < 9 && named[partition]++ == 0);
      compare(&run, partition);
    }
    OK(MPI_Wait(&run.request, MPI_STATUS_IGNORE));
  }
  drop(&run);
  OK(MPI_Info_free(&info));
}

/* A queue starts rounds, makes partitions ready, and waits. */
static void check_queue(void) {
  step = "a queue";
  ferry_stream stream;
  MPIX_Queue queue;
  open_queue(&stream, &queue);
  struct run run = make(ALLREDUCE, 6, 900, MPI_UNSIGNED, MPI_SUM, 1, 1);
  OK(init(&run, MPI_INFO_NULL));
  for (int round = 0; round < 3; ++round) {
    set(&run, round);
    OK(MPIX_Enqueue_start(queue, &run.request));
    OK(MPIX_Enqueue_pready(queue, 3, 5, run.request));
    OK(MPIX_Enqueue_pready(queue, 0, 2, run.request));
    OK(MPIX_Enqueue_wait(queue, &run.request));
    OK(MPIX_Queue_wait(queue));
    compare_all(&run);
  }
  drop(&run);
  close_queue(&stream, &queue);
}

/* ---- MPIX_Pbuf_prepare ---- */

static void check_prepare(void) {
  step = "MPIX_Pbuf_prepare";
  struct starts {
    atomic_long of[MOST_RANKS];
  } * starts; /* in a file that all ranks map */
  char path[] = "/tmp/ferry_starts_XXXXXX";
  const int file = rank == 0 ? mkstemp(path) : -1;
  CHECK(rank != 0 || (file >= 0 && ftruncate(file, sizeof *starts) == 0));
  OK(MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD));
  FILE* const opened = rank == 0 ? fdopen(file, "r+") : fopen(path, "r+");
  CHECK(opened != NULL);
  starts = mmap(NULL, sizeof *starts, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(opened), 0);
  CHECK(starts != MAP_FAILED);
  struct run run = make(ALLREDUCE, 3, 10, MPI_UNSIGNED, MPI_SUM, 1, 1);
  OK(init(&run, MPI_INFO_NULL));
  for (long round = 1; round < 20; ++round) {
    set(&run, (int)round);
    atomic_store(&starts->of[rank], round);
    OK(MPI_Start(&run.request));
    OK(MPIX_Pbuf_prepare(run.request));
    for (int i = 0; i < size; ++i) CHECK(atomic_load(&starts->of[i]) >= round);
    OK(MPIX_Pbuf_prepare(run.request)); /* once more is no error */
    OK(MPI_Pready_range(0, 2, run.request));
    OK(MPI_Wait(&run.request, MPI_STATUS_IGNORE));
    compare_all(&run);
  }
  drop(&run);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(munmap(starts, sizeof *starts) == 0 && fclose(opened) == 0);
  if (rank == 0) CHECK(unlink(path) == 0);
}

static atomic_int has_come;
static void come(void* argument) {
  (void)argument;
  atomic_store(&has_come, 1);
}

/* A stream that waits in MPIX_Pbuf_prepare can be destroyed. The other ranks, which did not call it
 * in that round, do so in the next. */
static void check_dropped_prepare(void) {
  step = "MPIX_Pbuf_prepare of a stream that is destroyed";
  struct run run = make(ALLREDUCE, 3, 10, MPI_UNSIGNED, MPI_SUM, 1, 1);
  OK(init(&run, MPI_INFO_NULL));
  set(&run, 1);
  OK(MPI_Start(&run.request));
  if (rank == 0) {
    ferry_stream stream;
    MPIX_Queue queue;
    open_queue(&stream, &queue);
    CHECK(ferry_stream_launch(stream, come, NULL) == FERRY_SUCCESS);
    OK(MPIX_Enqueue_pbuf_prepare(queue, &run.request));
    while (!atomic_load(&has_come)) sched_yield();
    CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
    OK(MPIX_Queue_free(&queue));
  }
  for (int round = 1; round <= 3; ++round) {
    OK(MPI_Pready_range(0, 2, run.request));
    OK(MPI_Wait(&run.request, MPI_STATUS_IGNORE));
    compare_all(&run);
    if (round == 3) break;
    set(&run, round + 1);
    OK(MPI_Start(&run.request));
    OK(MPIX_Pbuf_prepare(run.request));
  }
  drop(&run);
}

/* ---- Device memory ---- */

static void put(void* to, const void* from, size_t bytes) {
  CHECK(ferry_memcpy(to, from, bytes) == FERRY_SUCCESS);
}

static void check_device(enum collective kind, int partitions, int count) {
  step = "device memory";
  struct run run = make(kind, partitions, count, MPI_UNSIGNED, MPI_SUM, 1, 1);
  struct run there = run;
  const size_t bytes = sizeof(int) * (size_t)size * words_of(&run);
  there.in = on_device(bytes + 4);
  there.out = on_device(bytes + 4);
  OK(init(&there, MPI_INFO_NULL));
  for (int round = 0; round < 2; ++round) {
    set(&run, round);
    put(there.in, run.in, bytes);
    put(there.out, run.out, bytes);
    OK(MPI_Start(&there.request));
    if (readies(&run)) ready_by_threads(&there);
    OK(MPI_Wait(&there.request, MPI_STATUS_IGNORE));
    put(run.out, there.out, bytes);
    compare_all(&run);
  }
  OK(MPI_Request_free(&there.request));
  CHECK(ferry_free(there.in) == FERRY_SUCCESS && ferry_free(there.out) == FERRY_SUCCESS);
  drop(&run);
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
  CHECK(size <= MOST_RANKS);
  check_all_kinds();
  check_packed_reductions();
  check_freed();
  check_bits(8, 500, 4);
  check_bits(6, 20000, 3);
  check_waits_elsewhere();
  check_several();
  check_waiting_thread();
  check_progress();
  check_names();
  check_queue();
  check_prepare();
  check_dropped_prepare();
  for (int kind = 0; kind < KINDS; ++kind) check_device(kind, 3, 5000);
  check_device(ALLREDUCE, 4, 40000);
  check_device(REDUCE_SCATTER, 4, 40000);
  return end_well("all partitions were right");
}

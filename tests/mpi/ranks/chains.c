/* Collectives on queues of ranks of several nodes, whose NICs may chain them
 * (docs/stream_triggered.md).
 *
 *   chains all ROUNDS            every kind of them, back to back; "all chains were right"
 *   chains beside ROUNDS         the same with messages between the rounds
 *   chains count ROUNDS FERRYCTL each rank prints how often its ferryd has added to a counter of
 * the NIC in ROUNDS rounds of each kind chains die ROUNDS            the last rank dies in that
 * round; the others print "rank R: error CLASS: TEXT" and end with code 3
 */
#include <signal.h>
#include <unistd.h>

#include "tests/mpi/ranks/on_queue.h"

enum { KINDS = 9, MOST_BYTES = 40000 };

/* One collective with a result that every rank knows. */
struct chain {
  const char* name;
  int root, count;
  long *in, *out;
  long round, wrong;
  MPI_Request request;
};

static struct chain chains[KINDS];
static ferry_stream stream;
static MPIX_Queue queue;
static MPI_Datatype matrix;
static MPI_Op product;
static long dies_in = -1;

static long word(long round, int of, int i) { return 100000 * round + 1000 * of + i; }

/* Products of 2x2 matrices depend on the order. Numbers stay small: they are taken modulo 97. */
static void multiply(void* left, void* right, int* length, MPI_Datatype* type) {
  (void)type;
  for (int k = 0; k < *length; ++k) {
    const int* const a = (const int*)left + 4 * k;
    int* const b = (int*)right + 4 * k;
    const int c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
                      a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
    for (int i = 0; i < 4; ++i) b[i] = c[i] % 97;
  }
}

static void matrix_of(int* entries, long round, int of) {
  for (int i = 0; i < 4; ++i) entries[i] = (int)((7 * round + 5 * of + 3 * i + 1) % 97);
}

/* Some ranks come late to some rounds. */
static void dawdle(long round, unsigned kind) {
  const unsigned hash = ((unsigned)round * 2654435761u ^ (unsigned)rank * 40503u ^ kind) >> 7;
  if (hash % 16 == 0) usleep(300);
}

static void prepare(void* argument) {
  struct chain* const chain = argument;
  if (chain->round == dies_in && rank == size - 1) raise(SIGKILL);
  dawdle(chain->round, (unsigned)(chain - chains));
  switch (chain - chains) {
    case 1:
    case 2:
    case 3: /* broadcasts */
      for (int i = 0; i < chain->count; ++i) {
        chain->out[i] = rank == chain->root ? word(chain->round, chain->root, i) : -1;
      }
      break;
    case 4: /* an allgather */
      for (int i = 0; i < chain->count; ++i) chain->in[i] = word(chain->round, rank, i);
      break;
    case 5: /* in place */
      for (int i = 0; i < chain->count; ++i) {
        chain->out[rank * chain->count + i] = word(chain->round, rank, i);
      }
      break;
    case 6:
      chain->in[0] = word(chain->round, rank, 0);
      break;
    case 7:
      ((double*)chain->in)[0] = (double)word(chain->round, (rank + (int)chain->round) % size, 0);
      break;
    case 8:
      matrix_of((int*)chain->in, chain->round, rank);
      break;
    default:
      break;
  }
}

static void check(void* argument) {
  struct chain* const chain = argument;
  switch (chain - chains) {
    case 1:
    case 2:
    case 3:
      for (int i = 0; i < chain->count; ++i) {
        chain->wrong += chain->out[i] != word(chain->round, chain->root, i);
      }
      break;
    case 4:
    case 5:
      for (int i = 0; i < size * chain->count; ++i) {
        chain->wrong += chain->out[i] != word(chain->round, i / chain->count, i % chain->count);
        chain->out[i] = -1;
      }
      break;
    case 6:
      chain->wrong += chain->out[0] != size * word(chain->round, 0, 0) + 500L * size * (size - 1);
      break;
    case 7:
      chain->wrong += ((double*)chain->out)[0] != (double)word(chain->round, size - 1, 0);
      break;
    case 8: {
      int expected[4], factor[4], one = 1;
      matrix_of(expected, chain->round, size - 1);
      for (int of = size - 2; of >= 0; --of) {
        matrix_of(factor, chain->round, of);
        multiply(factor, expected, &one, NULL);
      }
      chain->wrong += memcmp(chain->out, expected, sizeof expected) != 0;
      break;
    }
    default:
      break;
  }
  ++chain->round;
}

static long* network_memory(size_t bytes) {
  void* memory = NULL;
  OK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory));
  memset(memory, 0, bytes);
  return memory;
}

static void make_chains(void) {
  step = "making the collectives";
  static const char* const names[KINDS] = {
      "barrier",    "bcast of the heap", "bcast of ordinary memory",
      "long bcast", "allgather",         "allgather in place",
      "sum",        "maximum",           "product"};
  for (int k = 0; k < KINDS; ++k) {
    struct chain* const chain = &chains[k];
    chain->name = names[k];
    chain->root = k == 1 ? size - 1 : k == 3 ? size / 2 : 0;
    chain->count = k == 1   ? 1
                   : k == 2 ? 500
                   : k == 3 ? MOST_BYTES / (int)sizeof(long)
                   : k < 6  ? 3
                            : 1;
    const size_t bytes = (size_t)(chain->count * size + 1) * sizeof(long) * (k == 8 ? 4 : 1);
    chain->in = calloc(1, bytes);
    chain->out = k == 1 || k == 3 || k == 5 ? network_memory(bytes) : calloc(1, bytes);
    CHECK(chain->in != NULL && chain->out != NULL);
  }
  OK(MPI_Type_contiguous(4, MPI_INT, &matrix));
  OK(MPI_Type_commit(&matrix));
  OK(MPI_Op_create(multiply, 0, &product));
  const MPI_Comm all = MPI_COMM_WORLD;
  const MPI_Info none = MPI_INFO_NULL;
  OK(MPI_Barrier_init(all, none, &chains[0].request));
  for (int k = 1; k < 4; ++k) {
    OK(MPI_Bcast_init(chains[k].out, chains[k].count, MPI_LONG, chains[k].root, all, none,
                      &chains[k].request));
  }
  OK(MPI_Allgather_init(chains[4].in, 3, MPI_LONG, chains[4].out, 3, MPI_LONG, all, none,
                        &chains[4].request));
  OK(MPI_Allgather_init(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, chains[5].out, 3, MPI_LONG, all, none,
                        &chains[5].request));
  OK(MPI_Allreduce_init(chains[6].in, chains[6].out, 1, MPI_LONG, MPI_SUM, all, none,
                        &chains[6].request));
  OK(MPI_Allreduce_init(chains[7].in, chains[7].out, 1, MPI_DOUBLE, MPI_MAX, all, none,
                        &chains[7].request));
  OK(MPI_Allreduce_init(chains[8].in, chains[8].out, 1, matrix, product, all, none,
                        &chains[8].request));
  MPI_Request requests[KINDS];
  for (int k = 0; k < KINDS; ++k) requests[k] = chains[k].request;
  OK(MPIX_Matchall(KINDS, requests));
}

static void free_chains(void) {
  for (int k = 0; k < KINDS; ++k) {
    if (chains[k].wrong != 0)
      fprintf(stderr, "%s: %ld are wrong\n", chains[k].name, chains[k].wrong);
    CHECK(chains[k].wrong == 0);
    OK(MPI_Request_free(&chains[k].request));
    free(chains[k].in);
    if (k == 1 || k == 3 || k == 5) {
      OK(MPI_Free_mem(chains[k].out));
    } else {
      free(chains[k].out);
    }
  }
  OK(MPI_Op_free(&product));
  OK(MPI_Type_free(&matrix));
}

/* Returns the first error. */
static int enqueue(struct chain* chain) {
  CHECK(ferry_stream_launch(stream, prepare, chain) == FERRY_SUCCESS);
  const int error = MPIX_Enqueue_start(queue, &chain->request);
  if (error != MPI_SUCCESS) return error;
  OK(MPIX_Enqueue_wait(queue, &chain->request));
  CHECK(ferry_stream_launch(stream, check, chain) == FERRY_SUCCESS);
  return MPI_SUCCESS;
}

/* Nothing waits for the host in between. */
static void back_to_back(int rounds) {
  step = "back to back";
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < KINDS; ++k) OK(enqueue(&chains[k]));
  }
  OK(MPIX_Queue_wait(queue));
}

/* Several at once, started together and waited for in another order, beside messages and a
 * collective of the host's. */
static void beside_messages(int rounds) {
  step = "beside messages";
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < KINDS; ++k) {
      CHECK(ferry_stream_launch(stream, prepare, &chains[k]) == FERRY_SUCCESS);
      OK(MPIX_Enqueue_start(queue, &chains[k].request));
    }
    check_ring(MPI_COMM_WORLD, round);
    if (round % 4 == 0) OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int k = KINDS - 1; k >= 0; --k) {
      OK(MPIX_Enqueue_wait(queue, &chains[k].request));
      CHECK(ferry_stream_launch(stream, check, &chains[k]) == FERRY_SUCCESS);
    }
    if (round % 3 == 0) OK(MPIX_Queue_wait(queue));
  }
  OK(MPIX_Queue_wait(queue));
}

/* ---- Work of the daemons ---- */

static unsigned long long additions(const char* ferryctl) {
  char command[4096], text[65536];
  CHECK(snprintf(command, sizeof command, "%s nics --json", ferryctl) < (int)sizeof command);
  FILE* const out = popen(command, "r");
  CHECK(out != NULL);
  text[fread(text, 1, sizeof text - 1, out)] = 0;
  CHECK(pclose(out) == 0);
  const char* const found = strstr(text, "\"deferred_rings\": ");
  CHECK(found != NULL);
  return strtoull(found + strlen("\"deferred_rings\": "), NULL, 10);
}

static void count(int rounds, const char* ferryctl) {
  back_to_back(4); /* the NICs are ready then */
  OK(MPI_Barrier(MPI_COMM_WORLD));
  unsigned long long first = additions(ferryctl);
  for (int k = 0; k < KINDS; ++k) {
    step = chains[k].name;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 0; round < rounds; ++round) OK(enqueue(&chains[k]));
    OK(MPIX_Queue_wait(queue));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const unsigned long long last = additions(ferryctl);
    printf("rank %d: %s: %llu additions in %d rounds\n", rank, chains[k].name, last - first,
           rounds);
    first = last;
    fflush(stdout);
  }
}

/* ---- A death ---- */

static int die(long round) {
  step = "a death";
  dies_in = round;
  int error = MPI_SUCCESS;
  for (int i = 0; i <= round + 1 && error == MPI_SUCCESS; ++i) {
    for (int k = 0; k < KINDS && error == MPI_SUCCESS; ++k) error = enqueue(&chains[k]);
  }
  const int ended = MPIX_Queue_wait(queue);
  if (error == MPI_SUCCESS) error = ended;
  CHECK(error != MPI_SUCCESS);
  char text[MPI_MAX_ERROR_STRING];
  int length = 0, class = 0;
  OK(MPI_Error_class(error, &class));
  OK(MPI_Error_string(error, text, &length));
  printf("rank %d: error %d: %s\n", rank, class, text);
  fflush(stdout);
  return 3;
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  CHECK(argc >= 3);
  const int rounds = atoi(argv[2]);
  open_queue(&stream, &queue);
  make_chains();
  if (strcmp(argv[1], "die") == 0) _exit(die(rounds));
  if (strcmp(argv[1], "count") == 0) {
    CHECK(argc == 4);
    count(rounds, argv[3]);
  } else if (strcmp(argv[1], "beside") == 0) {
    beside_messages(rounds);
  } else {
    back_to_back(rounds);
  }
  free_chains();
  close_queue(&stream, &queue);
  return end_well("all chains were right");
}

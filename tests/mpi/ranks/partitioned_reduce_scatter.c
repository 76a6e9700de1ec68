/* Partitioned reduce-scatters with blocks of any sizes, against the plain one, and the partitioned
 * barrier. Any number of ranks.
 */
#include "tests/mpi/ranks/partitioned_runs.h"

enum { WORDS = 3 };

/* Elements with two words behind them that are not theirs. */
static MPI_Datatype gapped;

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

static void add_gapped(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((unsigned*)inout)[WORDS * i] += ((unsigned*)in)[WORDS * i];
}

struct scattered {
  MPI_Datatype type;
  MPI_Op op;
  int words; /* of an element */
  MPI_Count each[MOST_RANKS];
  int counts[MOST_RANKS], first[MOST_RANKS + 1]; /* in words */
  int is_equal;
};

/* In place, each partition's elements are written just before it is readied: were results put in
 * their place meanwhile, they would be lost. */
static void ready_late(const struct scattered* all, struct run* run) {
  for (int p = 0; p < run->partitions; ++p) {
    for (int i = 0; i < size; ++i) {
      const int words = (int)all->each[i] * all->words, at = all->first[i] + p * words;
      memcpy(run->out + at, run->in + at, sizeof(unsigned) * (size_t)words);
    }
    OK(MPI_Pready(p, run->request));
    if (p % 3 == 1) OK(MPI_Barrier(MPI_COMM_WORLD)); /* by now earlier ones may be over */
    if (!all->is_equal && size > 1 && p + 1 < run->partitions) CHECK(!has_arrived(run, 0));
  }
}

static void check_scattered(struct scattered* all, int partitions, int scale, int is_equal,
                            const char* least_bytes, const char* most_units) {
  step = "MPIX_Preduce_scatter_init";
  MPI_Info info = hints(least_bytes, most_units);
  struct run run = {.partitions = partitions, .request = MPI_REQUEST_NULL};
  all->first[0] = 0;
  all->is_equal = is_equal;
  for (int i = 0; i < size; ++i) {
    all->each[i] = is_equal ? scale : scale * ((i + 1) % 3);
    all->counts[i] = (int)all->each[i] * partitions;
    all->first[i + 1] = all->first[i] + all->counts[i] * all->words;
  }
  const size_t bytes = sizeof(unsigned) * (size_t)(all->first[size] + 1);
  const size_t own = sizeof(unsigned) * (size_t)(all->counts[rank] * all->words);
  run.in = memory(bytes);
  run.out = memory(bytes);
  run.expected = memory(bytes);
  for (int in_place = 0; in_place < 2; ++in_place) {
    OK(MPIX_Preduce_scatter_init(in_place ? MPI_IN_PLACE : run.in, run.out, partitions, all->each,
                                 all->type, all->op, MPI_COMM_WORLD, info, &run.request));
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < all->first[size]; ++i) {
        run.in[i] = (unsigned)(1 + rank * 7919 + round * 104729 + i * 3);
      }
      memset(run.expected, 0xee, bytes);
      memset(run.out, 0xee, bytes);
      if (in_place && all->words == WORDS) memcpy(run.expected, run.in, bytes);
      OK(MPI_Reduce_scatter(run.in, run.expected, all->counts, all->type, all->op, MPI_COMM_WORLD));
      const int late = in_place && round == 3 && least_bytes != NULL && most_units == NULL;
      if (in_place && !late) memcpy(run.out, run.in, bytes);
      OK(MPI_Start(&run.request));
      if (late) ready_late(all, &run);
      if (!late && round % 3 == 0) ready_by_threads(&run);
      if (round % 3 == 1) ready_alone(&run);
      if (round % 3 == 2) ready_ranges(&run);
      for (int p = 0; p < partitions && round == 2; ++p) {
        while (!has_arrived(&run, p)) sched_yield();
      }
      OK(MPI_Wait(&run.request, MPI_STATUS_IGNORE));
      CHECK(memcmp(run.out, run.expected, own) == 0);
    }
    OK(MPI_Request_free(&run.request));
  }
  drop(&run);
  OK(MPI_Info_free(&info));
}

static void check_reduce_scatter(void) {
  MPI_Datatype pair;
  MPI_Op own, of_gapped;
  OK(MPI_Type_contiguous(2, MPI_UNSIGNED, &pair));
  OK(MPI_Type_commit(&pair));
  OK(MPI_Op_create(compose, 0, &own));
  OK(MPI_Op_create(add_gapped, 1, &of_gapped));
  for (int is_equal = 0; is_equal < 2; ++is_equal) {
    struct scattered sums = {.type = MPI_UNSIGNED, .op = MPI_SUM, .words = 1};
    check_scattered(&sums, 1, 5, is_equal, NULL, NULL);
    check_scattered(&sums, 8, 3, is_equal, "1", NULL);
    check_scattered(&sums, 8, 3000, is_equal, NULL, NULL);
    check_scattered(&sums, 70, 2, is_equal, "1", "5");
    struct scattered maps = {.type = pair, .op = own, .words = 2};
    check_scattered(&maps, 6, 40, is_equal, "1", NULL);
    struct scattered apart = {.type = gapped, .op = of_gapped, .words = WORDS};
    check_scattered(&apart, 6, 20, is_equal, "1", "3");
  }
  OK(MPI_Op_free(&own));
  OK(MPI_Op_free(&of_gapped));
  OK(MPI_Type_free(&pair));
}

/* No partition has arrived before rank 0 has readied it, which comes last. */
static void check_barrier(void) {
  step = "MPIX_Pbarrier_init";
  enum { PARTITIONS = 5 };
  struct run run = {.partitions = PARTITIONS, .request = MPI_REQUEST_NULL};
  OK(MPIX_Pbarrier_init(PARTITIONS, MPI_COMM_WORLD, MPI_INFO_NULL, &run.request));
  for (int round = 0; round < 3; ++round) {
    OK(MPI_Start(&run.request));
    if (rank != 0) ready_by_threads(&run);
    for (int p = 0; p < PARTITIONS; ++p) {
      const int late = (p + round) % PARTITIONS;
      CHECK(!has_arrived(&run, late));
      OK(MPI_Barrier(MPI_COMM_WORLD));
      if (rank == 0) OK(MPI_Pready(late, run.request));
      while (!has_arrived(&run, late)) sched_yield();
      if (p + 1 < PARTITIONS) CHECK(!has_arrived(&run, (late + 1) % PARTITIONS));
      OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Wait(&run.request, MPI_STATUS_IGNORE));
  }
  OK(MPI_Request_free(&run.request));
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
  CHECK(size <= MOST_RANKS);
  OK(MPI_Type_create_resized(MPI_UNSIGNED, 0, WORDS * sizeof(unsigned), &gapped));
  OK(MPI_Type_commit(&gapped));
  check_reduce_scatter();
  check_barrier();
  OK(MPI_Type_free(&gapped));
  return end_well("all sums were right");
}

/* Schedules of the program's own (MPIX_Pschedule_init): a ring, recursive doubling, a tree, and
 * others, against the plain collectives that they make. Any number of ranks.
 */
#include "tests/mpi/ranks/partitioned_runs.h"

/* ---- Schedules of the program's own ---- */

enum { MOST_STEPS = 2 * MOST_RANKS };

/* A schedule in which each step has at most one message each way. */
struct plan {
  int steps, pieces;
  int sources[MOST_STEPS], arriving[MOST_STEPS], destinations[MOST_STEPS], leaving[MOST_STEPS];
  MPIX_Pstep all[MOST_STEPS];
};

static void add_step(struct plan* plan, int source, int arriving, MPI_Op op, int destination,
                     int leaving) {
  const int i = plan->steps++;
  CHECK(i < MOST_STEPS);
  plan->sources[i] = source;
  plan->arriving[i] = arriving;
  plan->destinations[i] = destination;
  plan->leaving[i] = leaving;
  const MPIX_Pstep step = {source >= 0,      &plan->sources[i],      &plan->arriving[i], op,
                           destination >= 0, &plan->destinations[i], &plan->leaving[i]};
  plan->all[i] = step;
}

/* The paper's: reduce-scatter, then allgather, around a ring. R leaves and A arrives. */
static void plan_ring(struct plan* plan, MPI_Op op) {
  plan->steps = 0;
  plan->pieces = size;
  for (int i = 0; i < 2 * (size - 1); ++i) {
    add_step(plan, before, (rank + 2 * size - i - 1) % size, i < size - 1 ? op : MPI_OP_NULL, next,
             (rank + 2 * size - i) % size);
  }
}

/* Of a power of two. */
static void plan_doubling(struct plan* plan, MPI_Op op) {
  plan->steps = 0;
  plan->pieces = 1;
  for (int mask = 1; mask < size; mask *= 2) add_step(plan, rank ^ mask, 0, op, rank ^ mask, 0);
}

/* From rank 0, along a binomial tree. */
static void plan_tree(struct plan* plan) {
  plan->steps = 0;
  plan->pieces = 1;
  int mask = 1;
  while (mask < size && (rank & mask) == 0) mask *= 2;
  if (rank != 0) add_step(plan, rank - mask, 0, MPI_OP_NULL, -1, 0);
  for (mask /= 2; mask > 0; mask /= 2) {
    if (rank + mask < size) add_step(plan, -1, 0, MPI_OP_NULL, rank + mask, 0);
  }
}

/* Runs a plan that gives what a plain collective does. */
static void run_plan(const struct plan* plan, enum collective kind, int partitions, int count,
                     MPI_Op op, int in_place, MPI_Info info) {
  const int one_by_one = info == MPI_INFO_NULL && partitions <= 64;
  struct run run = make(kind, partitions, count, MPI_UNSIGNED, op, 1, 1);
  OK(MPIX_Pschedule_init(in_place ? MPI_IN_PLACE : run.in, run.out, partitions, count, MPI_UNSIGNED,
                         plan->pieces, plan->steps, plan->all, MPI_COMM_WORLD, info, &run.request));
  for (int round = 0; round < 3; ++round) {
    set(&run, round);
    if (in_place) memcpy(run.out, run.in, sizeof(int) * words_of(&run));
    OK(MPI_Start(&run.request));
    if (round == 0) ready_by_threads(&run);
    if (round == 1) ready_alone(&run);
    for (int p = 0; round == 2 && p < partitions; ++p) {
      OK(MPI_Pready(p, run.request));
      int flag = 0;
      while (one_by_one && !flag) {
        OK(MPI_Parrived(run.request, p, &flag));
        sched_yield();
      }
      if (one_by_one) compare(&run, p);
    }
    OK(MPI_Wait(&run.request, MPI_STATUS_IGNORE));
    compare_all(&run);
  }
  drop(&run);
}

static void check_schedules(void) {
  static const int shapes[][2] = {{1, 1000}, {7, 13}, {100, 3}, {3, 0}, {4, 2}, {5, 20000}};
  static struct plan plan;
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i) {
    for (int in_place = 0; in_place < 2; ++in_place) {
      const int p = shapes[i][0], n = shapes[i][1];
      MPI_Info info = i % 2 == 0 ? MPI_INFO_NULL : hints("64", NULL);
      step = "a ring";
      plan_ring(&plan, MPI_SUM);
      run_plan(&plan, ALLREDUCE, p, n, MPI_SUM, in_place, info);
      step = "recursive doubling";
      plan_doubling(&plan, MPI_BXOR);
      if ((size & (size - 1)) == 0) {
        run_plan(&plan, ALLREDUCE, p, n, MPI_BXOR, in_place, info);
      }
      step = "a tree";
      plan_tree(&plan);
      run_plan(&plan, BCAST, p, n, MPI_OP_NULL, in_place, info);
      if (info != MPI_INFO_NULL) OK(MPI_Info_free(&info));
    }
  }
}

/* Elements without bytes, of which nothing is moved. */
static void check_nothing(void) {
  step = "a schedule of nothing";
  static struct plan plan;
  MPI_Datatype nothing;
  MPI_Request request;
  int in = rank, out = -1;
  OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
  OK(MPI_Type_commit(&nothing));
  plan_ring(&plan, MPI_OP_NULL);
  OK(MPIX_Pschedule_init(&in, &out, 3, 5, nothing, plan.pieces, plan.steps, plan.all,
                         MPI_COMM_WORLD, MPI_INFO_NULL, &request));
  OK(MPI_Start(&request));
  OK(MPI_Pready_range(0, 2, request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(out == -1);
  OK(MPI_Request_free(&request));
  OK(MPI_Type_free(&nothing));
}

/* Steps with several messages, and different operations. */
static void check_fans(void) {
  step = "a schedule with fans";
  enum { N = 6 };
  int peers[MOST_RANKS], zeros[MOST_RANKS] = {0}, others = 0;
  for (int i = 0; i < size; ++i) {
    if (i != rank) peers[others++] = i;
  }
  const int others_are_leaves = rank == 0, root = 0;
  /* All send to rank 0, which sums, and sends the sum back; then the maximum of all ranks with it,
   * which is the sum, for all have it. */
  const MPIX_Pstep steps[3] = {{others_are_leaves ? others : 0, peers, zeros, MPI_SUM,
                                others_are_leaves ? 0 : 1, &root, zeros},
                               {others_are_leaves ? 0 : 1, &root, zeros, MPI_OP_NULL,
                                others_are_leaves ? others : 0, peers, zeros},
                               {others, peers, zeros, MPI_MAX, others, peers, zeros}};
  int in[2 * N] = {0}, out[2 * N];
  MPI_Request request;
  OK(MPIX_Pschedule_init(in, out, 2, N, MPI_INT, 1, 3, steps, MPI_COMM_WORLD, MPI_INFO_NULL,
                         &request));
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 2 * N; ++i) in[i] = rank * 10 + i + round;
    OK(MPI_Start(&request));
    OK(MPI_Pready_range(0, 1, request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * N; ++i) {
      CHECK(out[i] == size * (i + round) + 5 * size * (size - 1));
    }
  }
  OK(MPI_Request_free(&request));
}

/* ---- Mistakes ---- */

static int words[64], result[64];

static void check_schedule_mistakes(void) {
  step = "wrong schedules";
  const int zero = 0, one = 1, far = size;
  const MPIX_Pstep good = {1, &before, &zero, MPI_SUM, 1, &next, &zero};
  const struct {
    MPIX_Pstep step;
    int error_class;
    const char* text;
  } wrong[] = {
      {{1, &far, &zero, MPI_SUM, 0, NULL, NULL}, MPI_ERR_RANK, "step 1: it names rank"},
      {{0, NULL, NULL, MPI_SUM, 1, &far, &zero}, MPI_ERR_RANK, "step 1: it names rank"},
      {{1, &zero, &one, MPI_SUM, 0, NULL, NULL}, MPI_ERR_ARG, "it names piece 1 of 1"},
      {{0, NULL, NULL, MPI_SUM, 1, &zero, &one}, MPI_ERR_ARG, "it names piece 1 of 1"},
      {{-1, &zero, &zero, MPI_SUM, 0, NULL, NULL}, MPI_ERR_ARG, "indegree is -1"},
      {{0, NULL, NULL, MPI_SUM, -2, NULL, NULL}, MPI_ERR_ARG, "outdegree is -2"},
      {{1, NULL, &zero, MPI_SUM, 0, NULL, NULL}, MPI_ERR_ARG, "are null"},
      {{1, &zero, &zero, MPI_NO_OP, 0, NULL, NULL}, MPI_ERR_OP, "step 1"},
  };
  MPI_Request request;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    const MPIX_Pstep both[2] = {good, wrong[i].step};
    expect_error(MPIX_Pschedule_init(words, result, 1, 4, MPI_INT, 1, 2, both, MPI_COMM_WORLD,
                                     MPI_INFO_NULL, &request),
                 wrong[i].error_class, wrong[i].text);
  }
  expect_error(MPIX_Pschedule_init(words, result, 1, 4, MPI_INT, 0, 1, &good, MPI_COMM_WORLD,
                                   MPI_INFO_NULL, &request),
               MPI_ERR_ARG, "pieces is 0");
  expect_error(MPIX_Pschedule_init(words, result, 1, 4, MPI_INT, 1, -1, &good, MPI_COMM_WORLD,
                                   MPI_INFO_NULL, &request),
               MPI_ERR_ARG, "steps is -1");
  expect_error(MPIX_Pschedule_init(words, result, 1, 4, MPI_INT, 1, 1, NULL, MPI_COMM_WORLD,
                                   MPI_INFO_NULL, &request),
               MPI_ERR_ARG, "schedule is null");
}

static void check_misfit(void) {
  step = "steps that do not fit";
  if (size == 1) return;
  const int piece = rank == size - 1 ? 0 : 1, where = 1;
  const MPIX_Pstep exchange = {1, &before, &where, MPI_SUM, 1, &next, &piece};
  MPI_Request request;
  OK(MPIX_Pschedule_init(words, result, 1, 3, MPI_INT, 2, 1, &exchange, MPI_COMM_WORLD,
                         MPI_INFO_NULL, &request));
  OK(MPI_Start(&request));
  OK(MPI_Pready(0, request));
  const int error = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 0) expect_error(error, MPI_ERR_TRUNCATE, "sent");
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Request_free(&request));
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
  CHECK(size <= MOST_RANKS);
  check_schedules();
  check_nothing();
  check_fans();
  check_schedule_mistakes();
  check_misfit();
  return end_well("all schedules were right");
}

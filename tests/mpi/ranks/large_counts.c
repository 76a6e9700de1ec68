/* The collectives that move data with counts as MPI_Count, and their forms with int, on any number
 * of ranks. */
#include "tests/mpi/ranks/forms.h"

enum { block = 5, most = 16 };

static const int root = 0;
static int sent[most * block], got[most * block];

static int word(int from, int to, int i) { return from * 10000 + to * 100 + i; }

/* The length of rank r's part in a v form. */
static int length_of(int r) { return r % 2 == 0 ? block : 2; }

static void prepare(void) {
  for (int i = 0; i < size * block; ++i) {
    sent[i] = word(rank, i / block, i % block);
    got[i] = -1;
  }
}
static void prepare_bcast(void) {
  prepare();
  if (rank == root) memcpy(got, sent, block * sizeof(int));
}

/* Expects block `at` to be from `from`, where it lay at `to`. */
static void expect(int at, int from, int to, int length) {
  for (int i = 0; i < block; ++i) {
    CHECK(got[at * block + i] == (i < length ? word(from, to, i) : -1));
  }
}

static void judge_bcast(void) { expect(0, root, 0, block); }
static void judge_scatter(void) { expect(0, root, rank, block); }
static void judge_scatterv(void) { expect(0, root, rank, length_of(rank)); }
static void judge_allgather(void) {
  for (int r = 0; r < size; ++r) expect(r, r, 0, block);
}
static void judge_allgatherv(void) {
  for (int r = 0; r < size; ++r) expect(r, r, 0, length_of(r));
}
static void judge_gather(void) {
  if (rank == root) judge_allgather();
}
static void judge_gatherv(void) {
  if (rank == root) judge_allgatherv();
}
static void judge_alltoall(void) {
  for (int r = 0; r < size; ++r) expect(r, r, rank, block);
}
/* Both directions between two ranks have the same length. */
static void judge_alltoallv(void) {
  for (int r = 0; r < size; ++r) expect(r, r, rank, length_of(r + rank));
}

static void equal_blocks(void) {
  MPI_Comm comm = MPI_COMM_WORLD;
  ALL_FORMS(prepare_bcast, judge_bcast, Bcast, Ibcast, got, block, MPI_INT, root, comm);
  ALL_FORMS(prepare, judge_gather, Gather, Igather, sent, block, MPI_INT, got, block, MPI_INT, root,
            comm);
  ALL_FORMS(prepare, judge_scatter, Scatter, Iscatter, sent, block, MPI_INT, got, block, MPI_INT,
            root, comm);
  ALL_FORMS(prepare, judge_allgather, Allgather, Iallgather, sent, block, MPI_INT, got, block,
            MPI_INT, comm);
  ALL_FORMS(prepare, judge_alltoall, Alltoall, Ialltoall, sent, block, MPI_INT, got, block, MPI_INT,
            comm);
}

static void blocks_of_their_own(void) {
  int lengths[most], places[most], pairs[most], bytes[most];
  MPI_Count large_lengths[most], large_pairs[most];
  MPI_Aint large_places[most], large_bytes[most];
  MPI_Datatype types[most];
  MPI_Comm comm = MPI_COMM_WORLD;
  for (int r = 0; r < size; ++r) {
    large_lengths[r] = lengths[r] = length_of(r);
    large_pairs[r] = pairs[r] = length_of(r + rank);
    large_places[r] = places[r] = r * block;
    large_bytes[r] = bytes[r] = r * block * (int)sizeof(int);
    types[r] = MPI_INT;
  }
  SMALL_FORMS(prepare, judge_gatherv, Gatherv, Igatherv, sent, lengths[rank], MPI_INT, got, lengths,
              places, MPI_INT, root, comm);
  LARGE_FORMS(prepare, judge_gatherv, Gatherv, Igatherv, sent, lengths[rank], MPI_INT, got,
              large_lengths, large_places, MPI_INT, root, comm);
  SMALL_FORMS(prepare, judge_scatterv, Scatterv, Iscatterv, sent, lengths, places, MPI_INT, got,
              lengths[rank], MPI_INT, root, comm);
  LARGE_FORMS(prepare, judge_scatterv, Scatterv, Iscatterv, sent, large_lengths, large_places,
              MPI_INT, got, lengths[rank], MPI_INT, root, comm);
  SMALL_FORMS(prepare, judge_allgatherv, Allgatherv, Iallgatherv, sent, lengths[rank], MPI_INT, got,
              lengths, places, MPI_INT, comm);
  LARGE_FORMS(prepare, judge_allgatherv, Allgatherv, Iallgatherv, sent, lengths[rank], MPI_INT, got,
              large_lengths, large_places, MPI_INT, comm);
  SMALL_FORMS(prepare, judge_alltoallv, Alltoallv, Ialltoallv, sent, pairs, places, MPI_INT, got,
              pairs, places, MPI_INT, comm);
  LARGE_FORMS(prepare, judge_alltoallv, Alltoallv, Ialltoallv, sent, large_pairs, large_places,
              MPI_INT, got, large_pairs, large_places, MPI_INT, comm);
  SMALL_FORMS(prepare, judge_alltoallv, Alltoallw, Ialltoallw, sent, pairs, bytes, types, got,
              pairs, bytes, types, comm);
  LARGE_FORMS(prepare, judge_alltoallv, Alltoallw, Ialltoallw, sent, large_pairs, large_bytes,
              types, got, large_pairs, large_bytes, types, comm);
}

static void mistakes(void) {
  step = "mistakes";
  const MPI_Count negative = -1, too_many = (MPI_Count)1 << 62;
  MPI_Request request = MPI_REQUEST_NULL;
  expect_error(MPI_Bcast_c(got, negative, MPI_INT, 0, MPI_COMM_SELF), MPI_ERR_COUNT, "-1");
  expect_error(MPI_Ibcast_c(got, negative, MPI_INT, 0, MPI_COMM_SELF, &request), MPI_ERR_COUNT,
               "-1");
  expect_error(MPI_Allreduce_c(sent, got, too_many, MPI_INT, MPI_SUM, MPI_COMM_SELF), MPI_ERR_COUNT,
               "4611686018427387904");
  CHECK(request == MPI_REQUEST_NULL);
}

int main(void) {
  begin(NULL, NULL);
  CHECK(size <= most);
  equal_blocks();
  blocks_of_their_own();
  mistakes();
  return end_well("all large counts were right");
}

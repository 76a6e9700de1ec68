/* Partitioned collectives whose blocks have sizes and places of their own, and those among
 * neighbours, against the plain ones: in place and not, with gaps in types and between blocks,
 * readied in any order. Any number of ranks.
 *
 * `partitioned_blocks device`: in device memory. `partitioned_blocks compared`: for a job whose
 * ranks compare their calls. `partitioned_blocks dies`: the last rank dies in a round.
 */
#include <unistd.h>

#include "tests/mpi/ranks/partitioned_runs.h"

enum form {
  GATHERV,
  SCATTERV,
  ALLGATHERV,
  ALLTOALLV,
  ALLTOALLW,
  NEIGHBOR_ALLGATHER,
  NEIGHBOR_ALLTOALL,
  NEIGHBOR_ALLGATHERV,
  NEIGHBOR_ALLTOALLV,
  NEIGHBOR_ALLTOALLW,
  FORMS
};
static const char* const form_names[FORMS] = {"MPIX_Pgatherv_init",
                                              "MPIX_Pscatterv_init",
                                              "MPIX_Pallgatherv_init",
                                              "MPIX_Palltoallv_init",
                                              "MPIX_Palltoallw_init",
                                              "MPIX_Pneighbor_allgather_init",
                                              "MPIX_Pneighbor_alltoall_init",
                                              "MPIX_Pneighbor_allgatherv_init",
                                              "MPIX_Pneighbor_alltoallv_init",
                                              "MPIX_Pneighbor_alltoallw_init"};

enum { MOST_EDGES = 2 * MOST_RANKS + 2, MOST_EACH = 2, WORDS = 3 };

/* Elements with two words behind them that are not theirs. */
static MPI_Datatype gapped;
static int is_on_device;

/* The blocks of one side: those of a partition, and as the plain collective has them. */
struct side {
  int degree, ranks[MOST_EDGES];
  MPI_Count each[MOST_EDGES];
  MPI_Aint displs[MOST_EDGES]; /* as the form wants them */
  int counts[MOST_EDGES], places[MOST_EDGES];
  MPI_Datatype types[MOST_EDGES];
  int first[MOST_EDGES], words[MOST_EDGES]; /* in the buffer; of an element */
};

struct blocks {
  enum form form;
  int root, in_place, room; /* words of a block, and of what is beside it */
  MPI_Datatype type;
  MPI_Comm comm;
  struct side send, receive;
  int own; /* elements of this rank's partition, of those with one run */
  struct run run;
  void *in, *out; /* what the calls get: the run's, or device memory */
};

static size_t bytes_of(const struct blocks* blocks) {
  return sizeof(unsigned) * (size_t)(MOST_EDGES * blocks->room);
}
static void copy(void* to, const void* from, size_t bytes) {
  if (to != from) CHECK(ferry_memcpy(to, from, bytes) == FERRY_SUCCESS);
}

static int is_among_neighbours(enum form form) { return form >= NEIGHBOR_ALLGATHER; }
static int is_w(enum form form) { return form == ALLTOALLW || form == NEIGHBOR_ALLTOALLW; }
static int is_equal(enum form form) {
  return form == NEIGHBOR_ALLGATHER || form == NEIGHBOR_ALLTOALL;
}
static int sends_blocks(enum form form) {
  return form == SCATTERV || form == ALLTOALLV || form == ALLTOALLW || form == NEIGHBOR_ALLTOALL ||
         form == NEIGHBOR_ALLTOALLV || form == NEIGHBOR_ALLTOALLW;
}
static int receives_blocks(enum form form) { return form != SCATTERV; }

/* How many elements of a partition go from one rank to another: as many the other way. */
static int along(const struct blocks* blocks, int from, int to) {
  if (is_equal(blocks->form)) return MOST_EACH;
  if (blocks->form == SCATTERV) return to % (MOST_EACH + 1);
  return sends_blocks(blocks->form) ? (from + to) % (MOST_EACH + 1) : from % (MOST_EACH + 1);
}

/* The last block comes first. */
static void lay_out(struct blocks* blocks, struct side* side, int sends) {
  for (int i = 0; i < side->degree; ++i) {
    const int peer = side->ranks[i];
    const int all = is_equal(blocks->form) ? i : side->degree - 1 - i;
    const MPI_Datatype type = is_w(blocks->form) && i % 2 == 1 ? gapped : blocks->type;
    side->types[i] = type;
    side->words[i] = type == gapped ? WORDS : 1;
    side->each[i] = along(blocks, sends ? rank : peer, sends ? peer : rank);
    if (peer == MPI_PROC_NULL && !is_equal(blocks->form)) side->each[i] = 1;
    side->counts[i] = (int)side->each[i] * blocks->run.partitions;
    side->first[i] =
        is_equal(blocks->form) ? i * side->counts[i] * side->words[i] : all * blocks->room;
    side->displs[i] = is_w(blocks->form) ? side->first[i] * (MPI_Aint)sizeof(unsigned)
                                         : side->first[i] / side->words[i];
    side->places[i] = (int)side->displs[i];
  }
}

static void all_ranks(struct side* side) {
  side->degree = size;
  for (int i = 0; i < size; ++i) side->ranks[i] = i;
}

static void find_neighbours(struct blocks* blocks) {
  struct side *const send = &blocks->send, *const receive = &blocks->receive;
  int kind, weighted, ignored[2][MOST_EDGES];
  OK(MPI_Topo_test(blocks->comm, &kind));
  if (kind == MPI_CART) {
    OK(MPI_Cart_shift(blocks->comm, 0, 1, &receive->ranks[0], &receive->ranks[1]));
    receive->degree = send->degree = 2;
    memcpy(send->ranks, receive->ranks, sizeof send->ranks);
    return;
  }
  OK(MPI_Dist_graph_neighbors_count(blocks->comm, &receive->degree, &send->degree, &weighted));
  CHECK(receive->degree <= MOST_EDGES && send->degree <= MOST_EDGES);
  OK(MPI_Dist_graph_neighbors(blocks->comm, receive->degree, receive->ranks, ignored[0],
                              send->degree, send->ranks, ignored[1]));
}

static struct blocks make_blocks(enum form form, int partitions, MPI_Datatype type, int in_place,
                                 MPI_Comm comm) {
  struct blocks blocks = {.form = form, .type = type, .in_place = in_place, .comm = comm};
  blocks.root = in_place ? size - 1 : 0;
  blocks.room = (MOST_EACH * partitions + 1) * WORDS;
  blocks.run.partitions = partitions;
  blocks.run.request = MPI_REQUEST_NULL;
  all_ranks(&blocks.send);
  all_ranks(&blocks.receive);
  if (is_among_neighbours(form)) find_neighbours(&blocks);
  lay_out(&blocks, &blocks.send, 1);
  lay_out(&blocks, &blocks.receive, 0);
  blocks.own = form == SCATTERV ? along(&blocks, blocks.root, rank) : along(&blocks, rank, 0);
  const size_t bytes = bytes_of(&blocks);
  blocks.run.in = memory(bytes);
  blocks.run.out = memory(bytes);
  blocks.run.expected = memory(bytes);
  blocks.in = is_on_device ? on_device(bytes) : blocks.run.in;
  blocks.out = is_on_device ? on_device(bytes) : blocks.run.out;
  return blocks;
}

static void drop_blocks(struct blocks* blocks) {
  drop(&blocks->run);
  if (!is_on_device) return;
  CHECK(ferry_free(blocks->in) == FERRY_SUCCESS && ferry_free(blocks->out) == FERRY_SUCCESS);
}

static int is_contributor(const struct blocks* blocks) {
  return blocks->form != SCATTERV || rank == blocks->root;
}
static int is_receiver(const struct blocks* blocks) {
  return blocks->form != GATHERV || rank == blocks->root;
}
static int is_in_place(const struct blocks* blocks) {
  const int is_rooted = blocks->form == GATHERV || blocks->form == SCATTERV;
  return blocks->in_place && (!is_rooted || rank == blocks->root);
}

static int init_blocks(struct blocks* blocks, MPI_Info info) {
  const int p = blocks->run.partitions, own = blocks->own, root = blocks->root;
  const struct side *const s = &blocks->send, *const r = &blocks->receive;
  const int is_own = is_in_place(blocks);
  const void* const in = is_own && blocks->form != SCATTERV ? MPI_IN_PLACE : blocks->in;
  void* const out = is_own && blocks->form == SCATTERV ? MPI_IN_PLACE : blocks->out;
  const MPI_Datatype type = blocks->type;
  const MPI_Comm comm = blocks->comm;
  MPI_Request* const request = &blocks->run.request;
  switch (blocks->form) {
    case GATHERV:
      return MPIX_Pgatherv_init(in, p, own, type, out, r->each, r->displs, type, root, comm, info,
                                request);
    case SCATTERV:
      return MPIX_Pscatterv_init(in, p, s->each, s->displs, type, out, own, type, root, comm, info,
                                 request);
    case ALLGATHERV:
      return MPIX_Pallgatherv_init(in, p, own, type, out, r->each, r->displs, type, comm, info,
                                   request);
    case ALLTOALLV:
      return MPIX_Palltoallv_init(in, p, s->each, s->displs, type, out, r->each, r->displs, type,
                                  comm, info, request);
    case ALLTOALLW:
      return MPIX_Palltoallw_init(in, p, s->each, s->displs, s->types, out, r->each, r->displs,
                                  r->types, comm, info, request);
    case NEIGHBOR_ALLGATHER:
      return MPIX_Pneighbor_allgather_init(in, out, p, MOST_EACH, type, comm, info, request);
    case NEIGHBOR_ALLTOALL:
      return MPIX_Pneighbor_alltoall_init(in, out, p, MOST_EACH, type, comm, info, request);
    case NEIGHBOR_ALLGATHERV:
      return MPIX_Pneighbor_allgatherv_init(in, p, own, type, out, r->each, r->displs, type, comm,
                                            info, request);
    case NEIGHBOR_ALLTOALLV:
      return MPIX_Pneighbor_alltoallv_init(in, p, s->each, s->displs, type, out, r->each, r->displs,
                                           type, comm, info, request);
    default:
      return MPIX_Pneighbor_alltoallw_init(in, p, s->each, s->displs, s->types, out, r->each,
                                           r->displs, r->types, comm, info, request);
  }
}

/* The plain collective from `from` to `to`. */
static void compute_plain(const struct blocks* blocks, const void* from, void* to) {
  const int n = blocks->own * blocks->run.partitions, root = blocks->root;
  const int equal = MOST_EACH * blocks->run.partitions;
  const struct side *const s = &blocks->send, *const r = &blocks->receive;
  const MPI_Datatype type = blocks->type;
  const MPI_Comm comm = blocks->comm;
  switch (blocks->form) {
    case GATHERV:
      OK(MPI_Gatherv(from, n, type, to, r->counts, r->places, type, root, comm));
      break;
    case SCATTERV:
      OK(MPI_Scatterv(from, s->counts, s->places, type, to, n, type, root, comm));
      break;
    case ALLGATHERV:
      OK(MPI_Allgatherv(from, n, type, to, r->counts, r->places, type, comm));
      break;
    case ALLTOALLV:
      OK(MPI_Alltoallv(from, s->counts, s->places, type, to, r->counts, r->places, type, comm));
      break;
    case ALLTOALLW:
      OK(MPI_Alltoallw(from, s->counts, s->places, s->types, to, r->counts, r->places, r->types,
                       comm));
      break;
    case NEIGHBOR_ALLGATHER:
      OK(MPI_Neighbor_allgather(from, equal, type, to, equal, type, comm));
      break;
    case NEIGHBOR_ALLTOALL:
      OK(MPI_Neighbor_alltoall(from, equal, type, to, equal, type, comm));
      break;
    case NEIGHBOR_ALLGATHERV:
      OK(MPI_Neighbor_allgatherv(from, n, type, to, r->counts, r->places, type, comm));
      break;
    case NEIGHBOR_ALLTOALLV:
      OK(MPI_Neighbor_alltoallv(from, s->counts, s->places, type, to, r->counts, r->places, type,
                                comm));
      break;
    default:
      OK(MPI_Neighbor_alltoallw(from, s->counts, s->displs, s->types, to, r->counts, r->displs,
                                r->types, comm));
  }
}

/* New data, and what comes of them. */
static void set_blocks(struct blocks* blocks, int round) {
  struct run* const run = &blocks->run;
  const int all = MOST_EDGES * blocks->room;
  for (int i = 0; i < all; ++i) run->in[i] = (unsigned)(1 + rank * 7919 + round * 104729 + i * 3);
  memset(run->out, 0xee, sizeof *run->out * all);
  memset(run->expected, 0xee, sizeof *run->expected * all);
  const int is_own = is_in_place(blocks);
  if (is_own && blocks->form != SCATTERV) {
    memcpy(run->out, run->in, sizeof *run->in * all);
    memcpy(run->expected, run->in, sizeof *run->in * all);
    compute_plain(blocks, MPI_IN_PLACE, run->expected);
  } else {
    compute_plain(blocks, run->in, is_own ? MPI_IN_PLACE : run->expected);
  }
  copy(blocks->in, run->in, bytes_of(blocks));
  copy(blocks->out, run->out, bytes_of(blocks));
}

/* Partition p of all blocks, as far as they come from somebody. */
static void compare_partition(const struct blocks* blocks, int p) {
  const struct side* const side = &blocks->receive;
  const struct run* const run = &blocks->run;
  const int is_run = !receives_blocks(blocks->form);
  if (!is_receiver(blocks)) return;
  copy(run->out, blocks->out, bytes_of(blocks));
  for (int block = 0; block < (is_run ? 1 : side->degree); ++block) {
    const int each = is_run ? blocks->own : (int)side->each[block];
    const int words = is_run ? (blocks->type == gapped ? WORDS : 1) : side->words[block];
    const int first = is_run ? 0 : side->first[block];
    for (int i = p * each; i < (p + 1) * each; ++i) {
      CHECK(run->out[first + i * words] == run->expected[first + i * words]);
    }
  }
}

/* Also what lies beside the blocks, and in the gaps. */
static void compare_buffers(const struct blocks* blocks) {
  if (!is_receiver(blocks)) return;
  copy(blocks->run.out, blocks->out, bytes_of(blocks));
  CHECK(memcmp(blocks->run.out, blocks->run.expected, bytes_of(blocks)) == 0);
}

static void ready_in_a_round(struct blocks* blocks, int round) {
  if (!is_contributor(blocks)) return;
  if (round % 3 == 0) ready_by_threads(&blocks->run);
  if (round % 3 == 1) ready_alone(&blocks->run);
  if (round % 3 == 2) ready_ranges(&blocks->run);
}

static void check_form(enum form form, int partitions, MPI_Datatype type, int in_place,
                       MPI_Comm comm, const char* least_bytes, const char* most_units) {
  step = form_names[form];
  MPI_Info info = hints(least_bytes, most_units);
  struct blocks blocks = make_blocks(form, partitions, type, in_place, comm);
  OK(init_blocks(&blocks, info));
  for (int round = 0; round < 3; ++round) {
    set_blocks(&blocks, round);
    OK(MPI_Start(&blocks.run.request));
    if (round == 1) OK(MPIX_Pbuf_prepare(blocks.run.request));
    ready_in_a_round(&blocks, round);
    for (int p = partitions - 1; p >= 0 && round != 1 && is_receiver(&blocks); --p) {
      while (!has_arrived(&blocks.run, p)) sched_yield();
      compare_partition(&blocks, p);
    }
    OK(MPI_Wait(&blocks.run.request, MPI_STATUS_IGNORE));
    compare_buffers(&blocks);
  }
  /* Each partition is used before the next one is ready. */
  for (int round = 3; partitions <= 64 && most_units == NULL && round < 5; ++round) {
    set_blocks(&blocks, round);
    OK(MPI_Start(&blocks.run.request));
    for (int p = 0; p < partitions; ++p) {
      if (is_contributor(&blocks)) OK(MPI_Pready(p, blocks.run.request));
      while (is_receiver(&blocks) && !has_arrived(&blocks.run, p)) sched_yield();
      compare_partition(&blocks, p);
    }
    OK(MPI_Wait(&blocks.run.request, MPI_STATUS_IGNORE));
    compare_buffers(&blocks);
  }
  OK(MPI_Info_free(&info));
  drop_blocks(&blocks);
}

static void check_forms(MPI_Comm comm, int first, int last) {
  for (int form = first; form <= last; ++form) {
    const int most = is_among_neighbours((enum form)form) ? 0 : 1;
    for (int in_place = 0; in_place <= most; ++in_place) {
      check_form(form, 1, MPI_UNSIGNED, in_place, comm, NULL, NULL);
      check_form(form, 7, MPI_UNSIGNED, in_place, comm, NULL, NULL);
      check_form(form, 7, gapped, in_place, comm, NULL, NULL);
      check_form(form, 100, MPI_UNSIGNED, in_place, comm, NULL, NULL);
      check_form(form, 40, gapped, in_place, comm, "1000000", "2");
    }
  }
}

/* A ring of one way, an open line, and a graph in which edges are there twice, and lead to their
 * own rank. */
static void check_neighbours(void) {
  MPI_Comm comm;
  const int all = size;
  for (int periodic = 0; periodic < 2; ++periodic) {
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &all, &periodic, 0, &comm));
    check_forms(comm, NEIGHBOR_ALLGATHER, NEIGHBOR_ALLTOALLW);
    OK(MPI_Comm_free(&comm));
  }
  const int edges = 4;
  const int destinations[] = {next, 0, next, rank};
  const int is_lonely = size > 2 && rank == size - 1; /* sends nothing */
  const int degree = is_lonely ? 0 : edges;
  OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, destinations, MPI_UNWEIGHTED,
                           MPI_INFO_NULL, 0, &comm));
  check_forms(comm, NEIGHBOR_ALLGATHER, NEIGHBOR_ALLTOALLW);
  OK(MPI_Comm_free(&comm));
}

/* ---- Mistakes ---- */

/* No rank gets through, so that all go on alike. */
static void check_mistakes(void) {
  step = "wrong arguments";
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Info none = MPI_INFO_NULL;
  static int from[64], to[64];
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Count each[MOST_RANKS];
  MPI_Aint places[MOST_RANKS];
  MPI_Datatype types[MOST_RANKS];
  for (int i = 0; i < size; ++i) {
    each[i] = 1;
    places[i] = i;
    types[i] = MPI_INT;
  }
  expect_error(
      MPIX_Pallgatherv_init(from, 0, 1, MPI_INT, to, each, places, MPI_INT, world, none, &request),
      MPI_ERR_ARG, "partitions is 0");
  expect_error(
      MPIX_Pallgatherv_init(from, 2, -1, MPI_INT, to, each, places, MPI_INT, world, none, &request),
      MPI_ERR_COUNT, "is -1 for each of 2 partitions");
  expect_error(
      MPIX_Pallgatherv_init(from, 2, 1, MPI_INT, to, NULL, places, MPI_INT, world, none, &request),
      MPI_ERR_ARG, "are null");
  expect_error(MPIX_Palltoallv_init(from, 2, each, NULL, MPI_INT, to, each, places, MPI_INT, world,
                                    none, &request),
               MPI_ERR_ARG, "are null");
  expect_error(MPIX_Palltoallw_init(from, 2, each, places, types, MPI_IN_PLACE, each, places, types,
                                    world, none, &request),
               MPI_ERR_BUFFER, "recvbuf is MPI_IN_PLACE");
  expect_error(MPIX_Pgatherv_init(from, 2, 1, MPI_INT, to, each, places, MPI_INT, size, world, none,
                                  &request),
               MPI_ERR_ROOT, "is no rank");
  expect_error(
      MPIX_Preduce_scatter_init(from, to, 2, NULL, MPI_INT, MPI_SUM, world, none, &request),
      MPI_ERR_ARG, "recvcounts");
  expect_error(
      MPIX_Preduce_scatter_init(from, to, 2, each, MPI_INT, MPI_OP_NULL, world, none, &request),
      MPI_ERR_OP, "op is no operation");
  expect_error(MPIX_Pbarrier_init(-3, world, none, &request), MPI_ERR_ARG, "partitions is -3");
  expect_error(MPIX_Pbarrier_init(1, world, none, NULL), MPI_ERR_ARG, "request is null");
  expect_error(MPIX_Pneighbor_allgather_init(from, to, 2, 1, MPI_INT, world, none, &request),
               MPI_ERR_TOPOLOGY, "no neighbours");
  each[0] = -2;
  expect_error(
      MPIX_Pallgatherv_init(from, 2, 1, MPI_INT, to, each, places, MPI_INT, world, none, &request),
      MPI_ERR_COUNT, "recvcounts[0] is -2");
  expect_error(
      MPIX_Preduce_scatter_init(from, to, 2, each, MPI_INT, MPI_SUM, world, none, &request),
      MPI_ERR_COUNT, "recvcounts[0] is -2");
  each[0] = INT64_MAX / 2;
  expect_error(MPIX_Palltoallv_init(from, 3, each, places, MPI_INT, to, each, places, MPI_INT,
                                    world, none, &request),
               MPI_ERR_COUNT, "sendcounts[0] is");
  expect_error(
      MPIX_Preduce_scatter_init(from, to, 3, each, MPI_INT, MPI_SUM, world, none, &request),
      MPI_ERR_COUNT, "recvcounts[0] is");
  MPI_Comm ring;
  const int all = size, periodic = 1;
  OK(MPI_Cart_create(world, 1, &all, &periodic, 0, &ring));
  expect_error(MPIX_Pneighbor_alltoall_init(MPI_IN_PLACE, to, 2, 1, MPI_INT, ring, none, &request),
               MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE");
  OK(MPI_Comm_free(&ring));
}

/* A block that is longer than its receiver expects: the round fails there, and nowhere else. */
static void check_unequal(void) {
  step = "blocks of which the ranks think differently";
  enum { PARTITIONS = 3 };
  if (size == 1) return;
  static int from[MOST_RANKS * PARTITIONS * 2], to[MOST_RANKS * PARTITIONS * 2];
  MPI_Count sent[MOST_RANKS], received[MOST_RANKS];
  MPI_Aint places[MOST_RANKS];
  for (int i = 0; i < size; ++i) {
    sent[i] = rank == 0 && i == 1 ? 2 : 1;
    received[i] = 1;
    places[i] = i * PARTITIONS * 2;
  }
  MPI_Request request;
  OK(MPIX_Palltoallv_init(from, PARTITIONS, sent, places, MPI_INT, to, received, places, MPI_INT,
                          MPI_COMM_WORLD, MPI_INFO_NULL, &request));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < MOST_RANKS * PARTITIONS * 2; ++i) {
      from[i] = rank + round;
      to[i] = -1;
    }
    OK(MPI_Start(&request));
    OK(MPI_Pready_range(0, PARTITIONS - 1, request));
    const int error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) {
      expect_error(error, MPI_ERR_TRUNCATE, "");
      CHECK(to[PARTITIONS] == -1);     /* nothing is written beyond the block */
    } else if (error == MPI_SUCCESS) { /* or it was told of rank 1 */
      for (int i = 0; i < size; ++i) CHECK(to[i * PARTITIONS * 2] == i + round);
    }
  }
  OK(MPI_Request_free(&request));
}

/* All ranks need something of all others: an element of each partition. */
static void give_all_something(struct blocks* blocks) {
  for (int i = 0; i < size; ++i) {
    blocks->send.each[i] = blocks->receive.each[i] = 1;
    blocks->send.counts[i] = blocks->receive.counts[i] = blocks->run.partitions;
  }
  blocks->own = 1;
}

/* A rank that needs what the last rank has not readied is told. */
static int die_or_wait(void) {
  step = "a rank that dies";
  struct blocks all = make_blocks(ALLGATHERV, 6, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
  struct blocks each = make_blocks(ALLTOALLV, 6, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
  give_all_something(&all);
  give_all_something(&each);
  OK(init_blocks(&all, MPI_INFO_NULL));
  OK(init_blocks(&each, MPI_INFO_NULL));
  set_blocks(&all, 1);
  set_blocks(&each, 1);
  MPI_Request both[2] = {all.run.request, each.run.request};
  OK(MPI_Startall(2, both));
  for (int p = 0; p < 6; ++p) {
    if (rank == size - 1 && p == 3) _exit(0); /* without leaving MPI */
    for (int i = 0; i < 2; ++i) OK(MPI_Pready(p, both[i]));
  }
  for (int p = 0; p < 6; ++p) {
    while (!has_arrived(&all.run, p) || !has_arrived(&each.run, p)) sched_yield();
  }
  for (int i = 0; i < 2; ++i) printf("class %d\n", MPI_Wait(&both[i], MPI_STATUS_IGNORE));
  fflush(stdout);
  _exit(0);
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
  CHECK(size <= MOST_RANKS);
  OK(MPI_Type_create_resized(MPI_UNSIGNED, 0, WORDS * sizeof(unsigned), &gapped));
  OK(MPI_Type_commit(&gapped));
  const char* const mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "dies") == 0) return die_or_wait();
  is_on_device = strcmp(mode, "device") == 0;
  check_forms(MPI_COMM_WORLD, GATHERV, ALLTOALLW);
  check_neighbours();
  check_mistakes();
  if (strcmp(mode, "compared") != 0) check_unequal();
  OK(MPI_Type_free(&gapped));
  return end_well("all blocks were right");
}

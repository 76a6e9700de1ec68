/* Collectives of intercommunicators: one side gets the other's data. Sides of several sizes, all
 * forms of calls. Two ranks or more.
 */
#include "tests/mpi/ranks/check.h"
#include "tests/mpi/ranks/on_queue.h"

#define MOST 16

static MPI_Comm inter;
static int side;                  /* 0 or 1 */
static int own, own_size, others; /* in the own group; the number of members of the other one */

/* A word of member `member` of a side; `k` tells words of one member apart. */
static int word(int of_side, int member, int k) { return of_side * 1000000 + member * 1000 + k; }

static int words[MOST * MOST * 4], got[MOST * MOST * 4];

static void forget(void) { memset(got, -1, sizeof(got)); }

/* The blocking form, or another one, which is completed here. */
enum form { BLOCKING, NONBLOCKING, PERSISTENT, ENQUEUED, FORMS };
#define CALL(form, name, i_name, ...)                                          \
  do {                                                                         \
    MPI_Request call_request = MPI_REQUEST_NULL;                               \
    if ((form) == BLOCKING) {                                                  \
      OK(MPI_##name(__VA_ARGS__, inter));                                      \
    } else if ((form) == NONBLOCKING) {                                        \
      OK(MPI_##i_name(__VA_ARGS__, inter, &call_request));                     \
      OK(MPI_Wait(&call_request, MPI_STATUS_IGNORE));                          \
    } else {                                                                   \
      OK(MPI_##name##_init(__VA_ARGS__, inter, MPI_INFO_NULL, &call_request)); \
      if ((form) == ENQUEUED) OK(MPIX_Match(&call_request));                   \
      for (int call_turn = 0; call_turn < 2; ++call_turn) {                    \
        if ((form) == ENQUEUED) {                                              \
          run_on_queue(&call_request);                                         \
          continue;                                                            \
        }                                                                      \
        OK(MPI_Start(&call_request));                                          \
        OK(MPI_Wait(&call_request, MPI_STATUS_IGNORE));                        \
      }                                                                        \
      OK(MPI_Request_free(&call_request));                                     \
    }                                                                          \
  } while (0)

/* The root argument of a rank, if member `root` of side `root_side` is the root. */
static int root_for(int root_side, int root) {
  return side != root_side ? root : own == root ? MPI_ROOT : MPI_PROC_NULL;
}

static void barriers(void) {
  MPI_Request request;
  step = "barriers";
  OK(MPI_Barrier(inter));
  OK(MPI_Ibarrier(inter, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Barrier_init(inter, MPI_INFO_NULL, &request));
  OK(MPI_Start(&request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&request));
  /* No member leaves before the last of the other side has come, which says so beforehand. */
  int told = 0;
  MPI_Request hears = MPI_REQUEST_NULL;
  const int tells = side == 1 && own == own_size - 1;
  if (side == 0 && own == 0) OK(MPI_Irecv(&told, 1, MPI_INT, others - 1, 9, inter, &hears));
  if (tells) OK(MPI_Ssend(&size, 1, MPI_INT, 0, 9, inter));
  OK(MPI_Barrier(inter));
  if (hears != MPI_REQUEST_NULL) {
    int done = 0;
    OK(MPI_Test(&hears, &done, MPI_STATUS_IGNORE));
    CHECK(done && told == size);
  }
}

static void rooted(int form, int root_side, int root) {
  const int members[2] = {side == 0 ? own_size : others, side == 0 ? others : own_size};
  const int givers = members[1 - root_side]; /* or takers */
  const int r = root_for(root_side, root), is_root = r == MPI_ROOT;
  const int takes = side != root_side;

  step = "MPI_Bcast";
  forget();
  for (int k = 0; k < 3; ++k) words[k] = word(side, own, k);
  CALL(form, Bcast, Ibcast, is_root ? words : got, 3, MPI_INT, r);
  for (int k = 0; k < 3; ++k) CHECK(got[k] == (takes ? word(root_side, root, k) : -1));

  step = "MPI_Gather";
  forget();
  CALL(form, Gather, Igather, words, 2, MPI_INT, got, 2, MPI_INT, r);
  for (int i = 0; i < givers; ++i) {
    for (int k = 0; k < 2; ++k) {
      CHECK(got[2 * i + k] == (is_root ? word(1 - root_side, i, k) : -1));
    }
  }

  step = "MPI_Gatherv"; /* i + 1 words of member i, a gap of one word behind each */
  forget();
  int counts[MOST], places[MOST], end = 0;
  for (int i = 0; i < MOST; ++i) {
    counts[i] = i + 1;
    places[i] = end;
    end += i + 2;
  }
  for (int k = 0; k < MOST; ++k) words[k] = word(side, own, k);
  CALL(form, Gatherv, Igatherv, words, own + 1, MPI_INT, got, counts, places, MPI_INT, r);
  for (int i = 0; is_root && i < givers; ++i) {
    for (int k = 0; k <= i; ++k) CHECK(got[places[i] + k] == word(1 - root_side, i, k));
    CHECK(got[places[i] + i + 1] == -1);
  }

  step = "MPI_Scatter";
  forget();
  for (int i = 0; i < 2 * MOST; ++i) words[i] = word(side, own, i);
  CALL(form, Scatter, Iscatter, words, 2, MPI_INT, got, 2, MPI_INT, r);
  for (int k = 0; k < 2; ++k) CHECK(got[k] == (takes ? word(root_side, root, 2 * own + k) : -1));

  step = "MPI_Scatterv";
  forget();
  for (int i = 0; i < MOST * MOST; ++i) words[i] = word(side, own, i);
  CALL(form, Scatterv, Iscatterv, words, counts, places, MPI_INT, got, own + 1, MPI_INT, r);
  for (int k = 0; takes && k <= own; ++k) CHECK(got[k] == word(root_side, root, places[own] + k));

  step = "MPI_Reduce";
  forget();
  for (int k = 0; k < 3; ++k) words[k] = word(side, own, k);
  CALL(form, Reduce, Ireduce, words, got, 3, MPI_INT, MPI_SUM, r);
  for (int k = 0; k < 3; ++k) {
    int sum = 0;
    for (int i = 0; i < givers; ++i) sum += word(1 - root_side, i, k);
    CHECK(got[k] == (is_root ? sum : -1));
  }
}

/* Numbers as pairs (ten to the power of their digits, their value): the operation writes one behind
 * the other, and does not commute.
 */
static void append(void* left, void* right, int* length, MPI_Datatype* type) {
  const long* l = left;
  long* r = right;
  (void)type;
  for (int i = 0; i < 2 * *length; i += 2) {
    r[i + 1] += l[i + 1] * r[i];
    r[i] *= l[i];
  }
}

static void unrooted(int form) {
  step = "MPI_Allgather"; /* sides pass counts of their own */
  const int mine = side == 0 ? 1 : 3, theirs = side == 0 ? 3 : 1;
  forget();
  for (int k = 0; k < MOST * 4; ++k) words[k] = word(side, own, k);
  CALL(form, Allgather, Iallgather, words, mine, MPI_INT, got, theirs, MPI_INT);
  for (int i = 0; i < others; ++i) {
    for (int k = 0; k < theirs; ++k) CHECK(got[theirs * i + k] == word(1 - side, i, k));
  }
  CHECK(got[theirs * others] == -1);

  step = "MPI_Allgatherv";
  int counts[MOST], places[MOST], end = 0;
  for (int i = 0; i < MOST; ++i) {
    counts[i] = i % 3; /* some have nothing */
    places[i] = end;
    end += i % 3 + 1;
  }
  forget();
  CALL(form, Allgatherv, Iallgatherv, words, own % 3, MPI_INT, got, counts, places, MPI_INT);
  for (int i = 0; i < others; ++i) {
    for (int k = 0; k < i % 3; ++k) CHECK(got[places[i] + k] == word(1 - side, i, k));
    CHECK(got[places[i] + i % 3] == -1);
  }

  step = "MPI_Alltoall";
  forget();
  CALL(form, Alltoall, Ialltoall, words, mine, MPI_INT, got, theirs, MPI_INT);
  for (int i = 0; i < others; ++i) {
    for (int k = 0; k < theirs; ++k) {
      CHECK(got[theirs * i + k] == word(1 - side, i, theirs * own + k));
    }
  }

  step = "MPI_Alltoallv and w"; /* own + their number modulo 4 words to and fro */
  int there[MOST], place[MOST], bytes[MOST];
  MPI_Datatype types[MOST];
  for (int i = 0; i < MOST; ++i) {
    there[i] = (own + i) % 4;
    place[i] = 4 * i;
    bytes[i] = 16 * i;
    types[i] = MPI_INT;
  }
  for (int twice = 0; twice < 2; ++twice) {
    forget();
    if (twice) {
      CALL(form, Alltoallw, Ialltoallw, words, there, bytes, types, got, there, bytes, types);
    } else {
      CALL(form, Alltoallv, Ialltoallv, words, there, place, MPI_INT, got, there, place, MPI_INT);
    }
    for (int i = 0; i < others; ++i) {
      for (int k = 0; k < 4; ++k) {
        CHECK(got[4 * i + k] == (k < there[i] ? word(1 - side, i, 4 * own + k) : -1));
      }
    }
  }

  step = "MPI_Allreduce";
  forget();
  CALL(form, Allreduce, Iallreduce, words, got, 5, MPI_INT, MPI_MAX);
  for (int k = 0; k < 5; ++k) CHECK(got[k] == word(1 - side, others - 1, k));

  step = "MPI_Reduce_scatter_block"; /* vectors of as many words as both sides can divide */
  const int all = own_size * others, share = all / own_size;
  forget();
  for (int k = 0; k < all; ++k) words[k] = own + k;
  CALL(form, Reduce_scatter_block, Ireduce_scatter_block, words, got, share, MPI_INT, MPI_SUM);
  for (int k = 0; k < share; ++k) {
    CHECK(got[k] == others * (others - 1) / 2 + others * (own * share + k));
  }

  step = "MPI_Reduce_scatter"; /* all words go to the last member */
  int parts[MOST] = {0};
  parts[own_size - 1] = all;
  forget();
  CALL(form, Reduce_scatter, Ireduce_scatter, words, got, parts, MPI_INT, MPI_SUM);
  for (int k = 0; k < all; ++k) {
    CHECK(got[k] == (own == own_size - 1 ? others * (others - 1) / 2 + others * k : -1));
  }
}

static void order(void) {
  step = "an operation that does not commute";
  MPI_Op op;
  MPI_Datatype pair;
  const long mine[2] = {10, own + 1};
  long result[2] = {0, 0}, expected = 0;
  OK(MPI_Type_contiguous(2, MPI_LONG, &pair));
  OK(MPI_Type_commit(&pair));
  OK(MPI_Op_create(append, 0, &op));
  OK(MPI_Allreduce(mine, result, 1, pair, op, inter));
  for (int i = 0; i < others; ++i) expected = 10 * expected + i + 1;
  CHECK(result[1] == expected);
  OK(MPI_Op_free(&op));
  OK(MPI_Type_free(&pair));
}

static void large(void) {
  step = "large vectors with gaps";
  enum { COUNT = 100000 };
  MPI_Datatype every_second;
  int* all = calloc((size_t)2 * COUNT, sizeof(int));
  OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_second));
  OK(MPI_Type_commit(&every_second));
  const int r = root_for(1, 0);
  for (int i = 0; i < COUNT; ++i) all[2 * i] = r == MPI_ROOT ? i * 3 : -1;
  OK(MPI_Bcast(all, COUNT, every_second, r, inter));
  for (int i = 0; i < COUNT; ++i) {
    CHECK(all[2 * i] == (side == 0 || r == MPI_ROOT ? i * 3 : -1) && all[2 * i + 1] == 0);
  }
  OK(MPI_Type_free(&every_second));
  free(all);
}

static void mistakes(void) {
  step = "mistakes";
  expect_error(MPI_Bcast(words, 1, MPI_INT, others, inter), MPI_ERR_ROOT, "neither MPI_ROOT nor");
  CHECK(MPI_Gather(words, 1, MPI_INT, got, 1, MPI_INT, -1, inter) == MPI_ERR_ROOT);
  CHECK(MPI_Allreduce(MPI_IN_PLACE, got, 1, MPI_INT, MPI_SUM, inter) == MPI_ERR_BUFFER);
  CHECK(MPI_Reduce(MPI_IN_PLACE, got, 1, MPI_INT, MPI_SUM, 0, inter) == MPI_ERR_BUFFER);
  CHECK(MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, got, 1, MPI_INT, inter) == MPI_ERR_BUFFER);
  CHECK(MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, got, 1, MPI_INT, inter) == MPI_ERR_BUFFER);
  CHECK(MPI_Allgather(got, 1, MPI_INT, got, 1, MPI_INT, inter) == MPI_ERR_BUFFER);
  CHECK(MPI_Alltoall(got, 1, MPI_INT, got, 1, MPI_INT, inter) == MPI_ERR_BUFFER);
  CHECK(MPI_Bcast(words, 1, MPI_DATATYPE_NULL, 0, inter) == MPI_ERR_TYPE);
  CHECK(MPI_Allreduce(words, got, 1, MPI_INT, MPI_OP_NULL, inter) == MPI_ERR_OP);
  expect_error(MPI_Scan(words, got, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM, "no such");
  CHECK(MPI_Exscan(words, got, 1, MPI_INT, MPI_SUM, inter) == MPI_ERR_COMM);
}

/* An intercommunicator between ranks below `border` and the others, or (0) even ones and odd ones;
 * `turned`: the group with rank 0 calls itself side 1. */
static void between(int border, int turned) {
  MPI_Comm half;
  const int first = border ? rank < border : rank % 2 == 0;
  side = first ? turned : 1 - turned;
  OK(MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half));
  OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, first ? (border ? border : 1) : 0, 3, &inter));
  own = rank_in(inter);
  own_size = size_of(inter);
  others = remote_size_of(inter);
  CHECK(own_size <= MOST && others <= MOST && own_size + others == size);
  barriers();
  for (int form = BLOCKING; form < (is_on_queue() ? FORMS : ENQUEUED); ++form) {
    const int sizes[2] = {side == 0 ? own_size : others, side == 0 ? others : own_size};
    for (int root_side = 0; root_side < 2; ++root_side) {
      for (int root = 0; root < sizes[root_side]; ++root) rooted(form, root_side, root);
    }
    unrooted(form);
  }
  order();
  large();
  mistakes();
  /* A communicator made of it works beside it. */
  step = "a merged one";
  MPI_Comm merged;
  int sum = 0;
  OK(MPI_Intercomm_merge(inter, side, &merged));
  OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, merged));
  CHECK(sum == size * (size - 1) / 2);
  OK(MPI_Comm_free(&merged));
  OK(MPI_Comm_free(&inter));
  OK(MPI_Comm_free(&half));
}

int main(int argc, char** argv) {
  want_queues(argc, argv);
  begin(&argc, &argv);
  for (int turned = 0; turned < 2; ++turned) {
    between(0, turned);
    between(1, turned);
    between(size - 1, turned);
    between((size + 1) / 2, turned);
  }
  close_on_queue();
  return end_well("all collectives of intercommunicators were right");
}

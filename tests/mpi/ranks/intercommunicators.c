/* Intercommunicators: how they are made, communicators made of them, and messages on them. Two
 * ranks or more.
 */
#include "tests/mpi/ranks/check.h"

/* Every member sends to every member of the other side; `mark` tells communicators apart. */
static void check_messages(MPI_Comm inter, int mark) {
  const int own = rank_in(inter), remote_size = remote_size_of(inter);
  MPI_Request* requests = malloc(2 * (size_t)remote_size * sizeof(*requests));
  int* got = malloc((size_t)remote_size * sizeof(*got));
  const int sent = 1000 * mark + own;
  for (int peer = 0; peer < remote_size; ++peer) {
    OK(MPI_Irecv(&got[peer], 1, MPI_INT, peer, 0, inter, &requests[2 * peer]));
    OK(MPI_Isend(&sent, 1, MPI_INT, peer, 0, inter, &requests[2 * peer + 1]));
  }
  for (int peer = 0; peer < remote_size; ++peer) {
    MPI_Status status;
    OK(MPI_Wait(&requests[2 * peer], &status));
    OK(MPI_Wait(&requests[2 * peer + 1], MPI_STATUS_IGNORE));
    CHECK(got[peer] == 1000 * mark + peer);
    CHECK(status.MPI_SOURCE == peer); /* a rank of the other side */
  }
  free(requests);
  free(got);
}

/* The members of a group, as ranks of the world. */
static void world_ranks(MPI_Group group, int* ranks, int* count) {
  MPI_Group world;
  int all[64];
  OK(MPI_Group_size(group, count));
  CHECK(*count <= 64);
  for (int i = 0; i < *count; ++i) all[i] = i;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_translate_ranks(group, *count, all, world, ranks));
  OK(MPI_Group_free(&world));
}

static void check_sides(MPI_Comm inter) {
  step = "what an intercommunicator is";
  int flag = 0, ranks[64], count = 0;
  MPI_Group group;
  OK(MPI_Comm_test_inter(inter, &flag));
  CHECK(flag);
  CHECK(size_of(inter) + remote_size_of(inter) == size);
  OK(MPI_Comm_remote_group(inter, &group));
  world_ranks(group, ranks, &count);
  CHECK(count == remote_size_of(inter));
  for (int i = 0; i < count; ++i) CHECK(ranks[i] == 2 * i + 1 - rank % 2);
  OK(MPI_Group_free(&group));
  OK(MPI_Comm_group(inter, &group));
  world_ranks(group, ranks, &count);
  for (int i = 0; i < count; ++i) CHECK(ranks[i] == 2 * i + rank % 2);
  OK(MPI_Group_free(&group));
}

static void check_merge(MPI_Comm inter) {
  step = "MPI_Intercomm_merge";
  MPI_Comm merged;
  const int evens = (size + 1) / 2, odds = size / 2;
  OK(MPI_Intercomm_merge(inter, rank % 2, &merged)); /* odd ones last */
  CHECK(rank_in(merged) == (rank % 2 ? evens + rank / 2 : rank / 2));
  OK(MPI_Comm_free(&merged));
  OK(MPI_Intercomm_merge(inter, rank % 2 == 0, &merged)); /* even ones last */
  CHECK(rank_in(merged) == (rank % 2 ? rank / 2 : odds + rank / 2));
  CHECK(size_of(merged) == size);
  check_ring(merged, 1);
  OK(MPI_Comm_free(&merged));
  OK(MPI_Intercomm_merge(inter, 1, &merged)); /* some order, the same everywhere */
  CHECK(size_of(merged) == size);
  check_ring(merged, 2);
  OK(MPI_Comm_free(&merged));
}

static void check_copies(MPI_Comm inter) {
  step = "duplicates of an intercommunicator";
  MPI_Comm dup, idup;
  MPI_Request request;
  OK(MPI_Comm_idup(inter, &idup, &request));
  OK(MPI_Comm_dup(inter, &dup));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(comparison_of(inter, dup) == MPI_CONGRUENT);
  CHECK(comparison_of(inter, MPI_COMM_WORLD) == MPI_UNEQUAL);
  check_messages(inter, 1);
  check_messages(dup, 2);
  check_messages(idup, 3);
  OK(MPI_Comm_free(&dup));
  OK(MPI_Comm_disconnect(&idup));
}

static void check_split(MPI_Comm inter) {
  step = "MPI_Comm_split of an intercommunicator";
  MPI_Comm part;
  const int own = rank_in(inter), evens = (size + 1) / 2, odds = size / 2;
  /* All of both sides, in reverse. */
  OK(MPI_Comm_split(inter, 3, -own, &part));
  CHECK(rank_in(part) == (rank % 2 ? odds : evens) - 1 - own);
  check_messages(part, 4);
  OK(MPI_Comm_free(&part));
  /* Pairs; a rank without a partner on the other side gets nothing. */
  OK(MPI_Comm_split(inter, own, 0, &part));
  CHECK((part == MPI_COMM_NULL) == (own >= odds));
  if (part != MPI_COMM_NULL) {
    CHECK(size_of(part) == 1 && remote_size_of(part) == 1);
    check_messages(part, 5);
    OK(MPI_Comm_free(&part));
  }
  OK(MPI_Comm_split(inter, rank == 0 ? MPI_UNDEFINED : 0, 0, &part));
  CHECK((part == MPI_COMM_NULL) == (rank == 0 || size == 2));
  if (part != MPI_COMM_NULL) OK(MPI_Comm_free(&part));
}

static void check_split_type(MPI_Comm inter) {
  step = "MPI_Comm_split_type of an intercommunicator";
  MPI_Comm node, nothing;
  OK(MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  if (node != MPI_COMM_NULL) {
    const int local = size_of(node), remote = remote_size_of(node);
    CHECK(local >= 1 && remote >= 1 && local + remote <= size);
    check_messages(node, 7);
    OK(MPI_Comm_free(&node));
  }
  OK(MPI_Comm_split_type(inter, MPI_UNDEFINED, 0, MPI_INFO_NULL, &nothing));
  CHECK(nothing == MPI_COMM_NULL);
}

static void check_from_groups(void) {
  step = "MPI_Intercomm_create_from_groups";
  MPI_Group world, sides[2];
  MPI_Comm inter;
  int sizes[2], count = 0, ranks[64];
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  for (int side = 0; side < 2; ++side) {
    int range[1][3] = {{side, size - 1, 2}};
    OK(MPI_Group_range_incl(world, 1, range, &sides[side]));
    OK(MPI_Group_size(sides[side], &sizes[side]));
  }
  const int near = rank % 2, far = 1 - near;
  OK(MPI_Intercomm_create_from_groups(sides[near], sizes[near] - 1, sides[far], sizes[far] - 1,
                                      "both", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &inter));
  CHECK(remote_size_of(inter) == sizes[far]);
  check_messages(inter, 8);
  MPI_Group remote;
  OK(MPI_Comm_remote_group(inter, &remote));
  world_ranks(remote, ranks, &count);
  for (int i = 0; i < count; ++i) CHECK(ranks[i] == 2 * i + far);
  OK(MPI_Group_free(&remote));
  OK(MPI_Comm_free(&inter));
  for (int side = 0; side < 2; ++side) OK(MPI_Group_free(&sides[side]));
  OK(MPI_Group_free(&world));
}

static void check_create(MPI_Comm inter) {
  step = "MPI_Comm_create of an intercommunicator";
  MPI_Group group, first;
  MPI_Comm part;
  const int zero = 0;
  OK(MPI_Comm_group(inter, &group));
  OK(MPI_Group_incl(group, 1, &zero, &first));
  OK(MPI_Comm_create(inter, first, &part));
  CHECK((part == MPI_COMM_NULL) == (rank_in(inter) != 0));
  if (part != MPI_COMM_NULL) {
    check_messages(part, 6);
    OK(MPI_Comm_free(&part));
  }
  OK(MPI_Comm_create(inter, rank % 2 ? MPI_GROUP_EMPTY : group, &part));
  CHECK(part == MPI_COMM_NULL);
  OK(MPI_Group_free(&group));
  OK(MPI_Group_free(&first));
}

/* A mistake of the leader is told to its side, which does not wait for ever. */
static void check_mistakes(MPI_Comm half) {
  step = "mistakes with intercommunicators";
  MPI_Comm none = MPI_COMM_NULL;
  int count = -1;
  CHECK(MPI_Comm_remote_size(MPI_COMM_WORLD, &count) == MPI_ERR_COMM);
  CHECK(MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &none) == MPI_ERR_COMM);
  CHECK(MPI_Intercomm_create(half, size, MPI_COMM_WORLD, 0, 1, &none) == MPI_ERR_RANK);
  CHECK(MPI_Intercomm_create(half, 0, MPI_COMM_NULL, 0, 1, &none) == MPI_ERR_COMM);
  CHECK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, size, 1, &none) == MPI_ERR_RANK);
  CHECK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, -1, &none) == MPI_ERR_TAG);
}

int main(void) {
  begin(NULL, NULL);
  MPI_Comm half, inter;
  /* Even ranks and odd ranks; the last of each leads. */
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
  const int last_even = (size - 1) / 2 * 2, last_odd = size / 2 * 2 - 1;
  step = "MPI_Intercomm_create";
  /* The other leader's rank counts at the leaders only. */
  const int leads = rank == (rank % 2 ? last_odd : last_even);
  OK(MPI_Intercomm_create(half, size_of(half) - 1, leads ? MPI_COMM_WORLD : MPI_COMM_NULL,
                          !leads     ? -1
                          : rank % 2 ? last_even
                                     : last_odd,
                          12, &inter));
  check_sides(inter);
  check_messages(inter, 0);
  check_merge(inter);
  check_copies(inter);
  check_split(inter);
  check_split_type(inter);
  check_from_groups();
  check_create(inter);
  check_mistakes(half);
  OK(MPI_Comm_free(&inter));
  OK(MPI_Comm_free(&half));
  return end_well("all intercommunicators were right");
}

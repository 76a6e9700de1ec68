/* Communicators: how they are made, that their messages stay apart, and that they outlive their
 * handles. Any number of ranks.
 */
#include "tests/mpi/ranks/check.h"

static void check_world(void) {
  step = "the predefined communicators";
  int flag = 1;
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  CHECK(comparison_of(MPI_COMM_WORLD, MPI_COMM_WORLD) == MPI_IDENT);
  CHECK(comparison_of(MPI_COMM_WORLD, MPI_COMM_SELF) == (size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL));
  OK(MPI_Comm_test_inter(MPI_COMM_WORLD, &flag));
  CHECK(flag == 0);
  CHECK(rank_in(MPI_COMM_SELF) == 0 && size_of(MPI_COMM_SELF) == 1);
  OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
  CHECK(strcmp(name, "MPI_COMM_WORLD") == 0 && length == 14);
  OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length));
  CHECK(strcmp(name, "MPI_COMM_NULL") == 0);
  check_ring(MPI_COMM_SELF, 1);
}

/* Messages are sent on one communicator first, and received on the other one first: the order
 * counts within a communicator only. */
static void check_crosswise(void) {
  step = "two communicators of the same ranks, matched crosswise";
  MPI_Comm one, two;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &one));
  OK(MPI_Comm_dup(one, &two));
  CHECK(comparison_of(one, two) == MPI_CONGRUENT);
  MPI_Request requests[6];
  int sent[3] = {100 + rank, 200 + rank, 300 + rank};
  int got[3] = {0, 0, 0};
  /* All have the same tag, and any message of that tag would match the receives. */
  OK(MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, two, &requests[0]));
  OK(MPI_Irecv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, one, &requests[1]));
  OK(MPI_Irecv(&got[2], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[2]));
  OK(MPI_Isend(&sent[2], 1, MPI_INT, next, 9, MPI_COMM_WORLD, &requests[3]));
  OK(MPI_Isend(&sent[1], 1, MPI_INT, next, 9, one, &requests[4]));
  OK(MPI_Isend(&sent[0], 1, MPI_INT, next, 9, two, &requests[5]));
  OK(MPI_Waitall(6, requests, MPI_STATUSES_IGNORE));
  CHECK(got[0] == 100 + before && got[1] == 200 + before && got[2] == 300 + before);
  OK(MPI_Comm_free(&one));
  CHECK(one == MPI_COMM_NULL);
  OK(MPI_Comm_free(&two));
}

static void check_split(void) {
  step = "MPI_Comm_split";
  MPI_Comm half, none, reversed;
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
  CHECK(rank_in(half) == rank / 2 && size_of(half) == (size + 1 - rank % 2) / 2);
  check_ring(half, 2);
  OK(MPI_Comm_split(MPI_COMM_WORLD, 7, -rank, &reversed));
  CHECK(rank_in(reversed) == size - 1 - rank);
  check_ring(reversed, 3);
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 0, 0, &none));
  CHECK((none == MPI_COMM_NULL) == (rank == 0));
  if (none != MPI_COMM_NULL) {
    check_ring(none, 4);
    OK(MPI_Comm_free(&none));
  }
  OK(MPI_Comm_free(&half));
  OK(MPI_Comm_free(&reversed));
}

static void check_split_type(void) {
  step = "MPI_Comm_split_type";
  MPI_Comm node, parts, nothing;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  const int members = size_of(node);
  CHECK(members >= 1 && members <= size);
  check_ring(node, 5);
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &parts));
  CHECK((parts == MPI_COMM_NULL) == (members == size)); /* a node has only one part */
  if (parts != MPI_COMM_NULL) OK(MPI_Comm_free(&parts));
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &parts));
  const char* const resource = parts != MPI_COMM_NULL ? "mpi_shared_memory" : "none";
  CHECK(strcmp(value_in(info, "mpi_hw_resource_type"), resource) == 0);
  if (parts != MPI_COMM_NULL) OK(MPI_Comm_free(&parts));
  OK(MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory"));
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, -rank, info, &parts));
  CHECK(comparison_of(node, parts) == (members == 1 ? MPI_CONGRUENT : MPI_SIMILAR));
  OK(MPI_Comm_free(&parts));
  OK(MPI_Info_set(info, "mpi_hw_resource_type", "moon"));
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &nothing));
  CHECK(nothing == MPI_COMM_NULL);
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &nothing));
  CHECK(nothing == MPI_COMM_NULL);
  OK(MPI_Info_free(&info));
  OK(MPI_Comm_free(&node));
}

static void check_create(void) {
  step = "MPI_Comm_create";
  MPI_Group world, odd, even;
  MPI_Comm part, again;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  int odd_range[1][3] = {{1, size - 1, 2}}, even_range[1][3] = {{size - 1 - (size + 1) % 2, 0, -2}};
  OK(MPI_Group_range_incl(world, size > 1 ? 1 : 0, odd_range, &odd));
  OK(MPI_Group_range_incl(world, 1, even_range, &even)); /* the last one first */
  /* Disjoint groups make theirs at the same time. */
  OK(MPI_Comm_create(MPI_COMM_WORLD, rank % 2 == 1 ? odd : even, &part));
  CHECK(rank_in(part) == (rank % 2 == 1 ? rank / 2 : size_of(part) - 1 - rank / 2));
  check_ring(part, 6);
  OK(MPI_Comm_create(MPI_COMM_WORLD, odd, &again));
  CHECK((again == MPI_COMM_NULL) == (rank % 2 == 0));
  if (again != MPI_COMM_NULL) OK(MPI_Comm_free(&again));
  OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &again));
  CHECK(again == MPI_COMM_NULL);

  step = "MPI_Comm_create_group";
  /* Only some ranks take part, several times with one tag. */
  for (int i = 0; i < 3 && rank % 2 == 0; ++i) {
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, even, 17, &again));
    check_ring(again, 7 + i);
    OK(MPI_Comm_free(&again));
  }
  OK(MPI_Group_free(&odd));
  OK(MPI_Group_free(&even));
  OK(MPI_Group_free(&world));
  OK(MPI_Comm_free(&part));
}

static void check_from_group(void) {
  step = "MPI_Comm_create_from_group";
  MPI_Group world, half;
  MPI_Comm all, part;
  MPI_Errhandler handler;
  int range[1][3] = {{rank % 2, size - 1, 2}};
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_range_incl(world, 1, range, &half));
  /* Overlapping groups, with their members in any order. */
  OK(MPI_Comm_create_from_group(world, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &all));
  OK(MPI_Comm_create_from_group(half, "half", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &part));
  CHECK(size_of(part) == (size + 1 - rank % 2) / 2);
  check_ring(all, 10);
  check_ring(part, 11);
  OK(MPI_Comm_get_errhandler(all, &handler));
  CHECK(handler == MPI_ERRORS_RETURN);
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_Comm_free(&all));
  OK(MPI_Comm_free(&part));
  OK(MPI_Group_free(&half));
  OK(MPI_Group_free(&world));
}

static void check_idup(void) {
  step = "MPI_Comm_idup";
  /* Several duplicates at a time, completed in another order, with other calls in between. */
  MPI_Comm comms[4], between;
  MPI_Request requests[4];
  MPI_Info info = info_with("mpi_assert_exact_length", "true");
  OK(MPI_Comm_idup(MPI_COMM_WORLD, &comms[0], &requests[0]));
  OK(MPI_Comm_idup(MPI_COMM_WORLD, &comms[1], &requests[1]));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &between));
  OK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &comms[2], &requests[2]));
  OK(MPI_Comm_idup(between, &comms[3], &requests[3]));
  check_ring(between, 20);
  OK(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
  OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
  for (int i = 3; i >= 0; --i) check_ring(comms[i], 21 + i);
  CHECK(strcmp(hint_of(comms[2], "mpi_assert_exact_length"), "true") == 0);
  OK(MPI_Info_free(&info));
  for (int i = 0; i < 4; ++i) OK(MPI_Comm_free(&comms[i]));
  OK(MPI_Comm_free(&between));
}

static void check_free(void) {
  step = "a communicator freed while messages are under way";
  MPI_Comm comm;
  MPI_Request requests[2];
  enum { kCount = 1 << 20 };
  unsigned char* sent = malloc(kCount);
  unsigned char* got = calloc(kCount, 1);
  fill(sent, kCount, (unsigned)rank);
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Irecv(got, kCount, MPI_BYTE, before, 3, comm, &requests[0]));
  OK(MPI_Isend(sent, kCount, MPI_BYTE, next, 3, comm, &requests[1]));
  OK(MPI_Comm_free(&comm));
  MPI_Status statuses[2];
  OK(MPI_Waitall(2, requests, statuses));
  CHECK(statuses[0].MPI_SOURCE == before && is_filled(got, kCount, (unsigned)before));
  free(sent);
  free(got);
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_disconnect(&comm));
  CHECK(comm == MPI_COMM_NULL);
}

static void check_names(void) {
  step = "names and hints";
  MPI_Comm comm;
  char name[MPI_MAX_OBJECT_NAME], long_name[300];
  int length = -1;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_get_name(comm, name, &length));
  CHECK(length == 0 && name[0] == 0);
  memset(long_name, 'n', sizeof(long_name));
  long_name[299] = 0;
  OK(MPI_Comm_set_name(comm, long_name));
  OK(MPI_Comm_get_name(comm, name, &length));
  CHECK(length == MPI_MAX_OBJECT_NAME - 1 && name[126] == 'n' && name[127] == 0);
  OK(MPI_Comm_set_name(comm, "tide"));
  OK(MPI_Comm_get_name(comm, name, &length));
  CHECK(length == 4 && strcmp(name, "tide") == 0);

  MPI_Info info = info_with("mpi_assert_no_any_tag", "true");
  MPI_Comm other;
  OK(MPI_Info_set(info, "what_nobody_knows", "1"));
  OK(MPI_Comm_set_info(comm, info));
  CHECK(strcmp(hint_of(comm, "what_nobody_knows"), "none") == 0);
  CHECK(strcmp(hint_of(comm, "mpi_assert_no_any_tag"), "true") == 0);
  OK(MPI_Comm_dup(comm, &other)); /* hints are not inherited (MPI 5.0, section 7.4.2) */
  CHECK(strcmp(hint_of(other, "mpi_assert_no_any_tag"), "false") == 0);
  OK(MPI_Info_free(&info));
  OK(MPI_Comm_free(&other));
  OK(MPI_Comm_free(&comm));
}

/* Many overlapping communicators, alive and freed in turns. */
static void check_many(void) {
  step = "many communicators that overlap";
  enum { kAlive = 8 };
  MPI_Comm alive[kAlive];
  for (int i = 0; i < kAlive; ++i) alive[i] = MPI_COMM_NULL;
  for (int round = 0; round < 100; ++round) {
    MPI_Comm* place = &alive[round % kAlive];
    if (*place != MPI_COMM_NULL) OK(MPI_Comm_free(place));
    /* Groups of neighbours, which differ from round to round. */
    OK(MPI_Comm_split(MPI_COMM_WORLD, (rank + round) / (1 + round % 3), rank, place));
  }
  MPI_Request requests[2 * kAlive];
  int sent[kAlive], got[kAlive], from[kAlive];
  for (int i = 0; i < kAlive; ++i) {
    const int members = size_of(alive[i]);
    const int before_here = (rank_in(alive[i]) + members - 1) % members;
    sent[i] = 100 * i + rank;
    MPI_Group mine, world;
    OK(MPI_Comm_group(alive[i], &mine));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_translate_ranks(mine, 1, &before_here, world, &from[i]));
    OK(MPI_Group_free(&mine));
    OK(MPI_Group_free(&world));
    OK(MPI_Irecv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, 0, alive[i], &requests[i]));
  }
  for (int i = kAlive - 1; i >= 0; --i) {
    const int next_here = (rank_in(alive[i]) + 1) % size_of(alive[i]);
    OK(MPI_Isend(&sent[i], 1, MPI_INT, next_here, 0, alive[i], &requests[kAlive + i]));
  }
  OK(MPI_Waitall(2 * kAlive, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < kAlive; ++i) {
    CHECK(got[i] == 100 * i + from[i]);
    OK(MPI_Comm_free(&alive[i]));
  }
}

int main(void) {
  begin(NULL, NULL);
  check_world();
  check_crosswise();
  check_split();
  check_split_type();
  check_create();
  check_from_group();
  check_idup();
  check_free();
  check_names();
  check_many();
  return end_well("all communicators were right");
}

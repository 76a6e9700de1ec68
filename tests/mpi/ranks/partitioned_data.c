/* The data of partitioned messages: any numbers of partitions on either side, datatypes with gaps,
 * memory of all kinds, transfer units of all sizes (MPI 5.0, sections 4.2.1 and 4.2.4). Any number
 * of ranks form a ring.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/partitioned.h"

enum { tag = 4, most = 200 };

/* ---- Numbers of partitions ---- */

/* A hint for the sender; null: none. */
struct hint {
  const char *key, *value;
};
static const struct hint hints[] = {{NULL, NULL},
                                    {"ferry_partitioned_min_bytes", "1"},
                                    {"ferry_partitioned_min_bytes", "100000000"},
                                    {"ferry_partitioned_max_units", "1"},
                                    {"ferry_partitioned_max_units", "3"},
                                    {"colour", "red"}}; /* another library's */
enum { hint_count = sizeof(hints) / sizeof(hints[0]) };

static struct hint hint = {NULL, NULL};

static void init_both(MPI_Request both[2], const struct buffer* out, int partitions_out,
                      const struct buffer* in, int partitions_in) {
  MPI_Info info = hint.key == NULL ? MPI_INFO_NULL : info_with(hint.key, hint.value);
  OK(MPI_Psend_init(out->at, partitions_out, (MPI_Count)out->bytes / partitions_out, MPI_BYTE, next,
                    tag, MPI_COMM_WORLD, info, &both[kSend]));
  OK(MPI_Precv_init(in->at, partitions_in, (MPI_Count)in->bytes / partitions_in, MPI_BYTE, before,
                    tag, MPI_COMM_WORLD, info, &both[kReceive]));
  if (info != MPI_INFO_NULL) OK(MPI_Info_free(&info));
}

/* The whole consists of partitions_out x partitions_in pieces. A partition of the receive has come
 * when all its pieces belong to partitions that were readied. */
static void expect_arrivals(MPI_Request receive, int partitions_out, int partitions_in,
                            const char readied[]) {
  char expected[most];
  memset(expected, 1, sizeof(expected));
  for (int piece = 0; piece < partitions_out * partitions_in; ++piece) {
    if (!readied[piece / partitions_in]) expected[piece / partitions_out] = 0;
  }
  for (int p = 0; p < partitions_in; ++p) {
    if (expected[p]) await_arrival(receive, p);
  }
  for (int p = 0; p < partitions_in; ++p) CHECK(has_arrived(receive, p) == expected[p]);
}

/* Readies partitions in no order, and looks after every `looks`-th of them. */
static void unequal(enum kind from, enum kind to, int partitions_out, int partitions_in,
                    size_t piece, int looks) {
  static const int strides[] = {1, 3, 7, 11, 13};
  const size_t bytes = (size_t)partitions_out * (size_t)partitions_in * piece;
  MPI_Request both[2];
  MPI_Status statuses[2];
  struct buffer out = make_buffer(from, bytes), in = make_buffer(to, bytes);
  step = "unequal numbers of partitions";
  init_both(both, &out, partitions_out, &in, partitions_in);
  for (int round = 0; round < 2; ++round) {
    int stride = 1;
    char readied[most] = {0};
    for (int i = 0; i < 5; ++i) {
      if (partitions_out % strides[i] != 0) stride = strides[i];
    }
    fill_buffer(&out, (unsigned)(round + rank));
    clear(&in);
    OK(MPI_Startall(2, both));
    for (int n = 0; n < partitions_out; ++n) {
      const int p = (n * stride + round) % partitions_out;
      CHECK(!readied[p]);
      OK(MPI_Pready(p, both[kSend]));
      readied[p] = 1;
      if (n % looks != looks - 1) continue;
      expect_arrivals(both[kReceive], partitions_out, partitions_in, readied);
      meet();
    }
    OK(MPI_Waitall(2, both, statuses));
    CHECK(statuses[kReceive].MPI_SOURCE == before && statuses[kReceive].MPI_TAG == tag);
    CHECK(count_of(&statuses[kReceive], MPI_BYTE) == (int)bytes);
    CHECK(holds_all(&in, (unsigned)(round + before)));
  }
  free_all(2, both);
  drop_buffer(&out);
  drop_buffer(&in);
}

static void all_numbers(void) {
  static const int pairs[][2] = {{1, 1},   {1, 5},   {5, 1},   {3, 7},     {7, 3},     {12, 8},
                                 {63, 64}, {64, 65}, {65, 64}, {128, 128}, {200, 199}, {199, 200}};
  enum { pair_count = sizeof(pairs) / sizeof(pairs[0]) };
  for (int i = 0; i < pair_count; ++i) {
    unequal(kHeap, kHeap, pairs[i][0], pairs[i][1], 3, 1 + pairs[i][0] / 8);
    unequal(kOrdinary, kOrdinary, pairs[i][0], pairs[i][1], 1, 1 + pairs[i][0] / 6);
  }
  for (int h = 0; h < hint_count; ++h) {
    hint = hints[h];
    unequal(kHeap, kOrdinary, 8, 8, 1, 3);
    unequal(kHeap, kHeap, 200, 3, 20, 37);
    unequal(kOrdinary, kHeap, 13, 12, 1111, 5);
  }
  hint = hints[0];
}

/* Sizes for which messages take different ways. */
static void all_sizes(void) {
  static const size_t pieces[] = {1, 64, 1000, 4097, 30000};
  enum { size_count = sizeof(pieces) / sizeof(pieces[0]) };
  for (int from = 0; from < kKinds; ++from) {
    for (int to = 0; to < kKinds; ++to) {
      for (int s = 0; s < size_count; ++s) {
        unequal((enum kind)from, (enum kind)to, 5, 4, pieces[s], 3);
        if (s % 2 == 0) unequal((enum kind)from, (enum kind)to, 3, 3, pieces[s], 3);
      }
    }
  }
  unequal(kHeap, kHeap, 8, 5, 100000, 4);
  unequal(kOrdinary, kOrdinary, 8, 5, 100000, 4);
  unequal(kDevice, kDevice, 4, 3, 100000, 4);
}

/* ---- Datatypes ---- */

enum { ints = 720, room = 64 << 10, middle = 16 << 10, type_count = 7 };

/* Each has a number of ints that divides 60: dense, with gaps inside and behind, backwards, with
 * another lower bound. */
static MPI_Datatype make_type(int which) {
  static const int lengths[] = {3, 1, 2}, places[] = {0, 5, 9};
  MPI_Datatype type = MPI_DATATYPE_NULL, part;
  switch (which) {
    case 0:
      OK(MPI_Type_contiguous(4, MPI_INT, &type));
      break;
    case 1:
      OK(MPI_Type_vector(3, 1, 2, MPI_INT, &type));
      break;
    case 2:
      OK(MPI_Type_vector(2, 1, 3, MPI_INT, &part));
      OK(MPI_Type_create_resized(part, 0, 32, &type));
      OK(MPI_Type_free(&part));
      break;
    case 3:
      OK(MPI_Type_create_hvector(4, 1, -8, MPI_INT, &type));
      break;
    case 4:
      OK(MPI_Type_create_resized(MPI_INT, -4, 12, &type));
      break;
    case 5:
      OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &type));
      break;
    default:
      OK(MPI_Type_create_resized(MPI_INT, 0, -4, &type)); /* the whole lies backwards */
  }
  OK(MPI_Type_commit(&type));
  return type;
}

/* What a side of a message is. */
struct side {
  MPI_Datatype type;
  int partitions;
  MPI_Count count; /* of elements in a partition */
  MPI_Aint extent;
};

static struct side make_side(int which, int partitions) {
  struct side side = {make_type(which), partitions, 0, 0};
  MPI_Aint low;
  int bytes = 0;
  OK(MPI_Type_size(side.type, &bytes));
  side.count = ints / (bytes / (int)sizeof(int)) / partitions;
  CHECK(side.count * partitions * bytes == ints * (int)sizeof(int));
  OK(MPI_Type_get_extent(side.type, &low, &side.extent));
  return side;
}

/* What the buffer of the receiver has to hold, as far as the first `arrived` of its partitions from
 * `first` on are concerned: partitions follow each other by extent. */
static void unpack(unsigned char* expected, const struct side* in, const char* packed, int first,
                   int arrived) {
  const int bytes = ints * (int)sizeof(int), each = bytes / in->partitions;
  for (int p = first; p < first + arrived; ++p) {
    int at = p * each;
    OK(MPI_Unpack(packed, bytes, &at, expected + middle + p * in->count * in->extent,
                  (int)in->count, in->type, MPI_COMM_WORLD));
  }
}

static void pack(char* packed, const struct side* out, unsigned seed) {
  unsigned char* const source = malloc(room);
  int at = 0;
  fill(source, room, seed);
  OK(MPI_Pack(source + middle, out->partitions * (int)out->count, out->type, packed,
              ints * (int)sizeof(int), &at, MPI_COMM_WORLD));
  CHECK(at == ints * (int)sizeof(int));
  free(source);
}

static void shaped(enum kind from, enum kind to, int type_out, int partitions_out, int type_in,
                   int partitions_in) {
  struct side out = make_side(type_out, partitions_out), in = make_side(type_in, partitions_in);
  struct buffer source = make_buffer(from, room), target = make_buffer(to, room);
  unsigned char* const expected = malloc(room);
  char packed[ints * sizeof(int)];
  MPI_Request both[2];
  MPI_Status statuses[2];
  OK(MPI_Psend_init(source.at + middle, partitions_out, out.count, out.type, next, tag,
                    MPI_COMM_WORLD, MPI_INFO_NULL, &both[kSend]));
  OK(MPI_Precv_init(target.at + middle, partitions_in, in.count, in.type, before, tag,
                    MPI_COMM_WORLD, MPI_INFO_NULL, &both[kReceive]));
  for (int round = 0; round < 2; ++round) {
    step = round == 0 ? "datatypes with gaps" : "datatypes with gaps, partition by partition";
    fill_buffer(&source, (unsigned)(round + rank));
    clear(&target);
    memset(expected, kUntouched, room);
    pack(packed, &out, (unsigned)(round + before));
    OK(MPI_Startall(2, both));
    for (int p = 0; p < partitions_out; ++p) {
      OK(MPI_Pready(p, both[kSend]));
      if (round == 0 || partitions_out != partitions_in) continue;
      await_arrival(both[kReceive], p);
      unpack(expected, &in, packed, p, 1);
      get(&target, 0, room);
      CHECK(memcmp(target.image, expected, room) == 0);
      meet();
    }
    OK(MPI_Waitall(2, both, statuses));
    CHECK(count_of(&statuses[kReceive], in.type) == (int)in.count * partitions_in);
    unpack(expected, &in, packed, 0, partitions_in);
    get(&target, 0, room);
    CHECK(memcmp(target.image, expected, room) == 0);
  }
  free_all(2, both);
  OK(MPI_Type_free(&out.type));
  OK(MPI_Type_free(&in.type));
  free(expected);
  drop_buffer(&source);
  drop_buffer(&target);
}

static void all_types(void) {
  for (int out = 0; out < type_count; ++out) {
    for (int in = 0; in < type_count; ++in) {
      shaped(kOrdinary, kOrdinary, out, 12, in, 20);
      if ((out + in) % 2 == 1) shaped(kHeap, kHeap, out, 60, in, 1);
      if ((out + in) % 2 == 0) shaped(kHeap, kOrdinary, out, 12, in, 12);
    }
  }
  for (int from = 0; from < kKinds; ++from) {
    for (int to = 0; to < kKinds; ++to) {
      shaped((enum kind)from, (enum kind)to, 1, 12, 0, 12);
      shaped((enum kind)from, (enum kind)to, 0, 12, 5, 12);
      shaped((enum kind)from, (enum kind)to, 2, 20, 3, 12);
    }
  }
}

/* The program may free a datatype as soon as the requests are made. */
static void freed_types(void) {
  enum { partitions = 3 };
  int out[2 * partitions] = {0}, in[2 * partitions];
  MPI_Datatype type;
  MPI_Request both[2];
  step = "a datatype that was freed";
  OK(MPI_Type_create_resized(MPI_INT, 0, 8, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Psend_init(out, partitions, 1, type, next, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &both[kSend]));
  OK(MPI_Precv_init(in, partitions, 1, type, before, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &both[kReceive]));
  OK(MPI_Type_free(&type));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2 * partitions; ++i) {
      out[i] = 100 * round + 10 * rank + i;
      in[i] = -1;
    }
    OK(MPI_Startall(2, both));
    ready_all(both[kSend], partitions);
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2 * partitions; ++i) {
      CHECK(in[i] == (i % 2 == 0 ? 100 * round + 10 * before + i : -1));
    }
  }
  free_all(2, both);
}

/* Elements without bytes, at an address that is none. */
static void types_of_nothing(void) {
  MPI_Datatype nothing;
  MPI_Request both[2];
  MPI_Status statuses[2];
  step = "a datatype without data";
  OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
  OK(MPI_Type_commit(&nothing));
  OK(MPI_Psend_init(NULL, 4, 7, nothing, next, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[kSend]));
  OK(MPI_Precv_init(NULL, 2, 0, MPI_BYTE, before, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &both[kReceive]));
  for (int round = 0; round < 3; ++round) {
    OK(MPI_Startall(2, both));
    ready_all(both[kSend], 4);
    await_arrivals(both[kReceive], 2);
    OK(MPI_Waitall(2, both, statuses));
    CHECK(count_of(&statuses[kReceive], MPI_BYTE) == 0);
  }
  free_all(2, both);
  OK(MPI_Type_free(&nothing));
}

/* Several sends may read one buffer at a time. */
static void shared_source(enum kind kind) {
  enum { partitions = 6, each = 3000 };
  struct buffer out = make_buffer(kind, partitions * each);
  struct buffer in[2] = {make_buffer(kHeap, partitions * each),
                         make_buffer(kOrdinary, partitions * each)};
  MPI_Request pairs[4];
  step = "one buffer of two sends";
  for (int i = 0; i < 2; ++i) init_ring(&pairs[2 * i], &out, partitions, &in[i], 3 - i, tag + i);
  for (unsigned round = 0; round < 3; ++round) {
    fill_buffer(&out, round + (unsigned)rank);
    OK(MPI_Startall(4, pairs));
    for (int p = 0; p < partitions; ++p) {
      OK(MPI_Pready(p, pairs[kSend]));
      OK(MPI_Pready(partitions - 1 - p, pairs[2 + kSend]));
    }
    OK(MPI_Waitall(4, pairs, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2; ++i) CHECK(holds_all(&in[i], round + (unsigned)before));
  }
  free_all(4, pairs);
  drop_buffer(&in[0]);
  drop_buffer(&in[1]);
  drop_buffer(&out);
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, level_of(argc, argv));
  bound_time(120);
  all_numbers();
  all_sizes();
  all_types();
  freed_types();
  types_of_nothing();
  for (int kind = 0; kind < kKinds; ++kind) shared_source((enum kind)kind);
  return end_well("all data were right");
}

/* The program's own operations on its own datatypes, in every reduction, on any number of ranks.
 * The operation composes maps x -> a x + b: associative, not commutative, so the order of the ranks
 * shows. */
#include <stddef.h>

#include "tests/mpi/ranks/forms.h"

enum { most = 3000 };

/* Bytes outside the datatype stay as they are. */
typedef struct {
  int a;
  int untouched;
  double b;
  int last; /* keeps the extent from ending with b */
} Map;

static const int count_of_case[] = {1, 7, most};
static int count, calls;
static MPI_Datatype map_type;
static Map own[most * 16], result[most * 16];

static Map map_of(int process, int at) {
  const Map map = {process % 2 == 0 ? 1 : -1, -1, process + at % 50, -1};
  return map;
}

static Map compose(Map first, Map second) {
  const Map both = {second.a * first.a, -1, second.a * first.b + second.b, -1};
  return both;
}

static void combine(void* in, void* inout, int* length, MPI_Datatype* type) {
  MPI_Aint lower, extent;
  CHECK(*type == map_type);
  CHECK(MPI_Type_get_extent(*type, &lower, &extent) == MPI_SUCCESS && lower == 0);
  CHECK(extent == (MPI_Aint)sizeof(Map));
  ++calls;
  for (int i = 0; i < *length; ++i) {
    Map* const second = (Map*)inout + i;
    const Map both = compose(((const Map*)in)[i], *second);
    second->a = both.a;
    second->b = both.b;
  }
}

static void combine_large(void* in, void* inout, MPI_Count* length, MPI_Datatype* type) {
  int small = (int)*length;
  combine(in, inout, &small, type);
}

/* Element `at` of the reduction of processes 0 to `end` - 1. */
static Map composed(int end, int at) {
  Map map = map_of(0, at);
  for (int process = 1; process < end; ++process) map = compose(map, map_of(process, at));
  return map;
}

static void prepare(void) {
  for (int i = 0; i < count * size; ++i) {
    own[i] = map_of(rank, i);
    result[i].a = result[i].untouched = result[i].last = -7;
    result[i].b = -7;
  }
}

static void expect(int first, int end) {
  for (int i = 0; i < count; ++i) {
    const Map wanted = composed(end, first + i);
    CHECK(result[i].a == wanted.a && result[i].b == wanted.b);
    CHECK(result[i].untouched == -7 && result[i].last == -7);
  }
}

static void judge_all(void) { expect(0, size); }
static void judge_root(void) {
  if (rank == size - 1) expect(0, size);
}
static void judge_scan(void) { expect(0, rank + 1); }
static void judge_exscan(void) {
  if (rank != 0) expect(0, rank);
}
static void judge_parts(void) { expect(rank * count, size); }

static void reduce(MPI_Op op) {
  int counts[64];
  MPI_Count large_counts[64];
  CHECK(size <= 64);
  for (int i = 0; i < size; ++i) large_counts[i] = counts[i] = count;
  ALL_FORMS(prepare, judge_root, Reduce, Ireduce, own, result, count, map_type, op, size - 1,
            MPI_COMM_WORLD);
  ALL_FORMS(prepare, judge_all, Allreduce, Iallreduce, own, result, count, map_type, op,
            MPI_COMM_WORLD);
  ALL_FORMS(prepare, judge_scan, Scan, Iscan, own, result, count, map_type, op, MPI_COMM_WORLD);
  ALL_FORMS(prepare, judge_exscan, Exscan, Iexscan, own, result, count, map_type, op,
            MPI_COMM_WORLD);
  ALL_FORMS(prepare, judge_parts, Reduce_scatter_block, Ireduce_scatter_block, own, result, count,
            map_type, op, MPI_COMM_WORLD);
  SMALL_FORMS(prepare, judge_parts, Reduce_scatter, Ireduce_scatter, own, result, counts, map_type,
              op, MPI_COMM_WORLD);
  LARGE_FORMS(prepare, judge_parts, Reduce_scatter, Ireduce_scatter, own, result, large_counts,
              map_type, op, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  want_queues(argc, argv);
  MPI_Op op;
  MPI_Datatype fields;
  const int lengths[2] = {1, 1};
  const MPI_Aint places[2] = {offsetof(Map, a), offsetof(Map, b)};
  const MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
  begin(NULL, NULL);
  CHECK(size <= 16);
  OK(MPI_Type_create_struct(2, lengths, places, types, &fields));
  OK(MPI_Type_create_resized(fields, 0, sizeof(Map), &map_type));
  OK(MPI_Type_free(&fields));
  OK(MPI_Type_commit(&map_type));
  for (size_t i = 0; i < sizeof(count_of_case) / sizeof(count_of_case[0]); ++i) {
    count = count_of_case[i];
    OK(MPI_Op_create(combine, 0, &op));
    reduce(op);
    OK(MPI_Op_free(&op));
    OK(MPI_Op_create_c(combine_large, 0, &op));
    reduce(op);
    OK(MPI_Op_free(&op));
  }
  CHECK(size == 1 || calls != 0);
  OK(MPI_Type_free(&map_type));
  close_on_queue();
  return end_well("all own operations were right");
}

/* Two uses of MPI windows (MPI 5.0, chapter 12), which check themselves: no rank takes part in the
 * others' operations in its memory.
 *
 *   ferryrun -n 4 mpi_windows [KEYS_PER_RANK]
 *
 * First a hash table over all ranks. A key's place follows from its bits; where another one is, the
 * next place is tried. A rank takes a place by MPI_Compare_and_swap, and counts there by
 * MPI_Accumulate. Then smoothing of a line of points: each rank's neighbours put their outermost
 * points beside its own, and MPI_Win_post, _start, _complete and _wait say when (halo).
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;

/* ---- The hash table ---- */

struct place {
  uint64_t key; /* 0: free */
  uint64_t count;
};

struct table {
  struct place* mine;
  uint64_t places; /* of each rank */
  MPI_Win win;
};

static uint64_t scramble(uint64_t x) { /* splitmix64 (S. Vigna) */
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

static void make_table(struct table* table, uint64_t places) {
  table->places = places;
  MPI_Win_allocate((MPI_Aint)(places * sizeof(struct place)), sizeof(uint64_t), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &table->mine, &table->win);
  for (uint64_t i = 0; i < places; ++i) table->mine[i] = (struct place){0, 0};
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, table->win);
}

/* Counts the key once more. */
static void add(struct table* table, uint64_t key) {
  static const uint64_t none = 0, one = 1;
  const uint64_t all = table->places * (uint64_t)size;
  for (uint64_t at = scramble(key) % all;; at = (at + 1) % all) {
    const int owner = (int)(at / table->places);
    const MPI_Aint place = (MPI_Aint)(at % table->places) * 2;
    uint64_t found;
    MPI_Compare_and_swap(&key, &none, &found, MPI_UINT64_T, owner, place, table->win);
    MPI_Win_flush(owner, table->win);
    if (found == none || found == key) {
      MPI_Accumulate(&one, 1, MPI_UINT64_T, owner, place + 1, 1, MPI_UINT64_T, MPI_SUM, table->win);
      return;
    }
  }
}

/* All ranks add the keys 1 to `distinct`, each many times: none may be there twice, and their
 * counts must be those of a count without a table. Returns how many places are wrong on this rank.
 */
static uint64_t run_table(uint64_t keys) {
  const uint64_t distinct = keys / 4 + 1;
  struct table table;
  make_table(&table, distinct * 2 / (uint64_t)size + 2);
  uint64_t *expected = calloc(distinct + 1, sizeof(uint64_t)),
           *counted = calloc(distinct + 1, sizeof(uint64_t));
  const double begin = MPI_Wtime();
  for (uint64_t i = 0; i < keys; ++i) {
    const uint64_t key = scramble((uint64_t)rank << 32 | i) % distinct + 1;
    ++expected[key];
    add(&table, key);
  }
  MPI_Win_unlock_all(table.win);
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - begin;

  uint64_t wrong = 0, *seen = calloc(distinct + 1, sizeof(uint64_t));
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, table.win);
  for (uint64_t i = 0; i < table.places; ++i) {
    const struct place place = table.mine[i];
    if (place.key > distinct) {
      ++wrong;
    } else if (place.key != 0) {
      counted[place.key] += place.count;
      ++seen[place.key];
    }
  }
  MPI_Win_unlock(rank, table.win);
  const int length = (int)distinct + 1;
  MPI_Allreduce(MPI_IN_PLACE, expected, length, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, counted, length, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, seen, length, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  for (uint64_t key = 1; key <= distinct; ++key) {
    wrong += counted[key] != expected[key] || seen[key] > 1;
  }
  if (rank == 0) {
    printf("table: %llu keys added, %.2f us each on each rank\n",
           (unsigned long long)(keys * (uint64_t)size), 1e6 * seconds / (double)keys);
  }
  free(expected), free(counted), free(seen);
  MPI_Win_free(&table.win);
  return wrong;
}

/* ---- The halo ---- */

enum { points = 1000, steps = 50 };

/* From one line to the other; both have a point more at each end. */
static void smooth(const double* from, double* to, int count) {
  for (int i = 1; i <= count; ++i) to[i] = (from[i - 1] + from[i] + from[i + 1]) / 3;
}

/* Smooths all ranks' points by this rank alone: beyond the ends there is 0. */
static double* smooth_alone(void) {
  const int count = points * size;
  double *line = calloc((size_t)count + 2, sizeof(double)),
         *other = calloc((size_t)count + 2, sizeof(double));
  for (int i = 0; i < count; ++i) line[i + 1] = (double)(scramble((uint64_t)i) % 1000);
  for (int step = 0; step < steps; ++step) {
    smooth(line, other, count);
    double* const before = line;
    line = other;
    other = before;
  }
  free(other);
  return line;
}

static uint64_t run_halo(void) {
  /* Two lines of points, of which each step reads one, and writes the other. */
  enum { line = points + 2 };
  double* lines;
  MPI_Win win;
  MPI_Group world, neighbours;
  int near[2], count = 0;
  if (rank > 0) near[count++] = rank - 1;
  if (rank < size - 1) near[count++] = rank + 1;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, count, near, &neighbours);
  MPI_Win_allocate(2 * line * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &lines,
                   &win);
  for (int i = 0; i < 2 * line; ++i) lines[i] = 0;
  for (int i = 0; i < points; ++i)
    lines[i + 1] = (double)(scramble((uint64_t)(rank * points + i)) % 1000);
  for (int step = 0; step < steps; ++step) {
    const MPI_Aint now = step % 2 * line;
    double* const from = lines + now;
    MPI_Win_post(neighbours, 0, win);
    MPI_Win_start(neighbours, 0, win);
    if (rank > 0) MPI_Put(from + 1, 1, MPI_DOUBLE, rank - 1, now + points + 1, 1, MPI_DOUBLE, win);
    if (rank < size - 1) MPI_Put(from + points, 1, MPI_DOUBLE, rank + 1, now, 1, MPI_DOUBLE, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    smooth(from, lines + (line - now), points);
  }
  double* const expected = smooth_alone();
  uint64_t wrong = 0;
  for (int i = 1; i <= points; ++i)
    wrong += lines[steps % 2 * line + i] != expected[rank * points + i];
  free(expected);
  MPI_Group_free(&neighbours);
  MPI_Group_free(&world);
  MPI_Win_free(&win);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char* end = NULL;
  const long keys = argc > 1 ? strtol(argv[1], &end, 10) : 20000;
  if (argc > 2 || keys < 1 || keys > 10000000 || (end != NULL && *end != '\0')) {
    if (rank == 0) {
      fputs("usage: mpi_windows [KEYS_PER_RANK], a number from 1 to 10000000\n", stderr);
    }
    MPI_Finalize();
    return 2;
  }
  uint64_t wrong = run_table((uint64_t)keys) + run_halo();
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) puts(wrong == 0 ? "windows: PASS" : "windows: FAIL");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}

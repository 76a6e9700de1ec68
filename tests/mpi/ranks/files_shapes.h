/* Views of a file in which the pieces of all ranks lie between each other, in several shapes, with
 * the list of a rank's own pieces and the value of each byte.
 */
#ifndef FERRY_TESTS_MPI_RANKS_FILES_SHAPES_H_
#define FERRY_TESTS_MPI_RANKS_FILES_SHAPES_H_

#include "tests/mpi/ranks/check.h"

struct piece {
  MPI_Aint place;
  int length;
};

struct view {
  MPI_Offset displacement;
  MPI_Datatype filetype;
  struct piece* pieces; /* of this rank, in the order of its data */
  int count;
  MPI_Offset bytes;
  MPI_Offset end; /* of the bytes of all ranks */
};

static unsigned random_state;
static unsigned next_random(unsigned below) {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % below;
}

static unsigned char value_at(int owner, MPI_Offset place, unsigned seed) {
  return (unsigned char)(seed * 31 + (unsigned)owner * 57 + (unsigned)place * 7 +
                         (unsigned)(place >> 8) + (unsigned)(place >> 16) * 3);
}

static void add(struct view* view, MPI_Offset place, int length) {
  view->pieces = realloc(view->pieces, sizeof(struct piece) * (size_t)(view->count + 1));
  view->pieces[view->count].place = (MPI_Aint)place;
  view->pieces[view->count++].length = length;
  view->bytes += length;
}

static void keep_end(struct view* view, MPI_Offset end) {
  if (end > view->end) view->end = end;
}

/* Pieces of random lengths, each of a random rank or of none; several tiles of them. */
static void random_list(struct view* view, int grain, int longest) {
  const MPI_Offset extent = 30000 * grain;
  const int tiles = 1 + (int)next_random(3);
  int* lengths = malloc(sizeof(int) * 30000);
  MPI_Aint* places = malloc(sizeof(MPI_Aint) * 30000);
  int count = 0;
  MPI_Offset at = 0;
  view->displacement = grain * (MPI_Offset)next_random(5000);
  for (;;) {
    const int length = grain * (int)(1 + next_random((unsigned)longest));
    const int owner = (int)next_random((unsigned)size + 1);
    if (at + length > extent) break;
    if (owner == rank) {
      lengths[count] = length;
      places[count++] = (MPI_Aint)at;
    }
    if (owner < size) keep_end(view, view->displacement + (tiles - 1) * extent + at + length);
    at += length;
  }
  MPI_Datatype list;
  OK(MPI_Type_create_hindexed(count, lengths, places, MPI_BYTE, &list));
  OK(MPI_Type_create_resized(list, 0, (MPI_Aint)extent, &view->filetype));
  OK(MPI_Type_free(&list));
  for (int tile = 0; tile < tiles; ++tile) {
    for (int i = 0; i < count; ++i) {
      add(view, view->displacement + tile * extent + places[i], lengths[i]);
    }
  }
  free(lengths);
  free(places);
}

/* The ranks take turns, block by block, with a gap behind each round. */
static void blocks_in_turns(struct view* view, int block, int gap) {
  const int count = 200000 / (block * size) + 3;
  const int stride = block * size + gap;
  view->displacement = rank * (MPI_Offset)block;
  MPI_Datatype vector;
  OK(MPI_Type_vector(1, block, block, MPI_BYTE, &vector));
  OK(MPI_Type_create_resized(vector, 0, stride, &view->filetype));
  OK(MPI_Type_free(&vector));
  for (int i = 0; i < count; ++i) add(view, view->displacement + i * (MPI_Offset)stride, block);
  keep_end(view, (count - 1) * (MPI_Offset)stride + (MPI_Offset)block * size);
}

/* A box of 24 x 20 x (8 * size) doubles, cut along the last dimension. */
static void box(struct view* view) {
  const int all[3] = {24, 20, 8 * size};
  const int part[3] = {24, 20, 8};
  const int start[3] = {0, 0, 8 * rank};
  OK(MPI_Type_create_subarray(3, all, part, start, MPI_ORDER_C, MPI_DOUBLE, &view->filetype));
  view->displacement = 4096 * 3 + 16;
  for (int i = 0; i < 24 * 20; ++i) {
    add(view, view->displacement + (i * (MPI_Offset)(8 * size) + 8 * rank) * 8, 64);
  }
  keep_end(view, view->displacement + 24 * 20 * 8 * 8 * (MPI_Offset)size);
}

/* Tiles that lie between each other: the data of a rank do not ascend. */
static void tiles_between_tiles(struct view* view) {
  const int block = 48, tiles = 700;
  const int lengths[2] = {block, block};
  const MPI_Aint places[2] = {rank * block, (MPI_Aint)(3 * size + rank) * block};
  MPI_Datatype pair;
  OK(MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &pair));
  OK(MPI_Type_create_resized(pair, 0, (MPI_Aint)2 * size * block, &view->filetype));
  OK(MPI_Type_free(&pair));
  for (int tile = 0; tile < tiles; ++tile) {
    for (int i = 0; i < 2; ++i) add(view, tile * (MPI_Offset)2 * size * block + places[i], block);
  }
  keep_end(view, ((tiles - 1) * (MPI_Offset)2 * size + 4 * size) * block);
}

/* Each rank has a stretch of its own; the last one has none. Far from each other. */
static void stretches(struct view* view) {
  const int length = 70000;
  view->displacement = rank * ((MPI_Offset)length + (1 << 20));
  OK(MPI_Type_contiguous(1, MPI_BYTE, &view->filetype));
  if (rank + 1 < size || size == 1) add(view, view->displacement, length);
  for (int other = 0; other + 1 < size || other == 0; ++other) {
    keep_end(view, other * ((MPI_Offset)length + (1 << 20)) + length);
  }
}

enum { kShapes = 9 };
static struct view make_view(int shape, unsigned seed) {
  struct view view = {0, MPI_DATATYPE_NULL, NULL, 0, 0, 0};
  random_state = seed * 2654435761u + 1;
  switch (shape) {
    case 0:
      random_list(&view, 8, 4);
      break;
    case 1:
      random_list(&view, 1, 40);
      break;
    case 2:
      random_list(&view, 4, 900);
      break;
    case 3:
      blocks_in_turns(&view, 64, 0);
      break;
    case 4:
      blocks_in_turns(&view, 8, 16);
      break;
    case 5:
      blocks_in_turns(&view, 5000, 3);
      break;
    case 6:
      box(&view);
      break;
    case 7:
      tiles_between_tiles(&view);
      break;
    default:
      stretches(&view);
  }
  OK(MPI_Type_commit(&view.filetype));
  return view;
}

static void free_view(struct view* view) {
  OK(MPI_Type_free(&view->filetype));
  free(view->pieces);
}

#endif  // FERRY_TESTS_MPI_RANKS_FILES_SHAPES_H_

/* The kernel of partitioned_jacobi: OpenCL C, CUDA, HIP or, for emulated devices, C++.
 *
 * A rank's part of the plane is cut into tiles, one for each work-group. There are two buffers of
 * (height + 2) x (width + 2) cells, the outer ones the edge of the plane or copies of neighbours'
 * cells. A step reads one buffer and writes the other. */
#ifndef FERRY_EXAMPLES_PARTITIONED_JACOBI_KERNEL_H
#define FERRY_EXAMPLES_PARTITIONED_JACOBI_KERNEL_H

#include "ferry/device/partitioned.h"

typedef struct {
  ferry_device_u32 tiles_across;
  ferry_device_u32 tiles_down;
  ferry_device_u32 tile_width; /* cells */
  ferry_device_u32 tile_height;
} heat_shape;

#define HEAT_ABOVE 0
#define HEAT_BELOW 1
#define HEAT_LEFT 2
#define HEAT_RIGHT 3
#define HEAT_SIDES 4

/* The exchange with the neighbour at one side. A partition is the edge of one tile; addresses
 * are numbers, as OpenCL C wants it. */
typedef struct {
  ferry_device_u64 in;  /* the neighbour's edge after the step before; 0: there is no neighbour */
  ferry_device_u64 out; /* where this rank's edge goes */
  ferry_device_u64 request; /* the MPIX_Prequest of the send; 0: the host sends */
} heat_side;

FERRY_DEVICE_FUNCTION ferry_device_u64 heat_width(heat_shape shape) {
  return (ferry_device_u64)shape.tiles_across * shape.tile_width;
}
FERRY_DEVICE_FUNCTION ferry_device_u64 heat_height(heat_shape shape) {
  return (ferry_device_u64)shape.tiles_down * shape.tile_height;
}
FERRY_DEVICE_FUNCTION ferry_device_u64 heat_cell_count(heat_shape shape) { /* of a buffer */
  return (heat_height(shape) + 2) * (heat_width(shape) + 2);
}

/* Returns the address of a cell: rows and columns from 0; those of the plane's part begin with
 * 1. */
FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL double* heat_cell(heat_shape shape,
                                                            FERRY_DEVICE_GLOBAL double* buffer,
                                                            ferry_device_u64 row,
                                                            ferry_device_u64 column) {
  return buffer + row * (heat_width(shape) + 2) + column;
}

/* The edge of a tile at one side of the part: its cells, or the neighbour's beside them. */
typedef struct {
  ferry_device_u64 row;
  ferry_device_u64 column;
  ferry_device_u64 count; /* cells: along a row (above, below), or a column */
  ferry_device_u64 first; /* in the exchanged edges */
  int partition;          /* below 0: the tile is not at that side */
} heat_edge;

FERRY_DEVICE_FUNCTION heat_edge heat_edge_of(heat_shape shape, int side, int is_neighbours) {
  const ferry_device_u32 across = ferry_device_group() % shape.tiles_across;
  const ferry_device_u32 down = ferry_device_group() / shape.tiles_across;
  const ferry_device_u64 beyond = is_neighbours ? 1 : 0;
  heat_edge edge;
  edge.row = 1 + (ferry_device_u64)down * shape.tile_height;
  edge.column = 1 + (ferry_device_u64)across * shape.tile_width;
  if (side == HEAT_ABOVE || side == HEAT_BELOW) {
    const int is_there = down == (side == HEAT_ABOVE ? 0 : shape.tiles_down - 1);
    edge.row = side == HEAT_ABOVE ? 1 - beyond : heat_height(shape) + beyond;
    edge.count = shape.tile_width;
    edge.partition = is_there ? (int)across : -1;
  } else {
    const int is_there = across == (side == HEAT_LEFT ? 0 : shape.tiles_across - 1);
    edge.column = side == HEAT_LEFT ? 1 - beyond : heat_width(shape) + beyond;
    edge.count = shape.tile_height;
    edge.partition = is_there ? (int)down : -1;
  }
  edge.first = edge.partition < 0 ? 0 : (ferry_device_u64)edge.partition * edge.count;
  return edge;
}

FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL double* heat_edge_cell(heat_shape shape,
                                                                 FERRY_DEVICE_GLOBAL double* buffer,
                                                                 heat_edge edge, int side,
                                                                 ferry_device_u64 i) {
  return side == HEAT_ABOVE || side == HEAT_BELOW
             ? heat_cell(shape, buffer, edge.row, edge.column + i)
             : heat_cell(shape, buffer, edge.row + i, edge.column);
}

/* Puts the neighbours' cells beside the group's tile. */
FERRY_DEVICE_FUNCTION void heat_take_edges(heat_shape shape, FERRY_DEVICE_GLOBAL double* buffer,
                                           const FERRY_DEVICE_GLOBAL heat_side* sides) {
  int side;
  for (side = 0; side < HEAT_SIDES; ++side) {
    const FERRY_DEVICE_GLOBAL double* const in = (const FERRY_DEVICE_GLOBAL double*)sides[side].in;
    const heat_edge edge = heat_edge_of(shape, side, 1);
    ferry_device_u64 i;
    if (sides[side].in == 0 || edge.partition < 0) {
      continue;
    }
    for (i = ferry_device_group_thread(); i < edge.count; i += ferry_device_group_size()) {
      *heat_edge_cell(shape, buffer, edge, side, i) = in[edge.first + i];
    }
  }
  ferry_device_group_barrier();
}

/* Computes the group's tile as examples/common/five_point.cc does, so that equal means equal. */
FERRY_DEVICE_FUNCTION void heat_update(heat_shape shape, FERRY_DEVICE_GLOBAL double* from,
                                       FERRY_DEVICE_GLOBAL double* to) {
  const ferry_device_u64 across = ferry_device_group() % shape.tiles_across;
  const ferry_device_u64 down = ferry_device_group() / shape.tiles_across;
  const ferry_device_u64 stride = heat_width(shape) + 2;
  const ferry_device_u64 first_row = 1 + down * shape.tile_height;
  const ferry_device_u64 first_column = 1 + across * shape.tile_width;
  ferry_device_u64 row;
  for (row = first_row; row < first_row + shape.tile_height; ++row) {
    const FERRY_DEVICE_GLOBAL double* const middle = heat_cell(shape, from, row, first_column);
    FERRY_DEVICE_GLOBAL double* const out = heat_cell(shape, to, row, first_column);
    ferry_device_u64 i;
    for (i = ferry_device_group_thread(); i < shape.tile_width; i += ferry_device_group_size()) {
      const FERRY_DEVICE_GLOBAL double* const here = middle + i;
      out[i] = 0.25 * ((*(here - stride) + here[stride]) + (*(here - 1) + here[1]));
    }
  }
  ferry_device_group_barrier();
}

/* Hands out the group's edges, and readies those that a kernel sends: they leave while other groups
 * still compute. Returns 0, or the status of the call that failed. */
FERRY_DEVICE_FUNCTION int heat_give_edges(heat_shape shape, FERRY_DEVICE_GLOBAL double* buffer,
                                          const FERRY_DEVICE_GLOBAL heat_side* sides) {
  int failed = MPIX_DEVICE_SUCCESS;
  int side;
  for (side = 0; side < HEAT_SIDES; ++side) {
    FERRY_DEVICE_GLOBAL double* const out = (FERRY_DEVICE_GLOBAL double*)sides[side].out;
    const MPIX_Prequest request = (MPIX_Prequest)sides[side].request;
    const heat_edge edge = heat_edge_of(shape, side, 0);
    ferry_device_u64 i;
    if (sides[side].in == 0 || edge.partition < 0) {
      continue;
    }
    for (i = ferry_device_group_thread(); i < edge.count; i += ferry_device_group_size()) {
      out[edge.first + i] = *heat_edge_cell(shape, buffer, edge, side, i);
    }
    if (request != FERRY_PARTITIONED_NULL) {
      const int status = MPIX_Pready_work_group(edge.partition, request);
      failed = failed != MPIX_DEVICE_SUCCESS ? failed : status;
    }
  }
  return failed;
}

/* A step, by as many groups as there are tiles. `cells` are both buffers; `from` is 0 or 1. */
FERRY_DEVICE_FUNCTION int heat_step(heat_shape shape, FERRY_DEVICE_GLOBAL double* cells,
                                    ferry_device_u64 from,
                                    const FERRY_DEVICE_GLOBAL heat_side* arrived,
                                    const FERRY_DEVICE_GLOBAL heat_side* leaving) {
  FERRY_DEVICE_GLOBAL double* const old = cells + from * heat_cell_count(shape);
  FERRY_DEVICE_GLOBAL double* const fresh = cells + (1 - from) * heat_cell_count(shape);
  heat_take_edges(shape, old, arrived);
  heat_update(shape, old, fresh);
  return heat_give_edges(shape, fresh, leaving);
}

#endif

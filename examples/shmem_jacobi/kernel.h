/* The kernels of shmem_jacobi: OpenCL C, CUDA, HIP or, for emulated devices, C++.
 *
 * The plane is cut into bands of rows, one for each work-group of each PE. A band has two buffers
 * of rows + 2 rows, the outer ones copies of the neighbours' rows. A step reads one buffer and
 * writes the other. */
#ifndef FERRY_EXAMPLES_SHMEM_JACOBI_KERNEL_H
#define FERRY_EXAMPLES_SHMEM_JACOBI_KERNEL_H

#include "ferry/device/shmem.h"

typedef struct {
  ferry_device_u64 width; /* cells of a row; the first and the last one do not change */
  ferry_device_u64 rows;  /* of a band, without the neighbours' */
  ferry_device_u64 steps;
} jacobi_shape;

/* Row `row` of a group's buffer; 0 and rows + 1 are the neighbours'. */
FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL double* jacobi_row(jacobi_shape shape,
                                                             FERRY_DEVICE_GLOBAL double* cells,
                                                             int group, ferry_device_u64 buffer,
                                                             ferry_device_u64 row) {
  return cells + (((ferry_device_u64)group * 2 + buffer) * (shape.rows + 2) + row) * shape.width;
}

/* The signal that the band above a group's raises, or (side 1) the one below it. */
FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL __UINT64_TYPE__* jacobi_signal(
    FERRY_DEVICE_GLOBAL __UINT64_TYPE__* signals, int group, int side) {
  return signals + (2 * (ferry_device_u64)group + (ferry_device_u64)side);
}

/* One step of the calling thread's share of its group's band. */
FERRY_DEVICE_FUNCTION void jacobi_update(jacobi_shape shape, FERRY_DEVICE_GLOBAL double* cells,
                                         ferry_device_u64 step) {
  const int group = (int)ferry_device_group();
  const ferry_device_u64 from = step % 2;
  ferry_device_u64 row;
  ferry_device_u64 i;
  for (row = 1; row <= shape.rows; ++row) {
    const FERRY_DEVICE_GLOBAL double* const above = jacobi_row(shape, cells, group, from, row - 1);
    const FERRY_DEVICE_GLOBAL double* const here = jacobi_row(shape, cells, group, from, row);
    const FERRY_DEVICE_GLOBAL double* const below = jacobi_row(shape, cells, group, from, row + 1);
    FERRY_DEVICE_GLOBAL double* const to = jacobi_row(shape, cells, group, 1 - from, row);
    for (i = 1 + ferry_device_group_thread(); i + 1 < shape.width; i += ferry_device_group_size()) {
      to[i] = (above[i] + below[i] + here[i - 1] + here[i + 1]) / 4;
    }
  }
}

/* All steps, by all groups of all PEs. A group puts its outer rows into its neighbours' bands,
 * be they this PE's or another's, and each put's signal is the number of its step. Two buffers
 * are enough: a neighbour that has sent for a step has read the rows of the step before. Returns
 * 0, or the status of the call that failed. */
FERRY_DEVICE_FUNCTION int jacobi_run(const FERRY_DEVICE_GLOBAL void* table, jacobi_shape shape,
                                     FERRY_DEVICE_GLOBAL double* cells,
                                     FERRY_DEVICE_GLOBAL __UINT64_TYPE__* signals) {
  const shmemx_device_t d = shmemx_device_open(table);
  const int groups = (int)(ferry_device_thread_count() / ferry_device_group_size());
  const int group = (int)ferry_device_group();
  const int band = shmemx_device_my_pe(d) * groups + group;
  const int bands = shmemx_device_n_pes(d) * groups;
  int failed = SHMEMX_DEVICE_SUCCESS;
  ferry_device_u64 step;
  /* All threads take all steps, so that they meet at the barriers whatever happens. */
  for (step = 0; step < shape.steps; ++step) {
    const ferry_device_u64 to = 1 - step % 2;
    const FERRY_DEVICE_GLOBAL double* const first = jacobi_row(shape, cells, group, to, 1);
    const FERRY_DEVICE_GLOBAL double* const last = jacobi_row(shape, cells, group, to, shape.rows);
    int status = SHMEMX_DEVICE_SUCCESS;
    jacobi_update(shape, cells, step);
    ferry_device_group_barrier();
    if (band > 0) {
      const int above = (band - 1) % groups;
      status = shmemx_device_double_put_signal_work_group(
          d, jacobi_row(shape, cells, above, to, shape.rows + 1), first, shape.width,
          jacobi_signal(signals, above, 1), step + 1, SHMEM_SIGNAL_SET, (band - 1) / groups);
      failed = failed != 0 ? failed : status;
    }
    if (band + 1 < bands) {
      const int below = (band + 1) % groups;
      status = shmemx_device_double_put_signal_work_group(
          d, jacobi_row(shape, cells, below, to, 0), last, shape.width,
          jacobi_signal(signals, below, 0), step + 1, SHMEM_SIGNAL_SET, (band + 1) / groups);
      failed = failed != 0 ? failed : status;
    }
    if (band > 0) {
      status = shmemx_device_signal_wait_until(d, jacobi_signal(signals, group, 0), SHMEM_CMP_GE,
                                               step + 1);
      failed = failed != 0 ? failed : status;
    }
    if (band + 1 < bands) {
      status = shmemx_device_signal_wait_until(d, jacobi_signal(signals, group, 1), SHMEM_CMP_GE,
                                               step + 1);
      failed = failed != 0 ? failed : status;
    }
  }
  return failed;
}

#endif

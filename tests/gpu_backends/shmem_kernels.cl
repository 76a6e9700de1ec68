/* Kernels that use ferry/device/shmem.h in all its forms, and ring_batch.h: device_code_test.sh
 * compiles them, those of the examples, and those of partitioned communication, to code for every
 * kind of device. */
#include "examples/shmem_dot/kernel.h"
#include "examples/shmem_jacobi/kernel.h"
#include "ferry/device/ring_batch.h"
#include "tests/gpu_backends/partitioned_example_kernels.cl"
#include "tests/gpu_backends/partitioned_kernels.cl"

FERRY_DEVICE_KERNEL test_jacobi(const FERRY_DEVICE_GLOBAL void* table, ferry_device_u64 width,
                                FERRY_DEVICE_GLOBAL double* cells,
                                FERRY_DEVICE_GLOBAL __UINT64_TYPE__* signals,
                                FERRY_DEVICE_GLOBAL int* status) {
  jacobi_shape shape;
  shape.width = width;
  shape.rows = 8;
  shape.steps = 10;
  *status = jacobi_run(table, shape, cells, signals);
}

FERRY_DEVICE_KERNEL test_dot(const FERRY_DEVICE_GLOBAL ferry_device_u64* tables,
                             const FERRY_DEVICE_GLOBAL double* x, ferry_device_u64 count,
                             FERRY_DEVICE_GLOBAL double* sums, FERRY_DEVICE_GLOBAL int* status) {
  *status = dot_run(tables, x, x, count, sums + 8, sums);
}

FERRY_DEVICE_KERNEL test_words(const FERRY_DEVICE_GLOBAL void* table, FERRY_DEVICE_GLOBAL int* ints,
                               FERRY_DEVICE_GLOBAL long* longs,
                               FERRY_DEVICE_GLOBAL float* floats) {
  const shmemx_device_t d = shmemx_device_open(table);
  const int next = (shmemx_device_my_pe(d) + 1) % shmemx_device_n_pes(d);
  shmemx_device_int_p(d, ints, shmemx_device_int_g(d, ints + 1, next), next);
  ints[2] = shmemx_device_int_atomic_fetch_add(d, ints, 3, next);
  ints[3] = shmemx_device_int_atomic_fetch_xor(d, ints, 3, next);
  ints[4] = shmemx_device_int_atomic_compare_swap(d, ints, 3, 4, next);
  longs[2] = shmemx_device_long_atomic_swap(d, longs, 3, next);
  shmemx_device_long_atomic_and(d, longs, 3, next);
  floats[2] = shmemx_device_float_atomic_swap(d, floats, 0.5f, next);
  ints[5] = shmemx_device_int_wait_until(d, ints, SHMEM_CMP_GT, 2);
  ints[6] = shmemx_device_long_test(d, longs, SHMEM_CMP_LE, 2);
  ints[7] = shmemx_device_quiet(d);
}

FERRY_DEVICE_KERNEL test_groups(const FERRY_DEVICE_GLOBAL void* table,
                                FERRY_DEVICE_GLOBAL int* ints, FERRY_DEVICE_GLOBAL char* bytes,
                                ferry_device_u64 count) {
  const shmemx_device_t d = shmemx_device_open(table);
  int status = shmemx_device_putmem_sub_group(d, bytes, bytes + count, count, 0);
  status += shmemx_device_int_get_nbi_warp(d, ints, ints + count, count, 0);
  status += shmemx_device_char_put_block(d, bytes, bytes + count, count, 0);
  status += shmemx_device_int_collect_wg(d, ints, ints + count, count);
  status += shmemx_device_int_alltoall_work_group(d, ints, ints + count, count);
  status += shmemx_device_int_max_reduce_wave(d, ints, ints + count, count);
  status += shmemx_device_uint32_xor_reduce_block(d, (FERRY_DEVICE_GLOBAL unsigned int*)ints,
                                                  (FERRY_DEVICE_GLOBAL unsigned int*)ints, count);
  status += shmemx_device_barrier_work_group(d);
  if (ferry_device_thread() == 0) {
    ints[0] = status;
  }
}

FERRY_DEVICE_KERNEL test_sets(const FERRY_DEVICE_GLOBAL void* table, FERRY_DEVICE_GLOBAL int* ints,
                              FERRY_DEVICE_GLOBAL long* longs,
                              FERRY_DEVICE_GLOBAL __SIZE_TYPE__* indices) {
  const shmemx_device_t d = shmemx_device_open(table);
  __SIZE_TYPE__ found =
      shmemx_device_long_wait_until_any_work_group(d, longs, 4, ints, SHMEM_CMP_NE, 0);
  found += shmemx_device_int_test_some_vector_sub_group(d, ints, 4, indices, 0, SHMEM_CMP_EQ, ints);
  int status = shmemx_device_uint64_wait_until_all(d, (FERRY_DEVICE_GLOBAL __UINT64_TYPE__*)longs, 4,
                                                   0, SHMEM_CMP_GT, 7);
  status += shmemx_device_signal_wait_until_block(d, (FERRY_DEVICE_GLOBAL __UINT64_TYPE__*)longs,
                                                  SHMEM_CMP_EQ, 1);
  status += shmemx_device_long_iput_work_group(d, longs, longs + 16, 2, 3, 4, 0);
  status += shmemx_device_int_ibget_warp(d, ints, ints + 64, 4, 5, 3, 4, 0);
  status += shmemx_device_long_alltoalls_wg(d, longs, longs + 16, 2, 1, 4);
  status += shmemx_device_int_sum_inscan_block(d, ints, ints + 64, 4);
  status += shmemx_device_float_sum_exscan(d, (FERRY_DEVICE_GLOBAL float*)ints,
                                           (FERRY_DEVICE_GLOBAL float*)ints, 4);
  if (ferry_device_thread() == 0) {
    ints[0] = status;
    longs[0] = (long)found;
  }
}

FERRY_DEVICE_KERNEL test_ring(FERRY_DEVICE_GLOBAL void* address, FERRY_DEVICE_GLOBAL int* status,
                              ferry_device_u32 count) {
  FERRY_DEVICE_SHARED ferry_device_u64 word;
  const ferry_device_ring ring = ferry_device_ring_open(address);
  const ferry_device_u32 mine = (ferry_device_u32)ferry_device_thread();
  ferry_device_ring_request requests[2];
  ferry_device_place nowhere;
  ferry_device_u64 number;
  nowhere.region = 0;
  nowhere.reserved = 0;
  nowhere.offset = 0;
  requests[0] = ferry_device_ring_request_for(ring, FERRY_DEVICE_RING_NOP, nowhere, 1,
                                              FERRY_DEVICE_RING_SILENT);
  requests[1] = ferry_device_ring_request_for(ring, FERRY_DEVICE_RING_NOP, nowhere, 2, mine);
  number = ferry_device_ring_post_many(ring, requests, 2);
  status[mine] = ferry_device_ring_wait(ring, mine, number + 1);
  number = ferry_device_ring_post_sub_group(ring, requests[1], count);
  if (number != 0) {
    status[mine] += ferry_device_ring_wait(ring, mine, number);
  }
  number = ferry_device_ring_post_work_group(ring, requests[1], count, &word);
  if (number != 0) {
    status[mine] += ferry_device_ring_wait(ring, mine, number);
  }
}

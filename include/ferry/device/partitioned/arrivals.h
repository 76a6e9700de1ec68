/* ferry/device/partitioned/arrivals.h - partitions that have arrived. See
 * ferry/device/partitioned.h. */
#ifndef FERRY_DEVICE_PARTITIONED_ARRIVALS_H
#define FERRY_DEVICE_PARTITIONED_ARRIVALS_H

#include "ferry/device/partitioned/prequest.h"

/* Returns true if all partitions [low, high] of the sender have arrived. */
FERRY_DEVICE_FUNCTION int ferry_partitioned_are_there(MPIX_Prequest preq, ferry_device_u64 round,
                                                      ferry_device_u32 low, ferry_device_u32 high) {
  const FERRY_DEVICE_GLOBAL ferry_device_u64* const arrived =
      (const FERRY_DEVICE_GLOBAL ferry_device_u64*)preq->arrived;
  ferry_device_u32 unit;
  for (unit = low / preq->per_unit; unit <= high / preq->per_unit; ++unit) {
    const ferry_device_u64 needed = ferry_partitioned_bits(preq, unit, low, high);
    /* Pairs with the release store by the process or kernel that moved the partitions. */
    const ferry_device_u64 bits = ferry_device_load_acquire(arrived + unit) -
                                  (round - 1) * ferry_partitioned_full(preq, unit);
    if ((bits & needed) != needed) {
      return 0;
    }
  }
  return 1;
}

/* Sets *flag to whether a partition that exists has arrived; by one thread. While the request was
 * not started, *flag is 1. Returns the error of a round in which none will arrive any more; then
 * *flag is 1, too. */
FERRY_DEVICE_FUNCTION int ferry_partitioned_look(MPIX_Prequest preq, ferry_device_u32 partition,
                                                 int* flag) {
  const ferry_device_u64 round = ferry_device_load_relaxed(&preq->round);
  const ferry_device_u64 all = preq->sender_partitions;
  /* Read before the words: partitions that arrived before a death count. */
  const ferry_device_u64 error =
      ferry_device_load_acquire(&ferry_partitioned_state_of(preq)->error);
  /* The partition's bytes are those of the sender's partitions from low to high. */
  const ferry_device_u32 low = (ferry_device_u32)(partition * all / preq->partitions);
  const ferry_device_u32 high =
      (ferry_device_u32)(((partition + 1) * all + preq->partitions - 1) / preq->partitions - 1);
  *flag = round == 0 || ferry_partitioned_are_there(preq, round, low, high);
  if (*flag == 0 && error != 0) {
    *flag = 1;
    return (int)error;
  }
  return MPIX_DEVICE_SUCCESS;
}

FERRY_DEVICE_FUNCTION int ferry_partitioned_check_arrival(MPIX_Prequest preq, int partition) {
  const int status = ferry_partitioned_check(preq, FERRY_PARTITIONED_RECEIVE);
  if (status != MPIX_DEVICE_SUCCESS) {
    return status;
  }
  return partition >= 0 && partition < (int)preq->partitions ? MPIX_DEVICE_SUCCESS
                                                             : MPIX_DEVICE_ERR_ARGUMENT;
}

/* Looks for the partition's arrival once, or, with `blocks`, until it has arrived. All threads of
 * the crew call it, and may read the data then. */
FERRY_DEVICE_FUNCTION int ferry_partitioned_arrive(ferry_device_crew crew, MPIX_Prequest preq,
                                                   int partition, int blocks, int* flag) {
  int status = ferry_partitioned_check_arrival(preq, partition);
  ferry_device_u64 found;
  *flag = 0;
  if (status != MPIX_DEVICE_SUCCESS) {
    return status;
  }
  if (crew.thread == 0) {
    status = ferry_partitioned_look(preq, (ferry_device_u32)partition, flag);
    while (blocks && *flag == 0) {
      ferry_device_pause();
      status = ferry_partitioned_look(preq, (ferry_device_u32)partition, flag);
    }
  }
  found = ferry_device_crew_broadcast(
      crew, (ferry_device_u64)(ferry_device_u32)status << 1 | (ferry_device_u64)*flag);
  *flag = (int)(found & 1);
  ferry_device_fence(); /* the arrived data, before this thread's loads */
  return (int)(found >> 1);
}

/* Sets *flag to 1 if the partition has arrived, if the request is not active, and once it has
 * failed. */
#define FERRY_PARTITIONED_ARRIVED(suffix, kind)                                                   \
  FERRY_DEVICE_FUNCTION int MPIX_Parrived##suffix(MPIX_Prequest preq, int partition, int* flag) { \
    return ferry_partitioned_arrive(ferry_device_crew_of(kind), preq, partition, 0, flag);        \
  }                                                                                               \
  FERRY_DEVICE_FUNCTION int MPIX_Pawait##suffix(MPIX_Prequest preq, int partition) {              \
    int flag;                                                                                     \
    return ferry_partitioned_arrive(ferry_device_crew_of(kind), preq, partition, 1, &flag);       \
  }
FERRY_PARTITIONED_FORMS(FERRY_PARTITIONED_ARRIVED)
#undef FERRY_PARTITIONED_ARRIVED

#endif

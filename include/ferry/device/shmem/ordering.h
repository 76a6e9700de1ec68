/* ferry/device/shmem/ordering.h - order and completion of the operations that a group has begun
 * together. See ferry/device/shmem.h; shmemx_device_fence and shmemx_device_quiet of one thread are
 * in table.h.
 *
 *   void shmemx_device_fence_work_group(d)
 *   int shmemx_device_quiet_work_group(d)    and those of sub-groups
 *
 * They hold for the calls of all threads of the group, and are barriers of it. */
#ifndef FERRY_DEVICE_SHMEM_ORDERING_H
#define FERRY_DEVICE_SHMEM_ORDERING_H

#include "ferry/device/shmem/table.h"
#include "ferry/device/shmem/types.h"

FERRY_DEVICE_FUNCTION void ferry_shmem_fence(shmemx_device_t d, ferry_device_crew crew) {
  ferry_device_fence();
  ferry_device_crew_barrier(crew); /* all have begun */
  if (crew.thread == 0) {
    shmemx_device_fence(d);
  }
  ferry_device_crew_barrier(crew);
}

FERRY_DEVICE_FUNCTION int ferry_shmem_quiet(shmemx_device_t d, ferry_device_crew crew) {
  int status = SHMEMX_DEVICE_SUCCESS;
  ferry_device_fence();
  ferry_device_crew_barrier(crew); /* all have begun */
  if (crew.thread == 0) {
    status = shmemx_device_quiet(d);
  }
  status = (int)ferry_device_crew_broadcast(crew, (ferry_device_u64)status);
  ferry_device_fence(); /* the data that ferryd has brought, before this thread's loads */
  return status;
}

#define FERRY_SHMEM_ORDERING(suffix, kind)                                    \
  FERRY_DEVICE_FUNCTION void shmemx_device_fence##suffix(shmemx_device_t d) { \
    ferry_shmem_fence(d, ferry_device_crew_of(kind));                         \
  }                                                                           \
  FERRY_DEVICE_FUNCTION int shmemx_device_quiet##suffix(shmemx_device_t d) {  \
    return ferry_shmem_quiet(d, ferry_device_crew_of(kind));                  \
  }
FERRY_DEVICE_GROUP_FORMS(FERRY_SHMEM_NO_TYPE, FERRY_SHMEM_ORDERING)
#undef FERRY_SHMEM_ORDERING

#endif

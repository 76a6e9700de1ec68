/* Kernels of partitioned.cc. */
#include "ferry/device/partitioned.h"

FERRY_DEVICE_FUNCTION ferry_device_u8 byte_of(ferry_device_u32 seed, ferry_device_u64 place) {
  return (ferry_device_u8)(seed * 31 + place * 7 + (place >> 8));
}

/* Groups fill their partitions and ready them as groups, or each thread its own ones; then all wait
 * for those of the other rank, and look at every byte. */
FERRY_DEVICE_KERNEL ready_and_await(MPIX_Prequest send, MPIX_Prequest receive,
                                    FERRY_DEVICE_GLOBAL ferry_device_u8* sent,
                                    const FERRY_DEVICE_GLOBAL ferry_device_u8* received,
                                    int partitions, ferry_device_u64 bytes, ferry_device_u32 seed,
                                    ferry_device_u32 peers_seed, int by_threads,
                                    FERRY_DEVICE_GLOBAL ferry_device_u32* wrong) {
  const ferry_device_u64 mine = ferry_device_group_thread();
  const ferry_device_u64 size = ferry_device_group_size();
  const int group = (int)ferry_device_group();
  const int groups = (int)(ferry_device_thread_count() / size);
  ferry_device_u32 found = 0;
  ferry_device_u64 i;
  int partition;
  if (by_threads) {
    for (partition = (int)ferry_device_thread(); partition < partitions;
         partition += (int)ferry_device_thread_count()) {
      for (i = partition * bytes; i < (partition + 1) * bytes; ++i) {
        sent[i] = byte_of(seed, i);
      }
      found += MPIX_Pready(partition, send) != MPIX_DEVICE_SUCCESS;
    }
    ferry_device_group_barrier();
  } else {
    for (partition = group; partition < partitions; partition += groups) {
      for (i = partition * bytes + mine; i < (partition + 1) * bytes; i += size) {
        sent[i] = byte_of(seed, i);
      }
      found += MPIX_Pready_block(partition, send) != MPIX_DEVICE_SUCCESS;
    }
  }
  for (partition = 0; partition < partitions; ++partition) {
    found += MPIX_Pawait_block(receive, partition) != MPIX_DEVICE_SUCCESS;
    for (i = partition * bytes + mine; i < (partition + 1) * bytes; i += size) {
      found += received[i] != byte_of(peers_seed, i);
    }
  }
  wrong[ferry_device_thread()] = found;
}

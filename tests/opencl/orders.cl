/* What platform.h and atomics.h promise of orders, between two work-groups (or a group and the
 * host) that run at the same time: each kernel counts what must not be. */
#include "ferry/device/atomics.h"
#include "ferry/device/groups.h"

/* Group 0 writes `count` items, then their number; group 1 waits for the number, and looks at them. */
FERRY_DEVICE_KERNEL pass_messages(FERRY_DEVICE_GLOBAL ferry_device_u64* flag,
                                  FERRY_DEVICE_GLOBAL ferry_device_u64* answer,
                                  FERRY_DEVICE_GLOBAL ferry_device_u32* items, ferry_device_u64 rounds,
                                  FERRY_DEVICE_GLOBAL ferry_device_u64* wrong) {
  const ferry_device_u32 mine = ferry_device_group_thread();
  const ferry_device_u32 size = ferry_device_group_size();
  ferry_device_u64 round;
  for (round = 1; round <= rounds; ++round) {
    if (ferry_device_group() == 0) {
      items[mine] = (ferry_device_u32)(round * 7 + mine);
      ferry_device_group_barrier();
      if (mine == 0) {
        ferry_device_store_release(flag, round);
        while (ferry_device_load_acquire(answer) != round) {
          ferry_device_pause();
        }
      }
      ferry_device_group_barrier();
    } else {
      if (mine == 0) {
        while (ferry_device_load_acquire(flag) != round) {
          ferry_device_pause();
        }
      }
      ferry_device_group_barrier();
      if (items[size - 1 - mine] != (ferry_device_u32)(round * 7 + size - 1 - mine)) {
        ferry_device_fetch_add(wrong, 1);
      }
      ferry_device_group_barrier();
      if (mine == 0) {
        ferry_device_store_release(answer, round);
      }
    }
  }
}

/* Both store, then look at the other's word: at least one of them sees the other. `seen` counts for
 * each group. The two meet before and after each round. */
FERRY_DEVICE_FUNCTION void meet(FERRY_DEVICE_GLOBAL ferry_device_u64* arrived, ferry_device_u64 all) {
  ferry_device_fetch_add(arrived, 1);
  while (ferry_device_load_acquire(arrived) < all) {
  }
}

FERRY_DEVICE_KERNEL store_and_look(FERRY_DEVICE_GLOBAL ferry_device_u64* words,
                                   FERRY_DEVICE_GLOBAL ferry_device_u64* arrived,
                                   FERRY_DEVICE_GLOBAL ferry_device_u64* saw,
                                   ferry_device_u64 rounds,
                                   FERRY_DEVICE_GLOBAL ferry_device_u64* wrong) {
  const ferry_device_u32 me = ferry_device_group();
  ferry_device_u64 round;
  for (round = 1; round <= rounds; ++round) {
    meet(arrived, 4 * round - 2);
    ferry_device_store_relaxed(words + me * 16, round);
    ferry_device_full_fence();
    ferry_device_store_relaxed(saw + me * 16, ferry_device_load_relaxed(words + (1 - me) * 16));
    meet(arrived, 4 * round);
    if (me == 0 && ferry_device_load_relaxed(saw) != round &&
        ferry_device_load_relaxed(saw + 16) != round) {
      ferry_device_fetch_add(wrong, 1);
    }
  }
}

/* A lock by each of the three operations that may take one, of both widths; what it guards is
 * ordinary memory. One thread of a group at a time: the others of it do not run while it waits. */
FERRY_DEVICE_KERNEL guard(FERRY_DEVICE_GLOBAL ferry_device_u64* lock,
                          FERRY_DEVICE_GLOBAL ferry_device_u32* lock_32,
                          FERRY_DEVICE_GLOBAL ferry_device_u64* guarded, ferry_device_u64 rounds) {
  ferry_device_u64 round;
  for (round = 0; round < rounds; ++round) {
    switch (round % 4) {
      case 0:
        while (ferry_device_exchange(lock, 1) != 0) {
          ferry_device_pause();
        }
        break;
      case 1:
        while (ferry_device_compare_exchange(lock, 0, 1) != 0) {
          ferry_device_pause();
        }
        break;
      case 2:
        while (ferry_device_exchange_32(lock_32, 1) != 0) {
          ferry_device_pause();
        }
        break;
      default:
        while (ferry_device_compare_exchange_32(lock_32, 0, 1) != 0) {
          ferry_device_pause();
        }
        break;
    }
    guarded[round % 4 < 2 ? 0 : 16] += 1;
    if (round % 4 < 2) {
      ferry_device_store_release(lock, 0);
    } else {
      ferry_device_store_release_32(lock_32, 0);
    }
  }
}

/* Every thread adds; and takes bits, as none does before. */
FERRY_DEVICE_KERNEL count(FERRY_DEVICE_GLOBAL ferry_device_u64* sum,
                          FERRY_DEVICE_GLOBAL ferry_device_u32* sum_32,
                          FERRY_DEVICE_GLOBAL ferry_device_u64* broadcast_wrong,
                          ferry_device_u64 rounds) {
  ferry_device_u64 round;
  for (round = 0; round < rounds; ++round) {
    const ferry_device_u64 said =
        ferry_device_group_broadcast(ferry_device_thread() * 1000 + round);
    if (said != (ferry_device_u64)ferry_device_group() * ferry_device_group_size() * 1000 + round) {
      ferry_device_fetch_add(broadcast_wrong, 1);
    }
    ferry_device_fetch_add(sum, 3);
    ferry_device_fetch_add_32(sum_32, 5);
  }
}

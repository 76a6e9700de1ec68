/* Kernels that use ferry/device/partitioned.h in all its forms. */
#include "ferry/device/partitioned.h"

FERRY_DEVICE_KERNEL test_ready(MPIX_Prequest send, const FERRY_DEVICE_GLOBAL int* partitions,
                               FERRY_DEVICE_GLOBAL int* status) {
  const int mine = (int)ferry_device_thread();
  const int group = (int)ferry_device_group();
  int own[2];
  own[0] = mine;
  own[1] = mine + 1;
  status[mine] = MPIX_Pready(mine, send);
  status[mine] += MPIX_Pready_thread(mine, send);
  status[mine] += MPIX_Pready_range(mine, mine + 3, send);
  status[mine] += MPIX_Pready_list(2, own, send);
  status[mine] += MPIX_Pready_warp(group, send);
  status[mine] += MPIX_Pready_range_sub_group(group, group + 1, send);
  status[mine] += MPIX_Pready_list_wave(2, partitions, send);
  status[mine] += MPIX_Pready_block(group, send);
  status[mine] += MPIX_Pready_range_work_group(group, group + 1, send);
  status[mine] += MPIX_Pready_list_wg(2, partitions, send);
}

FERRY_DEVICE_KERNEL test_arrived(MPIX_Prequest receive, FERRY_DEVICE_GLOBAL int* status) {
  const int mine = (int)ferry_device_thread();
  const int group = (int)ferry_device_group();
  int flag = 0;
  status[mine] = MPIX_Parrived(receive, mine, &flag) + flag;
  status[mine] += MPIX_Parrived_warp(receive, group, &flag) + flag;
  status[mine] += MPIX_Parrived_block(receive, group, &flag) + flag;
  status[mine] += MPIX_Pawait(receive, mine);
  status[mine] += MPIX_Pawait_sub_group(receive, group);
  status[mine] += MPIX_Pawait_work_group(receive, group);
}

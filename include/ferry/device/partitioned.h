/* ferry/device/partitioned.h - partitioned communication of MPI from kernels: the threads of a
 * device mark partitions of a send as ready, which moves them, and ask which of a receive have
 * arrived.
 *
 * After "Design and Implementation of MPI-Native GPU-Initiated MPI Partitioned Communication"
 * (Temucin and others, ExaMPI 2024). The host makes an MPIX_Prequest of a partitioned request once
 * (MPIX_Prequest_create, mpix.h), starts the request for each round (MPI_Start), launches kernels
 * that take the Prequest, and completes the round (MPI_Wait).
 *
 *   FERRY_DEVICE_KERNEL step(MPIX_Prequest send, MPIX_Prequest receive,
 *                            FERRY_DEVICE_GLOBAL float* row) {
 *     const int mine = (int)ferry_device_group();
 *     ... fills partition `mine` of the send's buffer with all threads of the group ...
 *     MPIX_Pready_block(mine, send);
 *     if (MPIX_Pawait_block(receive, mine) == MPIX_DEVICE_SUCCESS) { ... uses what has come ... }
 *   }
 *
 *   int MPIX_Pready(int partition, MPIX_Prequest preq)
 *   int MPIX_Pready_range(int low, int high, MPIX_Prequest preq)     both included
 *   int MPIX_Pready_list(int length, const int* partitions, MPIX_Prequest preq)
 *   int MPIX_Parrived(MPIX_Prequest preq, int partition, int* flag)
 *   int MPIX_Pawait(MPIX_Prequest preq, int partition)               returns once it has arrived
 *
 * One header for OpenCL C 2.0, CUDA, HIP, and C++17 for emulated devices, as platform.h is.
 *
 * Threads: a call is one thread's (also with _thread behind its name). With _block (also
 * _work_group, _wg) all threads of the work-group call it together, with the same arguments, and
 * count as one: what all of them have stored before is ready, or may be read after. With _warp
 * (_sub_group, _wave) those of the sub-group. Of a partition that a group fills, one call by the
 * group costs least.
 *
 * How data move: neighbouring partitions form *units* (MPI_Psend_init says how large). The thread
 * or group that readies the last partition of a unit copies the whole unit into the receiver's
 * memory, if kernels reach that (kernel copy: no host takes part); or asks ferryd to (daemon copy);
 * or leaves it to the hosts, as while the receiver has not started its round. A unit of which some
 * partitions are missing is moved by the hosts after a while, so waiting for the answer to one
 * partition ends. A partition is readied by a kernel or by the host, as the program likes.
 *
 * Errors: calls return 0 or a number below, the same to all threads of a group. Of those that ready
 * partitions the first error of a round is also told by the host's next MPI_Wait or MPI_Test of the
 * request, which returns MPI_ERR_REQUEST (or the class of what kept a kernel from asking ferryd)
 * and leaves the request active. A request that ferryd refuses ends the round, on both sides, as
 * other failures do. A send to MPI_PROC_NULL is over at its start: its kernels may ready at any
 * time after that, and a partition that they ready twice is no error.
 *
 * Blocking: only MPIX_Pawait waits for another process: until the partition arrives, or the round
 * has failed because its sender, or the daemon, has died. Threads that wait occupy the device:
 * launch as many groups as are resident at once. Calls that ready may wait until ferryd has taken
 * earlier requests. */
#ifndef FERRY_DEVICE_PARTITIONED_H
#define FERRY_DEVICE_PARTITIONED_H

#include "ferry/device/partitioned/arrivals.h"
#include "ferry/device/partitioned/prequest.h"
#include "ferry/device/partitioned/ready.h"

#endif

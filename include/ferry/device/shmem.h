/* ferry/device/shmem.h - OpenSHMEM for kernels: the threads of a device put into, get from and wait
 * for the symmetric heaps of all PEs of their node by loads and stores, in which no host and no
 * daemon takes part, and for those of other nodes by their ferryd, which they ask by a ring.
 *
 * After "Intel SHMEM" (sections III-C and III-F). The calls are those of OpenSHMEM 1.5 (Remote
 * Memory Access, Atomic Memory Operations, Signaling Operations, Collective Routines,
 * Point-To-Point Synchronization, Memory Ordering) with `shmemx_device_` for `shmem_`. A table
 * takes the place of a context and of a team: shmemx_device_prepare (shmemx.h) makes it on the
 * host, for a team and a device. PEs count in that team.
 *
 *   FERRY_DEVICE_KERNEL step(const FERRY_DEVICE_GLOBAL void* table,
 *                            FERRY_DEVICE_GLOBAL long* row) {
 *     const shmemx_device_t d = shmemx_device_open(table);
 *     const int next = (shmemx_device_my_pe(d) + 1) % shmemx_device_n_pes(d);
 *     shmemx_device_long_put_work_group(d, row, row + 64, 64, next);
 *     shmemx_device_sync_work_group(d);
 *   }
 *
 * One header for OpenCL C 2.0, CUDA, HIP, and C++17 for emulated devices, as platform.h is. TYPE
 * below stands for OpenSHMEM's name of a type, all but long double. In C++ calls may leave it out:
 * the arguments say it (shmem/overloads.h).
 *
 * Threads: a call is one thread's. With _work_group (also _block, _wg) behind its name all threads
 * of the work-group call it together, with the same arguments, and share the work; with _sub_group
 * (_warp, _wave) those of the sub-group. Launches are of one dimension.
 *
 * Memory: `dest`, or `source`, of another PE is in the symmetric heap; the other end is any memory
 * that the device reaches. For PEs of other nodes this PE's end should be in the symmetric heap,
 * too: else the bytes travel a few at a time. Data there that other threads of the group have
 * written need a barrier of the group (groups.h) before the call.
 *
 * Errors: calls return 0 or a status of ferry.h, the same to all threads of a group:
 * SHMEMX_DEVICE_ERR_... in table.h. Calls that return a value return 0 where they fail, and
 * shmemx_device_quiet returns the error; so it does for an operation that fails at another node
 * after its call. A call that has failed has written nothing, but for collectives and strided
 * calls. A collective that fails at one PE fails at all, and ends the table for collectives
 * (collectives.h).
 *
 * Blocking: waits and collectives wait for other PEs; gets and fetches from other nodes for their
 * answer, puts of more than 16 bytes until their source may be changed, quiet for the end of all.
 * They end with an error when a PE of the team has died, or the daemon; the others do not block,
 * but while the ring is full. */
#ifndef FERRY_DEVICE_SHMEM_H
#define FERRY_DEVICE_SHMEM_H

#include "ferry/device/shmem/atomics.h"
#include "ferry/device/shmem/collectives.h"
#include "ferry/device/shmem/ordering.h"
#include "ferry/device/shmem/overloads.h"
#include "ferry/device/shmem/puts_gets.h"
#include "ferry/device/shmem/reductions.h"
#include "ferry/device/shmem/strided.h"
#include "ferry/device/shmem/table.h"
#include "ferry/device/shmem/waits.h"

#endif

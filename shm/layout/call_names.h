// The functions that a rank can be shown to be in, or to have begun (shm/layout/call_layout.h).
//
// One line each: its number, its constant, its name and its kind. The numbers lie in shared memory.
// Functions that differ in the type of their elements or counts share a line: MPI_Send stands for
// MPI_Send_c, too, shmem_wait_until for shmem_long_wait_until, shmem_put for shmem_put64. So do a
// collective and its nonblocking and persistent forms: MPI_Bcast, MPI_Ibcast, MPI_Bcast_init; an
// access to a file and its nonblocking form, or its begin and end.
#pragma once

#include <cstdint>

namespace ferry::shm {

enum class CallKind : uint8_t {
  kNone,
  kPointToPoint,  // sends and receives, and what ends buffered sends
  kCompletion,    // of requests
  kProbe,
  kCollective,    // all ranks of a communicator or team meet
  kCommunicator,  // the making and the end of communicators and teams, in which ranks meet
  kWindow,        // windows: their making, end and synchronisation
  kOneSided,      // an operation in another rank's memory
  kPartitioned,
  kLife,    // begins or ends the library; all ranks meet
  kWait,    // for a word of this rank's memory, which any rank may change
  kMemory,  // symmetric memory; all PEs meet
  kQuiet,   // for one-sided operations of this rank
  kLock,
  kMatch,  // of persistent requests, into pairs
  kQueue,  // of streams and devices
  kFile,   // of files, also where ranks meet
};

// clang-format off
#define FERRY_CALLS(X)                                                                            \
  X(1, kMpiSend, "MPI_Send", kPointToPoint)                                                       \
  X(2, kMpiBsend, "MPI_Bsend", kPointToPoint)                                                     \
  X(3, kMpiSsend, "MPI_Ssend", kPointToPoint)                                                     \
  X(4, kMpiRsend, "MPI_Rsend", kPointToPoint)                                                     \
  X(5, kMpiRecv, "MPI_Recv", kPointToPoint)                                                       \
  X(6, kMpiSendrecv, "MPI_Sendrecv", kPointToPoint)                                               \
  X(7, kMpiSendrecvReplace, "MPI_Sendrecv_replace", kPointToPoint)                                \
  X(8, kMpiIsend, "MPI_Isend", kPointToPoint)                                                     \
  X(9, kMpiIbsend, "MPI_Ibsend", kPointToPoint)                                                   \
  X(10, kMpiIssend, "MPI_Issend", kPointToPoint)                                                  \
  X(11, kMpiIrsend, "MPI_Irsend", kPointToPoint)                                                  \
  X(12, kMpiIrecv, "MPI_Irecv", kPointToPoint)                                                    \
  X(13, kMpiIsendrecv, "MPI_Isendrecv", kPointToPoint)                                            \
  X(14, kMpiIsendrecvReplace, "MPI_Isendrecv_replace", kPointToPoint)                             \
  X(15, kMpiMrecv, "MPI_Mrecv", kPointToPoint)                                                    \
  X(16, kMpiImrecv, "MPI_Imrecv", kPointToPoint)                                                  \
  X(17, kMpiSendInit, "MPI_Send_init", kPointToPoint)                                             \
  X(18, kMpiBsendInit, "MPI_Bsend_init", kPointToPoint)                                           \
  X(19, kMpiSsendInit, "MPI_Ssend_init", kPointToPoint)                                           \
  X(20, kMpiRsendInit, "MPI_Rsend_init", kPointToPoint)                                           \
  X(21, kMpiRecvInit, "MPI_Recv_init", kPointToPoint)                                             \
  X(22, kMpiBufferDetach, "MPI_Buffer_detach", kPointToPoint)                                     \
  X(23, kMpiBufferFlush, "MPI_Buffer_flush", kPointToPoint)                                       \
  X(24, kMpiBufferIflush, "MPI_Buffer_iflush", kPointToPoint)                                     \
  X(25, kMpiCommDetachBuffer, "MPI_Comm_detach_buffer", kPointToPoint)                            \
  X(26, kMpiCommFlushBuffer, "MPI_Comm_flush_buffer", kPointToPoint)                              \
  X(27, kMpiCommIflushBuffer, "MPI_Comm_iflush_buffer", kPointToPoint)                            \
  X(28, kMpiSessionDetachBuffer, "MPI_Session_detach_buffer", kPointToPoint)                      \
  X(29, kMpiSessionFlushBuffer, "MPI_Session_flush_buffer", kPointToPoint)                        \
  X(30, kMpiSessionIflushBuffer, "MPI_Session_iflush_buffer", kPointToPoint)                      \
  X(31, kMpiCancel, "MPI_Cancel", kPointToPoint)                                                  \
  X(32, kMpiWait, "MPI_Wait", kCompletion)                                                        \
  X(33, kMpiWaitall, "MPI_Waitall", kCompletion)                                                  \
  X(34, kMpiWaitany, "MPI_Waitany", kCompletion)                                                  \
  X(35, kMpiWaitsome, "MPI_Waitsome", kCompletion)                                                \
  X(36, kMpiTest, "MPI_Test", kCompletion)                                                        \
  X(37, kMpiTestall, "MPI_Testall", kCompletion)                                                  \
  X(38, kMpiTestany, "MPI_Testany", kCompletion)                                                  \
  X(39, kMpiTestsome, "MPI_Testsome", kCompletion)                                                \
  X(40, kMpiRequestGetStatus, "MPI_Request_get_status", kCompletion)                              \
  X(41, kMpiRequestFree, "MPI_Request_free", kCompletion)                                         \
  X(42, kMpiStart, "MPI_Start", kCompletion)                                                      \
  X(43, kMpiStartall, "MPI_Startall", kCompletion)                                                \
  X(44, kMpiProbe, "MPI_Probe", kProbe)                                                           \
  X(45, kMpiMprobe, "MPI_Mprobe", kProbe)                                                         \
  X(46, kMpiIprobe, "MPI_Iprobe", kProbe)                                                         \
  X(47, kMpiImprobe, "MPI_Improbe", kProbe)                                                       \
  X(48, kMpiBarrier, "MPI_Barrier", kCollective)                                                  \
  X(49, kMpiBcast, "MPI_Bcast", kCollective)                                                      \
  X(50, kMpiGather, "MPI_Gather", kCollective)                                                    \
  X(51, kMpiGatherv, "MPI_Gatherv", kCollective)                                                  \
  X(52, kMpiScatter, "MPI_Scatter", kCollective)                                                  \
  X(53, kMpiScatterv, "MPI_Scatterv", kCollective)                                                \
  X(54, kMpiAllgather, "MPI_Allgather", kCollective)                                              \
  X(55, kMpiAllgatherv, "MPI_Allgatherv", kCollective)                                            \
  X(56, kMpiAlltoall, "MPI_Alltoall", kCollective)                                                \
  X(57, kMpiAlltoallv, "MPI_Alltoallv", kCollective)                                              \
  X(58, kMpiAlltoallw, "MPI_Alltoallw", kCollective)                                              \
  X(59, kMpiReduce, "MPI_Reduce", kCollective)                                                    \
  X(60, kMpiAllreduce, "MPI_Allreduce", kCollective)                                              \
  X(61, kMpiReduceScatter, "MPI_Reduce_scatter", kCollective)                                     \
  X(62, kMpiReduceScatterBlock, "MPI_Reduce_scatter_block", kCollective)                          \
  X(63, kMpiScan, "MPI_Scan", kCollective)                                                        \
  X(64, kMpiExscan, "MPI_Exscan", kCollective)                                                    \
  X(65, kMpiNeighborAllgather, "MPI_Neighbor_allgather", kCollective)                             \
  X(66, kMpiNeighborAllgatherv, "MPI_Neighbor_allgatherv", kCollective)                           \
  X(67, kMpiNeighborAlltoall, "MPI_Neighbor_alltoall", kCollective)                               \
  X(68, kMpiNeighborAlltoallv, "MPI_Neighbor_alltoallv", kCollective)                             \
  X(69, kMpiNeighborAlltoallw, "MPI_Neighbor_alltoallw", kCollective)                             \
  X(70, kMpiCommDup, "MPI_Comm_dup", kCommunicator)                                               \
  X(71, kMpiCommDupWithInfo, "MPI_Comm_dup_with_info", kCommunicator)                             \
  X(72, kMpiCommIdup, "MPI_Comm_idup", kCommunicator)                                             \
  X(73, kMpiCommIdupWithInfo, "MPI_Comm_idup_with_info", kCommunicator)                           \
  X(74, kMpiCommCreate, "MPI_Comm_create", kCommunicator)                                         \
  X(75, kMpiCommCreateGroup, "MPI_Comm_create_group", kCommunicator)                              \
  X(76, kMpiCommCreateFromGroup, "MPI_Comm_create_from_group", kCommunicator)                     \
  X(77, kMpiCommSplit, "MPI_Comm_split", kCommunicator)                                           \
  X(78, kMpiCommSplitType, "MPI_Comm_split_type", kCommunicator)                                  \
  X(79, kMpiCommFree, "MPI_Comm_free", kCommunicator)                                             \
  X(80, kMpiCommDisconnect, "MPI_Comm_disconnect", kCommunicator)                                 \
  X(81, kMpiCommAccept, "MPI_Comm_accept", kCommunicator)                                         \
  X(82, kMpiCommConnect, "MPI_Comm_connect", kCommunicator)                                       \
  X(83, kMpiCommJoin, "MPI_Comm_join", kCommunicator)                                             \
  X(84, kMpiCommSpawn, "MPI_Comm_spawn", kCommunicator)                                           \
  X(85, kMpiCommSpawnMultiple, "MPI_Comm_spawn_multiple", kCommunicator)                          \
  X(86, kMpiIntercommCreate, "MPI_Intercomm_create", kCommunicator)                               \
  X(87, kMpiIntercommCreateFromGroups, "MPI_Intercomm_create_from_groups", kCommunicator)         \
  X(88, kMpiIntercommMerge, "MPI_Intercomm_merge", kCommunicator)                                 \
  X(89, kMpiCartCreate, "MPI_Cart_create", kCommunicator)                                         \
  X(90, kMpiCartSub, "MPI_Cart_sub", kCommunicator)                                               \
  X(91, kMpiGraphCreate, "MPI_Graph_create", kCommunicator)                                       \
  X(92, kMpiDistGraphCreate, "MPI_Dist_graph_create", kCommunicator)                              \
  X(93, kMpiDistGraphCreateAdjacent, "MPI_Dist_graph_create_adjacent", kCommunicator)             \
  X(94, kMpiWinCreate, "MPI_Win_create", kWindow)                                                 \
  X(95, kMpiWinAllocate, "MPI_Win_allocate", kWindow)                                             \
  X(96, kMpiWinAllocateShared, "MPI_Win_allocate_shared", kWindow)                                \
  X(97, kMpiWinCreateDynamic, "MPI_Win_create_dynamic", kWindow)                                  \
  X(98, kMpiWinFree, "MPI_Win_free", kWindow)                                                     \
  X(99, kMpiWinFence, "MPI_Win_fence", kWindow)                                                   \
  X(100, kMpiWinLock, "MPI_Win_lock", kWindow)                                                    \
  X(101, kMpiWinLockAll, "MPI_Win_lock_all", kWindow)                                             \
  X(102, kMpiWinUnlock, "MPI_Win_unlock", kWindow)                                                \
  X(103, kMpiWinUnlockAll, "MPI_Win_unlock_all", kWindow)                                         \
  X(104, kMpiWinFlush, "MPI_Win_flush", kWindow)                                                  \
  X(105, kMpiWinFlushAll, "MPI_Win_flush_all", kWindow)                                           \
  X(106, kMpiWinFlushLocal, "MPI_Win_flush_local", kWindow)                                       \
  X(107, kMpiWinFlushLocalAll, "MPI_Win_flush_local_all", kWindow)                                \
  X(108, kMpiWinStart, "MPI_Win_start", kWindow)                                                  \
  X(109, kMpiWinComplete, "MPI_Win_complete", kWindow)                                            \
  X(110, kMpiWinPost, "MPI_Win_post", kWindow)                                                    \
  X(111, kMpiWinWait, "MPI_Win_wait", kWindow)                                                    \
  X(112, kMpiWinTest, "MPI_Win_test", kWindow)                                                    \
  X(113, kMpiWinSync, "MPI_Win_sync", kWindow)                                                    \
  X(114, kMpiPut, "MPI_Put", kOneSided)                                                           \
  X(115, kMpiGet, "MPI_Get", kOneSided)                                                           \
  X(116, kMpiAccumulate, "MPI_Accumulate", kOneSided)                                             \
  X(117, kMpiGetAccumulate, "MPI_Get_accumulate", kOneSided)                                      \
  X(118, kMpiFetchAndOp, "MPI_Fetch_and_op", kOneSided)                                           \
  X(119, kMpiCompareAndSwap, "MPI_Compare_and_swap", kOneSided)                                   \
  X(120, kMpiRput, "MPI_Rput", kOneSided)                                                         \
  X(121, kMpiRget, "MPI_Rget", kOneSided)                                                         \
  X(122, kMpiRaccumulate, "MPI_Raccumulate", kOneSided)                                           \
  X(123, kMpiRgetAccumulate, "MPI_Rget_accumulate", kOneSided)                                    \
  X(124, kMpiPsendInit, "MPI_Psend_init", kPartitioned)                                           \
  X(125, kMpiPrecvInit, "MPI_Precv_init", kPartitioned)                                           \
  X(126, kMpiPready, "MPI_Pready", kPartitioned)                                                  \
  X(127, kMpiPreadyRange, "MPI_Pready_range", kPartitioned)                                       \
  X(128, kMpiPreadyList, "MPI_Pready_list", kPartitioned)                                         \
  X(129, kMpiParrived, "MPI_Parrived", kPartitioned)                                              \
  X(130, kMpiInit, "MPI_Init", kLife)                                                             \
  X(131, kMpiInitThread, "MPI_Init_thread", kLife)                                                \
  X(132, kMpiFinalize, "MPI_Finalize", kLife)                                                     \
  X(133, kMpiSessionInit, "MPI_Session_init", kLife)                                              \
  X(134, kMpiSessionFinalize, "MPI_Session_finalize", kLife)                                      \
  X(135, kMpiAbort, "MPI_Abort", kLife)                                                           \
  X(136, kShmemInit, "shmem_init", kLife)                                                         \
  X(137, kShmemFinalize, "shmem_finalize", kLife)                                                 \
  X(138, kShmemWaitUntil, "shmem_wait_until", kWait)                                              \
  X(139, kShmemWaitUntilAll, "shmem_wait_until_all", kWait)                                       \
  X(140, kShmemWaitUntilAny, "shmem_wait_until_any", kWait)                                       \
  X(141, kShmemWaitUntilSome, "shmem_wait_until_some", kWait)                                     \
  X(142, kShmemWaitUntilAllVector, "shmem_wait_until_all_vector", kWait)                          \
  X(143, kShmemWaitUntilAnyVector, "shmem_wait_until_any_vector", kWait)                          \
  X(144, kShmemWaitUntilSomeVector, "shmem_wait_until_some_vector", kWait)                        \
  X(145, kShmemSignalWaitUntil, "shmem_signal_wait_until", kWait)                                 \
  X(146, kShmemTest, "shmem_test", kWait)                                                         \
  X(147, kShmemBarrier, "shmem_barrier", kCollective)                                             \
  X(148, kShmemBarrierAll, "shmem_barrier_all", kCollective)                                      \
  X(149, kShmemSync, "shmem_sync", kCollective)                                                   \
  X(150, kShmemSyncAll, "shmem_sync_all", kCollective)                                            \
  X(151, kShmemTeamSync, "shmem_team_sync", kCollective)                                          \
  X(152, kShmemBroadcast, "shmem_broadcast", kCollective)                                         \
  X(153, kShmemCollect, "shmem_collect", kCollective)                                             \
  X(154, kShmemFcollect, "shmem_fcollect", kCollective)                                           \
  X(155, kShmemAlltoall, "shmem_alltoall", kCollective)                                           \
  X(156, kShmemAlltoalls, "shmem_alltoalls", kCollective)                                         \
  X(157, kShmemReduce, "shmem_reduce", kCollective)                                               \
  X(158, kShmemScan, "shmem_scan", kCollective)                                                   \
  X(159, kShmemTeamSplitStrided, "shmem_team_split_strided", kCommunicator)                       \
  X(160, kShmemTeamSplit2d, "shmem_team_split_2d", kCommunicator)                                 \
  X(161, kShmemTeamDestroy, "shmem_team_destroy", kCommunicator)                                  \
  X(162, kShmemTeamCreateCtx, "shmem_team_create_ctx", kCommunicator)                             \
  X(163, kShmemCtxDestroy, "shmem_ctx_destroy", kCommunicator)                                    \
  X(164, kShmemMalloc, "shmem_malloc", kMemory)                                                   \
  X(165, kShmemCalloc, "shmem_calloc", kMemory)                                                   \
  X(166, kShmemRealloc, "shmem_realloc", kMemory)                                                 \
  X(167, kShmemAlign, "shmem_align", kMemory)                                                     \
  X(168, kShmemFree, "shmem_free", kMemory)                                                       \
  X(169, kShmemMallocWithHints, "shmem_malloc_with_hints", kMemory)                               \
  X(170, kShmemPut, "shmem_put", kOneSided)                                                       \
  X(171, kShmemGet, "shmem_get", kOneSided)                                                       \
  X(172, kShmemIput, "shmem_iput", kOneSided)                                                     \
  X(173, kShmemIget, "shmem_iget", kOneSided)                                                     \
  X(174, kShmemP, "shmem_p", kOneSided)                                                           \
  X(175, kShmemG, "shmem_g", kOneSided)                                                           \
  X(176, kShmemPutNbi, "shmem_put_nbi", kOneSided)                                                \
  X(177, kShmemGetNbi, "shmem_get_nbi", kOneSided)                                                \
  X(178, kShmemPutSignal, "shmem_put_signal", kOneSided)                                          \
  X(179, kShmemPutSignalNbi, "shmem_put_signal_nbi", kOneSided)                                   \
  X(180, kShmemIbput, "shmem_ibput", kOneSided)                                                   \
  X(181, kShmemIbget, "shmem_ibget", kOneSided)                                                   \
  X(182, kShmemAtomic, "shmem_atomic", kOneSided)                                                 \
  X(183, kShmemQuiet, "shmem_quiet", kQuiet)                                                      \
  X(184, kShmemFence, "shmem_fence", kQuiet)                                                      \
  X(185, kShmemPeQuiet, "shmem_pe_quiet", kQuiet)                                                 \
  X(186, kShmemSetLock, "shmem_set_lock", kLock)                                                  \
  X(187, kShmemClearLock, "shmem_clear_lock", kLock)                                              \
  X(188, kShmemTestLock, "shmem_test_lock", kLock)                                                \
  X(189, kFerryInit, "ferry_init", kLife)                                                         \
  X(190, kFerryFinalize, "ferry_finalize", kLife)                                                 \
  X(191, kFerrySend, "ferry_send", kPointToPoint)                                                 \
  X(192, kFerryRecv, "ferry_recv", kPointToPoint)                                                 \
  X(193, kFerryIsend, "ferry_isend", kPointToPoint)                                               \
  X(194, kFerryIrecv, "ferry_irecv", kPointToPoint)                                               \
  X(195, kFerrySendInit, "ferry_send_init", kPointToPoint)                                        \
  X(196, kFerryRecvInit, "ferry_recv_init", kPointToPoint)                                        \
  X(197, kFerryStart, "ferry_start", kPointToPoint)                                               \
  X(198, kFerryWait, "ferry_wait", kCompletion)                                                   \
  X(199, kFerryWaitall, "ferry_waitall", kCompletion)                                             \
  X(200, kFerryWaitany, "ferry_waitany", kCompletion)                                             \
  X(201, kFerryTest, "ferry_test", kCompletion)                                                   \
  X(202, kFerryProbe, "ferry_probe", kProbe)                                                      \
  X(203, kFerryIprobe, "ferry_iprobe", kProbe)                                                    \
  X(204, kFerryMatch, "ferry_match", kMatch)                                                      \
  X(205, kFerryMatchall, "ferry_matchall", kMatch)                                                \
  X(206, kFerryImatch, "ferry_imatch", kMatch)                                                    \
  X(207, kFerryBarrier, "ferry_barrier", kCollective)                                             \
  X(208, kFerryPut, "ferry_put", kOneSided)                                                       \
  X(209, kFerryGet, "ferry_get", kOneSided)                                                       \
  X(210, kFerryPutSignal, "ferry_put_signal", kOneSided)                                          \
  X(211, kFerryIput, "ferry_iput", kOneSided)                                                     \
  X(212, kFerryIget, "ferry_iget", kOneSided)                                                     \
  X(213, kFerryAtomic, "ferry_atomic", kOneSided)                                                 \
  X(214, kFerryQuiet, "ferry_quiet", kQuiet)                                                      \
  X(215, kFerryQuietRank, "ferry_quiet_rank", kQuiet)                                             \
  X(216, kFerryFence, "ferry_fence", kQuiet)                                                      \
  X(217, kFerryQueueWait, "ferry_queue_wait", kQueue)                                             \
  X(218, kFerryQueueFree, "ferry_queue_free", kQueue)                                             \
  X(219, kFerryEnqueue, "ferry_enqueue", kQueue)                                                  \
  X(220, kFerryStreamSynchronize, "ferry_stream_synchronize", kQueue)                             \
  X(221, kMpiFileOpen, "MPI_File_open", kFile)                                                    \
  X(222, kMpiFileClose, "MPI_File_close", kFile)                                                  \
  X(223, kMpiFileDelete, "MPI_File_delete", kFile)                                                \
  X(224, kMpiFileSetSize, "MPI_File_set_size", kFile)                                             \
  X(225, kMpiFilePreallocate, "MPI_File_preallocate", kFile)                                      \
  X(226, kMpiFileGetSize, "MPI_File_get_size", kFile)                                             \
  X(227, kMpiFileSync, "MPI_File_sync", kFile)                                                    \
  X(228, kMpiFileSetView, "MPI_File_set_view", kFile)                                             \
  X(229, kMpiFileSetAtomicity, "MPI_File_set_atomicity", kFile)                                   \
  X(230, kMpiFileSeekShared, "MPI_File_seek_shared", kFile)                                       \
  X(231, kMpiFileGetPositionShared, "MPI_File_get_position_shared", kFile)                        \
  X(232, kMpiFileReadAt, "MPI_File_read_at", kFile)                                               \
  X(233, kMpiFileWriteAt, "MPI_File_write_at", kFile)                                             \
  X(234, kMpiFileRead, "MPI_File_read", kFile)                                                    \
  X(235, kMpiFileWrite, "MPI_File_write", kFile)                                                  \
  X(236, kMpiFileReadShared, "MPI_File_read_shared", kFile)                                       \
  X(237, kMpiFileWriteShared, "MPI_File_write_shared", kFile)                                     \
  X(238, kMpiFileReadAtAll, "MPI_File_read_at_all", kFile)                                        \
  X(239, kMpiFileWriteAtAll, "MPI_File_write_at_all", kFile)                                      \
  X(240, kMpiFileReadAll, "MPI_File_read_all", kFile)                                             \
  X(241, kMpiFileWriteAll, "MPI_File_write_all", kFile)                                           \
  X(242, kMpiFileReadOrdered, "MPI_File_read_ordered", kFile)                                     \
  X(243, kMpiFileWriteOrdered, "MPI_File_write_ordered", kFile)
// clang-format on

enum class CallName : uint16_t {
  kNone = 0,
#define FERRY_CALL_CONSTANT(number, constant, text, kind) constant = (number),
  FERRY_CALLS(FERRY_CALL_CONSTANT)
#undef FERRY_CALL_CONSTANT
};

}  // namespace ferry::shm

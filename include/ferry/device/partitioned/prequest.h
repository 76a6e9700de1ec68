/* ferry/device/partitioned/prequest.h - the layout of a Prequest, and the numbers that calls
 * return. See ferry/device/partitioned.h. */
#ifndef FERRY_DEVICE_PARTITIONED_PREQUEST_H
#define FERRY_DEVICE_PARTITIONED_PREQUEST_H

#include "ferry/device/groups.h"
#include "ferry/device/ring_operations.h"

/* The values that calls return: numbers of ferry.h. */
#define MPIX_DEVICE_SUCCESS 0
#define MPIX_DEVICE_ERR_ARGUMENT 2 /* there is no such partition */
#define MPIX_DEVICE_ERR_VERSION 6  /* the kernel was compiled for another version of Ferry */
#define MPIX_DEVICE_ERR_PEER_DIED 14
#define MPIX_DEVICE_ERR_DAEMON_DIED 15
#define MPIX_DEVICE_ERR_NOT_FOUND 19 /* the other side has left MPI */
/* The partition was readied before in this round; or the request was not started, is null, or is a
 * send in place of a receive, or the other way round. */
#define MPIX_DEVICE_ERR_REQUEST 23

/* ---- Layout: mpi/partitioned/prequest.cc fills it in ---- */

#define FERRY_PARTITIONED_VERSION 2u

/* The direction of the request; a collective may send and receive, with the same units. */
#define FERRY_PARTITIONED_SEND 1u
#define FERRY_PARTITIONED_RECEIVE 2u

/* The mover of a unit that a kernel has completed, once the receiver has started its round. */
#define FERRY_PARTITIONED_BY_HOST 0u
#define FERRY_PARTITIONED_BY_KERNEL 1u
#define FERRY_PARTITIONED_BY_DAEMON 2u
#define FERRY_PARTITIONED_NOWHERE 3u /* to MPI_PROC_NULL: counts nothing, moves nothing */

/* A Prequest, in memory that the device reads fast. One counter for each unit follows that of a
 * send. Words count as mpi/partitioned/units.h says: in each round each partition of a unit adds
 * its bit, or those of its pieces. */
struct MPIX_Prequest_object {
  /* Constant. */
  ferry_device_u32 version;
  ferry_device_u32 kind;
  ferry_device_u32 partitions; /* of this side */
  ferry_device_u32 sender_partitions;
  ferry_device_u32 per_unit;        /* of the sender's; the last unit may have fewer */
  ferry_device_u32 way;             /* FERRY_PARTITIONED_BY_..., or _NOWHERE */
  ferry_device_u32 has_atomics;     /* the device's operations on host memory are atomic to CPUs */
  ferry_device_u32 pieces;          /* that a partition travels in; 1, where per_unit is not */
  ferry_device_u64 state;           /* of the request: ferry_partitioned_state, in host memory */
  ferry_device_u64 arrived;         /* the receiver's words of arrivals; 0: out of reach */
  ferry_device_u64 partition_bytes; /* of the sender */
  ferry_device_u64 source;          /* the sender's buffer */
  ferry_device_u64 destination;     /* where its data go, by kernel copy */
  ferry_device_u64 words;           /* the sender's of units, in host memory */
  ferry_device_u64 word_stride;     /* bytes from one unit's to the next one's */
  ferry_device_u64 cleared; /* the address of the word of the last round that may be moved */
  /* Used by daemon copies only. */
  ferry_device_u64 ring;
  ferry_device_u64 ring_words[4];
  ferry_device_u64 ring_producers;
  ferry_device_u32 peer;
  ferry_device_u32 source_region;
  ferry_device_u64 source_offset;
  ferry_device_u32 destination_segment;
  ferry_device_u32 arrived_segment;
  ferry_device_u64 destination_offset;
  ferry_device_u64 arrived_offset;
  ferry_device_u32 state_region;
  ferry_device_u32 leaves_to_waiting; /* 1: to a host thread that waits, not to ferryd */
  ferry_device_u64 state_offset;
  ferry_device_u64 reserved2[7];
  /* Written by the host at the start of each round: the round's number, from 1. */
  ferry_device_u64 round;
  /* Written by kernels: the last round that they know to be cleared. */
  ferry_device_u64 known_cleared;
  /* Written by kernels: the number of units that they have copied, or asked ferryd to copy. */
  ferry_device_u64 moved;
  ferry_device_u64 reserved3[13];
};

typedef FERRY_DEVICE_GLOBAL struct MPIX_Prequest_object* MPIX_Prequest;
#define FERRY_PARTITIONED_NULL ((MPIX_Prequest)0)

/* The words of a unit of the sender's, as mpi/partitioned/shared_words.h has them. */
typedef struct {
  ferry_device_u64 ready;
  ferry_device_u64 taken;
} ferry_partitioned_words;

/* The words of a unit in host memory that kernels, the host and ferryd share. */
typedef struct {
  ferry_device_ring_completion completion; /* by ferryd: of the request that tells of the arrival */
  ferry_device_u64 number;                 /* by kernels: of that request */
  ferry_device_u64 asked;                  /* by kernels: the round in which it was made */
  ferry_device_u64 claimed; /* by the host: the round in which it moves ready ones, bit by bit */
  ferry_device_u64 left;    /* by kernels: the round in which they have found that */
  ferry_device_u64 reserved[2];
} ferry_partitioned_unit;

/* The state of a Prequest in host memory. One ferry_partitioned_unit for each unit follows that of
 * a send. */
typedef struct {
  ferry_device_u64 error;    /* by the host: why waits end */
  ferry_device_u64 attended; /* by the host: the round for whose end a thread waits, or 0 */
  ferry_device_u64 reserved0[14];
  ferry_device_u64 noted; /* by kernels: the first error above 32 bits of its partition, or 0 */
  ferry_device_u64 reserved1[15];
} ferry_partitioned_state;

/* ---- Finding one's way ---- */

FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL ferry_partitioned_state* ferry_partitioned_state_of(
    MPIX_Prequest preq) {
  return (FERRY_DEVICE_GLOBAL ferry_partitioned_state*)preq->state;
}

FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL ferry_partitioned_unit* ferry_partitioned_unit_of(
    MPIX_Prequest preq, ferry_device_u32 unit) {
  return (FERRY_DEVICE_GLOBAL ferry_partitioned_unit*)(ferry_partitioned_state_of(preq) + 1) + unit;
}

FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL ferry_device_u64* ferry_partitioned_counter(
    MPIX_Prequest preq, ferry_device_u32 unit) {
  return (FERRY_DEVICE_GLOBAL ferry_device_u64*)(preq + 1) + unit;
}

FERRY_DEVICE_FUNCTION FERRY_DEVICE_GLOBAL ferry_partitioned_words* ferry_partitioned_words_of(
    MPIX_Prequest preq, ferry_device_u32 unit) {
  return (FERRY_DEVICE_GLOBAL ferry_partitioned_words*)(preq->words + unit * preq->word_stride);
}

/* Returns the bits of the first partitions of a unit. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_partitioned_first_bits(MPIX_Prequest preq,
                                                                    ferry_device_u32 partitions) {
  const ferry_device_u32 count = partitions * preq->pieces;
  return count >= 64 ? ~(ferry_device_u64)0 : ((ferry_device_u64)1 << count) - 1;
}

FERRY_DEVICE_FUNCTION ferry_device_u32 ferry_partitioned_count_in(MPIX_Prequest preq,
                                                                  ferry_device_u32 unit) {
  const ferry_device_u32 rest = preq->sender_partitions - unit * preq->per_unit;
  return rest < preq->per_unit ? rest : preq->per_unit;
}

FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_partitioned_full(MPIX_Prequest preq,
                                                              ferry_device_u32 unit) {
  return ferry_partitioned_first_bits(preq, ferry_partitioned_count_in(preq, unit));
}

/* Returns the bits of the partitions [low, high] of the sender that are in the unit. */
FERRY_DEVICE_FUNCTION ferry_device_u64 ferry_partitioned_bits(MPIX_Prequest preq,
                                                              ferry_device_u32 unit,
                                                              ferry_device_u32 low,
                                                              ferry_device_u32 high) {
  const ferry_device_u32 begin = unit * preq->per_unit;
  const ferry_device_u32 count = ferry_partitioned_count_in(preq, unit);
  const ferry_device_u32 from = low > begin ? low - begin : 0;
  const ferry_device_u32 to = high - begin < count ? high - begin + 1 : count;
  return ferry_partitioned_first_bits(preq, to) & ~ferry_partitioned_first_bits(preq, from);
}

/* Returns 0 if calls can use the Prequest as one of this kind, else an error. */
FERRY_DEVICE_FUNCTION int ferry_partitioned_check(MPIX_Prequest preq, ferry_device_u32 kind) {
  if (preq == FERRY_PARTITIONED_NULL) {
    return MPIX_DEVICE_ERR_REQUEST;
  }
  if (preq->version != FERRY_PARTITIONED_VERSION) {
    return MPIX_DEVICE_ERR_VERSION;
  }
  return (preq->kind & kind) != 0 ? MPIX_DEVICE_SUCCESS : MPIX_DEVICE_ERR_REQUEST;
}

/* ---- Names ---- */

/* M(suffix, kind) for each of the forms of a call. */
#define FERRY_PARTITIONED_ONE(M, suffix, kind) M(suffix, kind)
#define FERRY_PARTITIONED_FORMS(M)             \
  FERRY_DEVICE_FORMS(FERRY_PARTITIONED_ONE, M) \
  M(_thread, FERRY_DEVICE_CREW_THREAD)

#endif

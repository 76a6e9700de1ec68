/* types.h - OpenSHMEM's handles, structures and constants (OpenSHMEM 1.5, with the
 * additions of 1.6). See shmem.h.
 *
 * Programs that were compiled with these values keep them: none is ever changed.
 */
#ifndef FERRY_SHMEM_TYPES_H_
#define FERRY_SHMEM_TYPES_H_

#include <stddef.h>
#include <stdint.h>

/* ---- Version --------------------------------------------------------------------------------- */
#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_VENDOR_STRING "Ferry OpenSHMEM"
#define SHMEM_MAX_NAME_LEN 256

/* ---- Contexts and teams ---------------------------------------------------------------------- */
/* A handle belongs to the PE that has it. The invalid handle is null. The predefined ones are
 * constants, good in initializers of static variables too; the objects of other handles belong to
 * the library. */
typedef struct ferry_shmem_context* shmem_ctx_t;
typedef struct ferry_shmem_team* shmem_team_t;

#define SHMEM_CTX_INVALID ((shmem_ctx_t)0)
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)1)
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD ((shmem_team_t)1)  /* all PEs */
#define SHMEM_TEAM_SHARED ((shmem_team_t)2) /* PEs whose memory loads and stores reach */

/* The wishes of a team's creator; the mask names the members that are set. */
typedef struct {
  int num_contexts; /* contexts that each PE is going to create for the team */
} shmem_team_config_t;
#define SHMEM_TEAM_NUM_CONTEXTS 1L

/* Options of a context, promises of the program, combined by `|`. */
#define SHMEM_CTX_SERIALIZED 1L /* no two threads use it at the same time */
#define SHMEM_CTX_PRIVATE 2L    /* only the thread that created it uses it */
#define SHMEM_CTX_NOSTORE 4L    /* its fence and quiet need not order stores by shmem_ptr */

/* Hints for a stretch of calls on a context (1.6). */
typedef struct {
  size_t total_ops; /* the largest number of operations */
} shmem_ctx_session_config_t;
#define SHMEM_CTX_SESSION_BATCH 1L     /* many small operations: rate counts, not latency */
#define SHMEM_CTX_SESSION_TOTAL_OPS 1L /* the mask of total_ops */

/* ---- Thread levels of shmem_init_thread ------------------------------------------------------ */
#define SHMEM_THREAD_SINGLE 0     /* the process has one thread */
#define SHMEM_THREAD_FUNNELED 1   /* only the thread that initialized calls */
#define SHMEM_THREAD_SERIALIZED 2 /* any thread calls, one at a time */
#define SHMEM_THREAD_MULTIPLE 3   /* any thread calls at any time */

/* ---- Comparisons of waits and tests ---------------------------------------------------------- */
#define SHMEM_CMP_EQ 1
#define SHMEM_CMP_NE 2
#define SHMEM_CMP_GT 3
#define SHMEM_CMP_GE 4
#define SHMEM_CMP_LT 5
#define SHMEM_CMP_LE 6

/* ---- Changes of the signal by a put with signal ---------------------------------------------- */
#define SHMEM_SIGNAL_SET 1
#define SHMEM_SIGNAL_ADD 2

/* ---- Hints of shmem_malloc_with_hints, combined by `|` --------------------------------------- */
#define SHMEM_MALLOC_ATOMICS_REMOTE 1L /* mostly for atomics of other PEs */
#define SHMEM_MALLOC_SIGNAL_REMOTE 2L  /* mostly for signals from other PEs */

/* ---- Work arrays of the deprecated collectives ----------------------------------------------- */
/* Ferry needs none: the sizes are the least that a C array can have. */
#define SHMEM_SYNC_VALUE 0L
#define SHMEM_SYNC_SIZE 1
#define SHMEM_BARRIER_SYNC_SIZE 1
#define SHMEM_BCAST_SYNC_SIZE 1
#define SHMEM_COLLECT_SYNC_SIZE 1
#define SHMEM_REDUCE_SYNC_SIZE 1
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1
#define SHMEM_ALLTOALL_SYNC_SIZE 1
#define SHMEM_ALLTOALLS_SYNC_SIZE 1

/* ---- Deprecated spellings (1.3) -------------------------------------------------------------- */
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_GE SHMEM_CMP_GE
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE
#define _SHMEM_ALLTOALL_SYNC_SIZE SHMEM_ALLTOALL_SYNC_SIZE
#define _SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_ALLTOALLS_SYNC_SIZE

/* ---- Of these headers themselves ------------------------------------------------------------- */
#if defined(__GNUC__)
#define FERRY_SHMEM_NORETURN __attribute__((noreturn))
#else
#define FERRY_SHMEM_NORETURN
#endif

/* ---- Complex numbers, under one name for C and C++ ------------------------------------------- */
#ifdef __cplusplus
#include <complex>
typedef std::complex<float> ferry_shmem_complexf;
typedef std::complex<double> ferry_shmem_complexd;
/* C's complex types, which gcc and clang have in C++, too: calls take both kinds. */
#if defined(__GNUC__) && !defined(__CUDACC__) && !defined(__NVCOMPILER)
#define FERRY_SHMEM_C_COMPLEX 1
__extension__ typedef float _Complex ferry_shmem_c_complexf;
__extension__ typedef double _Complex ferry_shmem_c_complexd;
#endif
#else
typedef float _Complex ferry_shmem_complexf;
typedef double _Complex ferry_shmem_complexd;
#endif

#endif /* FERRY_SHMEM_TYPES_H_ */

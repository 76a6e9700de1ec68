/* One case: a call of one function of OpenSHMEM, by both PEs of a job, each on the other's memory,
 * with its result compared to what plain C says. For C and C++. */
#ifndef FERRY_TESTS_SHMEM_NAMES_CASE_H_
#define FERRY_TESTS_SHMEM_NAMES_CASE_H_

#include <ferry/stream.h>
#include <pshmem.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__cplusplus)
#include <complex.h>
#include <stdbool.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct Case {
  const char* name;
  void (*run)(void);
};

/* Made by cases.py. */
extern const struct Case kCases[];
extern const int kCaseCount;

enum { kArenaBytes = 1024, kCanary = 0xc5 };

extern int me;
extern int other;
extern shmem_ctx_t ctx;              /* of the world */
extern unsigned char* dest_arena;    /* symmetric, kArenaBytes, all kCanary when a case begins */
extern unsigned char* source_arena;  /* symmetric, kArenaBytes, of this PE's pattern */
extern unsigned char* private_arena; /* of malloc, kArenaBytes, all kCanary */
extern long* sync_array;             /* symmetric, for the active sets' collectives */
extern uint64_t* signal_word;        /* symmetric, 0 */
extern ferry_queue stream_queue;     /* nothing is enqueued */

/* Both PEs are here, and what they have moved has arrived. */
void settle(void);
/* What was enqueued on stream_queue, and returned `error`, is over: 0, or the error. */
int end_of_queue(int error);
/* Byte `i` of the source arena of `pe`. */
unsigned char pattern(int pe, size_t i);
/* Whether `place` holds the elements [first, first + count) of `pe`, of `bytes` bytes each. */
bool holds(const void* place, int pe, size_t first, size_t count, size_t bytes);
/* Whether nothing has been written from `from` to the end of its arena. */
bool untouched(const unsigned char* arena, size_t from);
void check(bool condition, const char* what, int line);

#ifdef __cplusplus
}
#endif

#define CHECK(condition) check((condition), #condition, __LINE__)

/* ---- Values that use all bytes of their type, and differ by PE and index ---- */
#define WIDE(T, pe, i) ((T)(0x9e3779b97f4a7c15u * (unsigned long)((pe)*16 + (i) + 1)))
#define REAL(T, pe, i) ((T)(1.2345678901234567890L * (long double)((pe)*16 + (i) + 1)))
#ifdef __cplusplus
/* T: std::complex, or what C has. */
template <typename T>
T complex_of(int real, int imaginary) {
  const std::complex<float> narrow((float)real, (float)imaginary);
  const std::complex<double> wide(real, imaginary);
  T value;
  memcpy(&value, sizeof(T) == sizeof(narrow) ? (const void*)&narrow : &wide, sizeof(T));
  return value;
}
#define COMPLEX(T, pe, i) (complex_of<T>((pe)*4 + (i) + 1, 2 - (pe)))
#else
#define COMPLEX(T, pe, i) ((T)((pe)*4 + (i) + 1) + (T)(_Complex_I * (2 - (pe))))
#endif

#endif /* FERRY_TESTS_SHMEM_NAMES_CASE_H_ */

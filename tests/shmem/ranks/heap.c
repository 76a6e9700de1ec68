/* The symmetric heap: the same offsets on all PEs, aligned, zeroed where that is asked for, grown,
 * freed and used again. */
#include <stdint.h>

#include "tests/shmem/ranks/check.h"

/* Checks that this address is the same place on all PEs. */
static void check_alike(char* place) {
  char** mine = shmem_malloc(sizeof(char*));
  *mine = place;
  char* const theirs = (char*)shmem_ptr(place, after);
  char* const* const told = shmem_ptr(mine, after);
  CHECK((theirs != NULL) == is_local(after) && (told != NULL) == is_local(after));
  /* The neighbour writes a byte there by its own address, and this PE reads it by its mapping. */
  place[0] = (char)(me + 1);
  shmem_barrier_all();
  CHECK(theirs == NULL || (theirs[0] == (char)(after + 1) && *told != NULL));
  CHECK(shmem_char_g(place, after) == (char)(after + 1));
  shmem_barrier_all();
  shmem_free(mine);
}

static void check_info(void) {
  shmemx_heap_info_t info, later;
  shmemx_heap_info(&info);
  CHECK(info.used_bytes == 0 && info.largest_free_bytes == info.reserved_bytes);
  char* const piece = shmem_malloc(1000);
  shmemx_heap_info(&later);
  CHECK(later.used_bytes >= 1000 && later.largest_free_bytes < info.largest_free_bytes);
  shmem_free(piece);
  shmemx_heap_info(&later);
  CHECK(later.used_bytes == 0);
}

/* As far as the heap itself is aligned, in this PE's memory and in its mappings of others'. Twice,
 * so that one of the two lies behind the heap's beginning. */
static void check_alignments(void) {
  for (size_t alignment = sizeof(void*); alignment <= (size_t)1 << 28; alignment *= 2) {
    char* const aligned = shmem_align(alignment, 10);
    char* const next = shmem_align(alignment, 10);
    for (int pe = 0; pe < pes; ++pe) {
      const uintptr_t seen = (uintptr_t)shmem_ptr(aligned, pe) | (uintptr_t)shmem_ptr(next, pe);
      CHECK((seen != 0) == is_local(pe) && seen % alignment == 0);
    }
    CHECK(aligned != next && (uintptr_t)aligned % alignment == 0);
    check_alike(aligned);
    check_alike(next);
    shmem_free(aligned);
    shmem_free(next);
  }
  shmemx_heap_info_t before_it, after_it;
  shmemx_heap_info(&before_it);
  CHECK(shmem_align((size_t)1 << 29, 10) == NULL);
  shmemx_heap_info(&after_it);
  CHECK(after_it.used_bytes == before_it.used_bytes);
  CHECK(shmem_align((size_t)1 << 29, 0) == NULL);
}

int main(void) {
  begin();
  check_info();
  CHECK(shmem_malloc(0) == NULL && shmem_calloc(0, 8) == NULL);
  shmem_free(NULL);

  char* const first = shmem_malloc(100);
  check_alike(first);
  check_alignments();

  /* Memory that was used before is zeroed again. */
  unsigned char* dirty = shmem_malloc(50000);
  fill(dirty, 50000, 3);
  shmem_free(dirty);
  const unsigned char* clean = shmem_calloc(500, 100);
  for (int i = 0; i < 50000; ++i) CHECK(clean[i] == 0);
  shmem_free((void*)clean);

  unsigned char* grown = shmem_malloc(300);
  fill(grown, 300, (unsigned)me);
  char* const fence = shmem_malloc(64);
  grown = shmem_realloc(grown, 100000);
  CHECK(is_filled(grown, 300, (unsigned)me));
  check_alike((char*)grown);
  CHECK(shmem_realloc(grown, 100) == grown);
  CHECK(shmem_realloc(grown, 0) == NULL);
  CHECK((grown = shmem_realloc(NULL, 10)) != NULL);
  shmem_free(grown);
  shmem_free(fence);

  /* A gigabyte takes pages only where it is touched. */
  char* const large = shmem_malloc_with_hints((size_t)1 << 30, SHMEM_MALLOC_ATOMICS_REMOTE);
  CHECK(large != NULL);
  shmem_char_p(large + ((size_t)1 << 30) - 1, 'x', after);
  shmem_barrier_all();
  CHECK(large[((size_t)1 << 30) - 1] == 'x');
  shmem_free(large);

  int local = 0;
  CHECK(!shmem_addr_accessible(&local, after) && shmem_addr_accessible(first, after));
  CHECK(shmem_ptr(&local, after) == NULL && shmem_ptr(first, me) == first);
  shmem_free(first);
  check_info();
  return end_well();
}

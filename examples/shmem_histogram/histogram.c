/* A sort by a histogram that all PEs share, without a message that anybody has to receive.
 *
 *   oshrun -n 4 shmem_histogram [KEYS_PER_PE]
 *
 * Each PE draws keys, many small and few large ones, and counts them in buckets that lie on all PEs
 * (atomic increments). The histogram says which buckets each PE shall sort, that all have about as
 * many keys. A PE claims places in another one's inbox (fetch-add) and puts its keys there; the
 * put's signal tells the owner how many have come. PE 0 compares the result with a serial sort.
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kBuckets = 1024, kBucketShift = 22, kMostKeys = 1 << 24 };

/* Static data are symmetric: other PEs reach them as they reach what shmem_malloc returns. */
static long claimed;     /* places of this PE's inbox that are some PE's */
static uint64_t arrived; /* keys that have been put there */
static long sorted;      /* keys that the inbox holds in the end */

/* The PE that sorts a bucket, and how many keys each PE will sort. All PEs compute the same. */
typedef struct {
  int owner[kBuckets];
  long* shares;
  long largest_share;
} Division;

static double Milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Returns `memory`. If there is none, only this PE knows, so it ends the others as well. */
static void* Checked(void* memory) {
  if (memory == NULL) {
    fprintf(stderr,
            "shmem_histogram: PE %d has too little memory; sort fewer keys, or raise "
            "SHMEM_SYMMETRIC_SIZE\n",
            shmem_my_pe());
    shmem_global_exit(1);
  }
  return memory;
}

static uint32_t Random(uint64_t* state) {
  *state = *state * 6364136223846793005U + 1442695040888963407U;
  return (uint32_t)(*state >> 32);
}

/* The keys of one PE, which PE 0 draws once more to compare. Products of two numbers are often
 * small: ranges of keys of the same width would give the PEs most unequal work. */
static void Draw(int pe, uint32_t* keys, long count) {
  uint64_t state = (uint64_t)pe;
  Random(&state);
  for (long i = 0; i < count; ++i) {
    const uint64_t factor = Random(&state);
    keys[i] = (uint32_t)(factor * Random(&state) >> 32);
  }
}

static int BucketOf(uint32_t key) { return (int)(key >> kBucketShift); }

/* Neighbouring buckets lie on different PEs, so that the fullest ones do not share a PE. */
static void Count(const uint32_t* keys, long count, long* table, int pes) {
  for (long i = 0; i < count; ++i) {
    const int bucket = BucketOf(keys[i]);
    shmem_long_atomic_inc(&table[bucket / pes], bucket % pes);
  }
}

/* Reads the histogram from all PEs, and hands out buckets in order. `places`: buckets on a PE. */
static Division Divide(const long* table, int places, int pes, long total) {
  long* histogram = Checked(malloc(sizeof(long) * (size_t)places * (size_t)pes));
  for (int pe = 0; pe < pes; ++pe) {
    shmem_long_iget(histogram + pe, table, pes, 1, (size_t)places, pe);
  }
  Division division = {.shares = Checked(calloc((size_t)pes, sizeof(long)))};
  long before = 0;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    /* Empty buckets behind the last key would be those of a PE that is not there. */
    const int owner = before < total ? (int)(before * pes / total) : pes - 1;
    division.owner[bucket] = owner;
    division.shares[owner] += histogram[bucket];
    if (division.shares[owner] > division.largest_share) {
      division.largest_share = division.shares[owner];
    }
    before += histogram[bucket];
  }
  free(histogram);
  return division;
}

/* Arranges this PE's keys by owner; those of `pe` begin at starts[pe]. */
static void Group(const Division* division, const uint32_t* keys, long count, uint32_t* grouped,
                  long* starts, int pes) {
  long* next = Checked(calloc((size_t)pes + 1, sizeof(long)));
  for (long i = 0; i < count; ++i) {
    ++next[division->owner[BucketOf(keys[i])] + 1];
  }
  for (int pe = 0; pe < pes; ++pe) {
    next[pe + 1] += next[pe];
    starts[pe + 1] = next[pe + 1];
  }
  for (long i = 0; i < count; ++i) {
    grouped[next[division->owner[BucketOf(keys[i])]]++] = keys[i];
  }
  free(next);
}

/* Sends keys to their owners, and waits for those that are this PE's to sort. */
static void Exchange(const Division* division, const uint32_t* keys, long count, uint32_t* inbox) {
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  uint32_t* grouped = Checked(malloc(sizeof(uint32_t) * (size_t)count));
  long* starts = Checked(calloc((size_t)pes + 1, sizeof(long)));
  Group(division, keys, count, grouped, starts, pes);
  for (int step = 1; step <= pes; ++step) { /* each PE begins with another one */
    const int pe = (me + step) % pes;
    const long keys_for_pe = starts[pe + 1] - starts[pe];
    if (keys_for_pe > 0) {
      const long place = shmem_long_atomic_fetch_add(&claimed, keys_for_pe, pe);
      shmem_uint32_put_signal(inbox + place, grouped + starts[pe], (size_t)keys_for_pe, &arrived,
                              (uint64_t)keys_for_pe, SHMEM_SIGNAL_ADD, pe);
    }
  }
  shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, (uint64_t)division->shares[me]);
  free(starts);
  free(grouped);
}

static int Compare(const void* left, const void* right) {
  const uint32_t a = *(const uint32_t*)left;
  const uint32_t b = *(const uint32_t*)right;
  return (a > b) - (a < b);
}

/* On PE 0, when all have sorted: whether the inboxes, one after the other, are what a serial sort
 * makes of all PEs' keys. */
static int EqualsSerialSort(const uint32_t* inbox, long largest_share, long count, int pes) {
  const long total = count * pes;
  uint32_t* expected = Checked(malloc(sizeof(uint32_t) * (size_t)total));
  uint32_t* got = Checked(malloc(sizeof(uint32_t) * (size_t)largest_share));
  for (int pe = 0; pe < pes; ++pe) {
    Draw(pe, expected + pe * count, count);
  }
  qsort(expected, (size_t)total, sizeof(uint32_t), Compare);
  long compared = 0;
  int equal = 1;
  for (int pe = 0; pe < pes && equal; ++pe) {
    const long share = shmem_long_g(&sorted, pe);
    equal = share >= 0 && share <= largest_share && share <= total - compared;
    if (equal) {
      shmem_uint32_get(got, inbox, (size_t)share, pe);
    }
    for (long i = 0; equal && i < share; ++i) {
      equal = got[i] == expected[compared + i];
    }
    compared += share;
  }
  free(got);
  free(expected);
  return equal && compared == total;
}

/* Returns whether the result is right, or on other PEs than 0 just 1. */
static int Run(long count) {
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const int places = (kBuckets + pes - 1) / pes;
  uint32_t* keys = Checked(malloc(sizeof(uint32_t) * (size_t)count));
  long* table = Checked(shmem_calloc((size_t)places, sizeof(long)));
  Draw(me, keys, count);

  shmem_barrier_all();
  const double start = Milliseconds();
  Count(keys, count, table, pes);
  shmem_barrier_all(); /* now the histogram is whole */
  const double counted = Milliseconds();

  const long total = count * pes;
  const Division division = Divide(table, places, pes, total);
  uint32_t* inbox = Checked(shmem_malloc(sizeof(uint32_t) * (size_t)division.largest_share));
  const double divided = Milliseconds();
  Exchange(&division, keys, count, inbox);
  shmem_barrier_all();
  const double exchanged = Milliseconds();
  sorted = division.shares[me];
  qsort(inbox, (size_t)sorted, sizeof(uint32_t), Compare);
  shmem_barrier_all();
  const double end = Milliseconds();

  int equal = 1;
  if (me == 0) {
    equal = EqualsSerialSort(inbox, division.largest_share, count, pes);
    printf(
        "%d PE%s, %ld keys: counted in %.2f ms (%.1f million a second), exchanged in %.2f ms, "
        "sorted in %.2f ms; largest share %.3f of the mean; %s a serial sort: %s\n",
        pes, pes == 1 ? "" : "s", total, counted - start, (double)total / (counted - start) / 1e3,
        exchanged - divided, end - exchanged, (double)division.largest_share / (double)count,
        equal ? "equal to" : "differs from", equal ? "PASS" : "FAIL");
  }
  shmem_free(inbox); /* not before PE 0 has compared: shmem_free waits for all PEs */
  shmem_free(table);
  free(division.shares);
  free(keys);
  return equal;
}

int main(int argc, char** argv) {
  shmem_init();
  const char* word = argc > 1 ? argv[1] : "262144";
  char* end = NULL;
  const long count = strtol(word, &end, 10);
  int status = 2;
  if (argc > 2 || *word == '\0' || *end != '\0' || count < 1 || count > kMostKeys) {
    if (shmem_my_pe() == 0) {
      fprintf(stderr, "usage: shmem_histogram [KEYS_PER_PE], a number from 1 to %d\n", kMostKeys);
    }
  } else {
    status = Run(count) ? 0 : 1;
  }
  shmem_finalize();
  return status;
}

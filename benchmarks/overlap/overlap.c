/* How much of a transfer is hidden behind computation.
 *
 *   overlap MEMORY sender|receiver|both BYTES...
 *
 * Rank 0 sends to rank 1. The side named starts its operation, computes for as long as the transfer
 * alone takes, then waits for it; the other side waits in the library all the time, so that both
 * cores are busy. With "both", both sides compute. Each side that computes prints "SIDE BYTES
 * PERCENT TRANSFER TOGETHER": 100 (T_transfer + T_compute - T_together) / T_transfer, then these
 * two in microseconds, medians over many rounds. 0 percent means that the transfer made no progress
 * meanwhile, 100 that it cost nothing more. The sender writes every byte before each round and the
 * receiver reads every byte after it, as applications do: else the data would never leave the
 * sender's cache.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"

enum { kRounds = 41, kCalibration = 2000000 };

/* Arithmetic in registers: it neither needs nor disturbs the memory that the transfer uses. */
static void Compute(uint64_t steps) {
  uint64_t value = steps | 1;
  for (uint64_t i = 0; i < steps; ++i) {
    value = value * 6364136223846793005ULL + 1442695040888963407ULL;
  }
  asm volatile("" : : "r"(value)); /* so that it is not left out */
}

static double StepsPerSecond(void) {
  double rates[kRounds];
  for (int i = 0; i < kRounds; ++i) {
    const double start = Now();
    Compute(kCalibration);
    rates[i] = kCalibration / (Now() - start);
  }
  return Median(rates, kRounds);
}

typedef struct {
  int rank;
  size_t size;
  char* buffer;
  char* word;
} Side;

/* Both sides begin at once: the receiver's word says that it is there. */
static void Meet(const Side* side) {
  if (side->rank == 0) {
    Receive(side->word, 8, 1);
    Send(side->word, 8, 1);
  } else {
    Send(side->word, 8, 0);
    Receive(side->word, 8, 0);
  }
}

static double Round(const Side* side, int computes, uint64_t steps) {
  Request request;
  Meet(side);
  if (side->rank == 0) {
    memset(side->buffer, (int)steps & 0xff,
           side->size); /* as an application's data: just written */
  }
  Meet(side);
  const double start = Now();
  if (side->rank == 0) {
    StartSend(side->buffer, side->size, 1, &request);
  } else {
    StartReceive(side->buffer, side->size, 0, &request);
  }
  if (computes) {
    Compute(steps);
  }
  WaitAll(1, &request);
  const double end = Now();
  if (side->rank == 1 && memcmp(side->buffer, side->buffer + 1, side->size - 1) != 0) {
    fprintf(stderr, "overlap: wrong data in a message of %zu bytes\n", side->size);
    exit(1);
  }
  return end - start;
}

static double MedianRound(const Side* side, int computes, uint64_t steps) {
  double rounds[kRounds];
  for (int i = 0; i < kRounds; ++i) {
    rounds[i] = Round(side, computes, steps);
  }
  return Median(rounds, kRounds);
}

int main(int argc, char** argv) {
  int ranks = 0;
  Side side = {0};
  Start(&side.rank, &ranks);
  if (argc < 4 || ranks != 2) {
    fprintf(stderr, "usage: overlap MEMORY sender|receiver|both BYTES..., on two ranks\n");
    return 2;
  }
  const char* name = side.rank == 0 ? "sender" : "receiver";
  const int computes = strcmp(argv[2], "both") == 0 || strcmp(argv[2], name) == 0;
  const double steps_per_s = StepsPerSecond();
  side.word = Allocate(argv[1], 4096);
  memset(side.word, 0, 4096);
  for (int i = 3; i < argc; ++i) {
    side.size = strtoull(argv[i], NULL, 10);
    side.buffer = Allocate(argv[1], side.size);
    memset(side.buffer, 0, side.size);
    (void)MedianRound(&side, 0, 0); /* warms up */
    const double transfer_s = MedianRound(&side, 0, 0);
    const uint64_t steps = (uint64_t)(transfer_s * steps_per_s);
    const double start = Now();
    Compute(steps);
    const double compute_s = Now() - start;
    const double together_s = MedianRound(&side, computes, steps);
    if (computes) {
      printf("%s %zu %.1f %.1f %.1f\n", name, side.size,
             100 * (transfer_s + compute_s - together_s) / transfer_s, transfer_s * 1e6,
             together_s * 1e6);
      fflush(stdout);
    }
    Barrier();
  }
  Finish();
  return 0;
}

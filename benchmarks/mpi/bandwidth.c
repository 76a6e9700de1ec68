/* Windows of messages from one rank of every pair to the other, after osu_bw: 10^6 bytes per
 * second, of all pairs together. */
#include "benchmarks/mpi/pair.h"

static void Check(const Side* side) { CheckWindow(side, 0); }

static double Repeat(void* context, int rounds) { return RepeatWindows(context, 0, rounds); }

static double Megabytes(const Side* side, double round_s) {
  return 1e-6 * WindowBytes(side) * (side->ranks / 2) / round_s;
}

int main(int argc, char** argv) {
  static const Pattern kPattern = {.name = "bandwidth",
                                   .bytes = MessageBytes,
                                   .check = Check,
                                   .repeat = Repeat,
                                   .figure = Megabytes};
  return RunPattern(argc, argv, &kPattern);
}

/* Windows of messages both ways at once, after osu_bibw: 10^6 bytes per second, the sum of both
 * ways and of all pairs. */
#include "benchmarks/mpi/pair.h"

static void Check(const Side* side) { CheckWindow(side, 1); }

static double Repeat(void* context, int rounds) { return RepeatWindows(context, 1, rounds); }

static double Megabytes(const Side* side, double round_s) {
  return 1e-6 * WindowBytes(side) * side->ranks / round_s;
}

int main(int argc, char** argv) {
  static const Pattern kPattern = {
      .name = "bibw", .bytes = MessageBytes, .check = Check, .repeat = Repeat, .figure = Megabytes};
  return RunPattern(argc, argv, &kPattern);
}

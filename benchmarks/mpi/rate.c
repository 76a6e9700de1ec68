/* Windows of messages from one rank of every pair to the other, after osu_mbw_mr: millions of
 * messages per second, of all pairs together. */
#include "benchmarks/mpi/pair.h"

static void Check(const Side* side) { CheckWindow(side, 0); }

static double Repeat(void* context, int rounds) { return RepeatWindows(context, 0, rounds); }

static double Millions(const Side* side, double round_s) {
  return 1e-6 * kWindow * (side->ranks / 2) / round_s;
}

int main(int argc, char** argv) {
  static const Pattern kPattern = {
      .name = "rate", .bytes = MessageBytes, .check = Check, .repeat = Repeat, .figure = Millions};
  return RunPattern(argc, argv, &kPattern);
}

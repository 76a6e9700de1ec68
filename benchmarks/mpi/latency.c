/* Ping-pong of every pair at once, after osu_latency and osu_multi_lat: microseconds one way. */
#include "benchmarks/mpi/pair.h"

static void PingPong(const Side* side) {
  if (Leads(side)) {
    Send(side->out, side->size, Peer(side));
    Receive(side->in, side->size, Peer(side));
  } else {
    Receive(side->in, side->size, Peer(side));
    Send(side->out, side->size, Peer(side));
  }
}

static void Check(const Side* side) {
  memset(side->in, 0x55, side->size);
  FillBytes(side->out, side->rank, 0, side->size);
  PingPong(side);
  CompareBytes(side, side->in, Peer(side), 0, side->size);
}

static double Repeat(void* context, int rounds) {
  const Side* side = context;
  Barrier();
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    PingPong(side);
  }
  return MeanOverRanks(Now() - start, side->ranks);
}

static double OneWay(const Side* side, double round_s) { return Microseconds(side, round_s) / 2; }

int main(int argc, char** argv) {
  static const Pattern kPattern = {
      .name = "latency", .bytes = MessageBytes, .check = Check, .repeat = Repeat, .figure = OneWay};
  return RunPattern(argc, argv, &kPattern);
}

/* MPI's calls in Fortran beside those in C, in one program: fortran_calls.F90, compiled for each of
 * the three interfaces, is linked with this.
 *
 *   fortran calls BATCH_MICROSECONDS           on one rank
 *   fortran sections BATCH_MICROSECONDS BYTES...   on one or two ranks
 *
 * "calls" prints "null WAY NANOSECONDS" (8 bytes to MPI_PROC_NULL) and "own WAY NANOSECONDS" (an
 * MPI_Sendrecv of 8 bytes with oneself), where WAY is c, mpif, module (use mpi) or typed (use
 * mpi_f08). A figure is the least of many batches of a twentieth of the given length: what
 * interrupts a call costs more than what is to be told apart. "sections" prints "section BYTES WAY
 * MICROSECONDS": an MPI_Sendrecv of every second number of an array, which C describes by a
 * datatype that was made before, with the other rank or with oneself; of one rank the least of the
 * batches, of two their median. What has arrived is compared before and after. The ways take turns.
 *
 * Nothing here is Ferry's: each MPI library's own wrappers compile both files.
 */
#include "benchmarks/mpi/pair.h"

enum { kTurns = 21, kCallTurns = 20 * kTurns, kWays = 4 };

static const char* const kNames[kWays] = {"c", "mpif", "module", "typed"};

typedef void (*CallLoop)(int rounds);
typedef void (*SectionLoop)(double* out, double* in, int n, int peer, int rounds);

void null_sends_mpif(int rounds);
void null_sends_module(int rounds);
void null_sends_typed(int rounds);
void own_messages_mpif(int rounds);
void own_messages_module(int rounds);
void own_messages_typed(int rounds);
void section_rounds_mpif(double* out, double* in, int n, int peer, int rounds);
void section_rounds_module(double* out, double* in, int n, int peer, int rounds);
void section_rounds_typed(double* out, double* in, int n, int peer, int rounds);

/* ---- The same in C ------------------------------------------------------------------------- */

static void NullSends(int rounds) {
  double word[1] = {0};
  for (int i = 0; i < rounds; ++i) {
    (void)MPI_Send(word, 1, MPI_DOUBLE, MPI_PROC_NULL, kTag, MPI_COMM_WORLD);
  }
}

static void OwnMessages(int rounds) {
  double out[1] = {0};
  double in[1];
  for (int i = 0; i < rounds; ++i) {
    (void)MPI_Sendrecv(out, 1, MPI_DOUBLE, 0, kTag, in, 1, MPI_DOUBLE, 0, kTag, MPI_COMM_SELF,
                       MPI_STATUS_IGNORE);
  }
}

static MPI_Datatype every_second; /* of as many numbers as the section that is measured has */

static void SectionRounds(double* out, double* in, int n, int peer, int rounds) {
  (void)n;
  for (int i = 0; i < rounds; ++i) {
    BENCH_CHECK(MPI_Sendrecv(out, 1, every_second, peer, kTag, in, 1, every_second, peer, kTag,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
}

/* ---- Calls --------------------------------------------------------------------------------- */

static double Seconds(CallLoop loop, int rounds) {
  const double start = Now();
  loop(rounds);
  return (Now() - start) / rounds;
}

static void MeasureCalls(const char* what, const CallLoop loops[kWays], double batch_s) {
  enum { kFirst = 1000 };
  double least[kWays];
  for (int way = 0; way < kWays; ++way) {
    least[way] = Seconds(loops[way], kFirst);
  }
  const double wanted = batch_s / (kCallTurns / kTurns) / least[0];
  const int rounds = wanted < kMaxRounds ? (int)wanted + 1 : kMaxRounds;
  for (int turn = 0; turn < kCallTurns; ++turn) {
    for (int way = 0; way < kWays; ++way) {
      const double took = Seconds(loops[way], rounds);
      least[way] = took < least[way] ? took : least[way];
    }
  }
  for (int way = 0; way < kWays; ++way) {
    printf("%s %s %.3f\n", what, kNames[way], least[way] * 1e9);
  }
}

/* ---- Sections ------------------------------------------------------------------------------ */

static const SectionLoop kSectionLoops[kWays] = {SectionRounds, section_rounds_mpif,
                                                 section_rounds_module, section_rounds_typed};

/* The other rank; oneself, if there is none. */
static int Partner(const Side* side) { return side->ranks - 1 - side->rank; }

static double SectionSeconds(const Side* side, SectionLoop loop, int rounds) {
  Barrier();
  const double start = Now();
  loop((double*)side->out, (double*)side->in, (int)(side->size / sizeof(double)), Partner(side),
       rounds);
  return MeanOverRanks(Now() - start, side->ranks) / rounds;
}

/* What lies between the numbers of the section must stay as it was. */
static void CheckSection(const Side* side, SectionLoop loop) {
  double* const out = (double*)side->out;
  double* const in = (double*)side->in;
  const size_t n = side->size / sizeof(double);
  for (size_t i = 0; i < 2 * n; ++i) {
    out[i] = (double)(i + 1 + 1000000 * (size_t)side->rank);
    in[i] = -1;
  }
  (void)SectionSeconds(side, loop, 1);
  for (size_t i = 0; i < 2 * n; ++i) {
    const double wanted = i % 2 == 0 ? (double)(i + 1 + 1000000 * (size_t)Partner(side)) : -1;
    if (in[i] != wanted) {
      Mistaken(side, "number", i);
    }
  }
}

static void MeasureSections(const Side* side, double batch_s) {
  static double times[kWays][kCallTurns];
  const int turns = side->ranks == 1 ? kCallTurns : kTurns;
  for (int way = 0; way < kWays; ++way) {
    CheckSection(side, kSectionLoops[way]);
  }
  (void)SectionSeconds(side, kSectionLoops[kWays - 1], 10);
  const double wanted =
      batch_s / (turns / kTurns) / SectionSeconds(side, kSectionLoops[kWays - 1], 10);
  const int rounds =
      (int)FromRank0(wanted < kMaxRounds ? (int)wanted + 1 : kMaxRounds, side->rank, side->ranks);
  for (int turn = 0; turn < turns; ++turn) {
    for (int way = 0; way < kWays; ++way) {
      times[way][turn] = SectionSeconds(side, kSectionLoops[way], rounds) * 1e6;
    }
  }
  for (int way = 0; way < kWays; ++way) {
    CheckSection(side, kSectionLoops[way]);
  }
  for (int way = 0; side->rank == 0 && way < kWays; ++way) {
    const double median = Median(times[way], (size_t)turns); /* sorts them */
    printf("section %zu %s %.5f\n", side->size, kNames[way],
           side->ranks == 1 ? times[way][0] : median);
  }
}

int main(int argc, char** argv) {
  static const CallLoop kNullSends[kWays] = {NullSends, null_sends_mpif, null_sends_module,
                                             null_sends_typed};
  static const CallLoop kOwnMessages[kWays] = {OwnMessages, own_messages_mpif, own_messages_module,
                                               own_messages_typed};
  Side side = {0};
  Start(&side.rank, &side.ranks);
  const int calls = argc == 3 && strcmp(argv[1], "calls") == 0 && side.ranks == 1;
  if (!calls && (argc < 4 || strcmp(argv[1], "sections") != 0 || side.ranks > 2)) {
    fprintf(stderr,
            "usage: fortran calls BATCH_MICROSECONDS, on one rank\n"
            "       fortran sections BATCH_MICROSECONDS BYTES..., on one or two\n");
    return 2;
  }
  const double batch_s = strtod(argv[2], NULL) * 1e-6;
  if (calls) {
    MeasureCalls("null", kNullSends, batch_s);
    MeasureCalls("own", kOwnMessages, batch_s);
  } else {
    const size_t largest = LargestSize(argc, argv, 3, sizeof(double));
    side.out = PatternMemory("private", 2 * largest);
    side.in = PatternMemory("private", 2 * largest);
    for (int i = 3; i < argc; ++i) {
      side.size = strtoull(argv[i], NULL, 10);
      BENCH_CHECK(
          MPI_Type_vector((int)(side.size / sizeof(double)), 1, 2, MPI_DOUBLE, &every_second));
      BENCH_CHECK(MPI_Type_commit(&every_second));
      MeasureSections(&side, batch_s);
      BENCH_CHECK(MPI_Type_free(&every_second));
    }
  }
  Finish();
  return 0;
}

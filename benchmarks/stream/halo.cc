// A halo exchange in a plane, with a kernel after each: the benchmark of "Co-Design and
// Evaluation of a CPU-Free MPI GPU Communication Abstraction and Implementation", section VI-A3.
//
//   halo WAY WIDTHxHEIGHT RANKSxRANKS NANOSECONDS BATCH_MICROSECONDS
//
// WAY is ready, standard, cpu or staged (ferry/halo.h). WIDTH and HEIGHT are cells of the whole, of
// 8 bytes each; the ends of both axes meet, so every rank exchanges four edges and four corners.
// The kernel takes so many nanoseconds a cell: it sleeps, since the cores of this machine are no
// device's. Rank 0 prints "halo MICROSECONDS BUSY": an iteration, the median of several batches of
// about the given length, and the share of the time in which its thread ran.
#include "ferry/halo.h"

#include <time.h>

#include <cstdio>
#include <exception>
#include <string>

// C headers, which count on sched_setaffinity and the like.
#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"
#include "common/clock.h"
#include "common/sleep.h"

namespace {

constexpr int kIterationsAhead = 256;  // enqueued before the CPU waits

struct Kernel {
  double seconds = 0;
};

double ThreadTime() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Takes the time that a device would take.
void RunKernel(void* argument) {
  const double seconds = static_cast<const Kernel*>(argument)->seconds;
  if (seconds <= 0) {
    return;
  }
  static thread_local const bool is_prepared = (ferry::WakeInTime(), true);
  (void)is_prepared;
  ferry::SleepUntilNs(ferry::MonotonicNs() + static_cast<uint64_t>(seconds * 1e9));
}

struct Exchange {
  ferry::Halo* halo;
  ferry_stream stream;
  void* field;
  Kernel kernel;
  double busy_s = 0;
  double measured_s = 0;
};

double Repeat(void* context, int rounds) {
  auto& exchange = *static_cast<Exchange*>(context);
  const double busy = ThreadTime();
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    exchange.halo->EnqueueGather(exchange.field);
    ferry::Check(ferry_stream_launch(exchange.stream, RunKernel, &exchange.kernel));
    if (i % kIterationsAhead == kIterationsAhead - 1) {
      exchange.halo->Wait();
    }
  }
  exchange.halo->Wait();
  const double seconds = Now() - start;
  exchange.busy_s += ThreadTime() - busy;
  exchange.measured_s += seconds;
  return seconds;
}

bool ReadPair(const char* text, int* first, int* second) {
  return std::sscanf(text, "%dx%d", first, second) == 2 && *first > 0 && *second > 0;
}

int Usage() {
  std::fprintf(stderr,
               "usage: halo ready|standard|cpu|staged WIDTHxHEIGHT RANKSxRANKS NANOSECONDS "
               "BATCH_MICROSECONDS, on as many ranks as the box has\n");
  return 2;
}

int Run(int argc, char** argv, int rank, int ranks) {
  const std::string ways[] = {"ready", "standard", "cpu", "staged"};
  ferry::HaloBlock block;
  int way = 0;
  while (way < 4 && argc > 1 && ways[way] != argv[1]) {
    ++way;
  }
  int width = 0;
  int height = 0;
  if (argc != 6 || way == 4 || !ReadPair(argv[2], &width, &height) ||
      !ReadPair(argv[3], &block.ranks[0], &block.ranks[1]) ||
      block.ranks[0] * block.ranks[1] != ranks) {
    return Usage();
  }
  block.dimensions = 2;
  block.cells = {width / block.ranks[0], height / block.ranks[1], 1};
  block.periodic = {true, true, false};
  ferry_stream stream = nullptr;
  ferry::Check(ferry_stream_create(0, &stream));
  {
    ferry::Halo halo(block, stream, static_cast<ferry::Sends>(way));
    const ferry::Buffer<std::byte> field(halo.field_bytes(), FERRY_MEMORY_DEVICE);
    const double cells = static_cast<double>(block.cells[0]) * block.cells[1];
    Exchange exchange{&halo, stream, field.data(), {cells * std::atof(argv[4]) * 1e-9}};
    Barrier();
    const double seconds =
        MeasureTogether(Repeat, &exchange, std::atof(argv[5]) * 1e-6, rank, ranks);
    if (rank == 0) {
      std::printf("halo %.4f %.4f\n", seconds * 1e6, exchange.busy_s / exchange.measured_s);
    }
  }
  ferry::Check(ferry_stream_destroy(&stream));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  Start(&rank, &ranks);
  int exit_code = 1;
  try {
    exit_code = Run(argc, argv, rank, ranks);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "halo: rank %d: %s\n", rank, error.what());
    return 1;
  }
  Finish();
  return exit_code;
}

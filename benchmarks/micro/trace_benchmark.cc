// Measures what a message pays for `ferryctl trace`: nothing at all (no tap), while it is off,
// while it is on. The message's own work is what every message does with its job: it looks up its
// route.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "internode/trace/tracer.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kRanks = 64;

// As internode/delivery/directory.h has it.
struct Job {
  std::vector<uint32_t> node_of_rank = std::vector<uint32_t>(kRanks);
  alignas(64) progress::TraceTap trace;
  std::vector<uint64_t> routes = std::vector<uint64_t>(kRanks, 1);
};

// Through a pointer that the compiler cannot look behind.
template <typename Trace>
void Run(benchmark::State& state, Job* job, Trace trace) {
  benchmark::DoNotOptimize(job);
  uint32_t rank = 0;
  for (auto _ : state) {
    rank = (rank + 1) % kRanks;
    benchmark::DoNotOptimize(job->routes[job->node_of_rank[rank]]);
    trace(*job, rank);
  }
}

[[gnu::cold, gnu::noinline]] void Record(const Job& job, uint32_t rank) {
  progress::TraceRecord record;
  record.rank = rank;
  record.begin_ns = record.end_ns = MonotonicNs();
  job.trace.Put(record);
}

void Put(Job& job, uint32_t rank) {
  if (job.trace.on()) [[unlikely]] {
    Record(job, rank);
  }
}

void MessageWithoutTrace(benchmark::State& state) {
  Job job;
  Run(state, &job, [](Job&, uint32_t) {});
}

void MessageTraceOff(benchmark::State& state) {
  Job job;
  Run(state, &job, Put);
}

void MessageTraceOn(benchmark::State& state) {
  Job job;
  progress::TraceRing ring(131072);
  job.trace.Follow(progress::TraceTap(&ring, 0));
  Run(state, &job, Put);
}

BENCHMARK(MessageWithoutTrace);
BENCHMARK(MessageTraceOff);
BENCHMARK(MessageTraceOn);

}  // namespace
}  // namespace ferry::daemon

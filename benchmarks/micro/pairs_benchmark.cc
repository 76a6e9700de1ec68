// Measures the time that a turn of the daemon spends on matched pairs to other nodes that are not
// started: programs match thousands of them, and start a few. The number is that of the pairs, half
// of them sends.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "daemon/triggered/pairs.h"
#include "engine/session_view.h"
#include "internode/delivery/core_hooks.h"
#include "internode/registration/registrar.h"
#include "shm/segment.h"
#include "tests/internode/core/fake_transport.h"

namespace ferry::daemon {
namespace {

constexpr char kJob[] = "job";
constexpr uint64_t kBytes = 64;

template <typename T>
T Must(StatusOr<T> value) {
  if (!value.ok()) {
    std::abort();
  }
  return std::move(*value);
}

// Rank 0 of two, whose partner is on another node.
std::shared_ptr<Session> MakeSession() {
  const engine::SegmentPlan plan{0, 2, 1, 16, 16};
  auto session = std::make_shared<Session>();
  session->job_id = kJob;
  session->local_size = 1;
  session->job_size = 2;
  session->request_limit = 16;
  session->match_capacity = 16;
  session->session_fd = Must(shm::CreateSegment("benchmark", plan.session_bytes()));
  session->inbox_fd = Must(shm::CreateSegment("benchmark", plan.inbox_bytes()));
  session->session_map = Must(shm::MapSegment(session->session_fd.get(), 0));
  session->inbox_map = Must(shm::MapSegment(session->inbox_fd.get(), 0));
  engine::InitializeSegments(plan, 1, session->session_map.base(), session->inbox_map.base());
  return session;
}

std::shared_ptr<Region> MakeHeap(uint64_t bytes) {
  auto heap = std::make_shared<Region>();
  heap->id = 1;
  heap->fd = Must(shm::CreateSegment("benchmark", bytes));
  heap->mapping = Must(shm::MapSegment(heap->fd.get(), 0));
  return heap;
}

JobPlan PlanOfTwoNodes() {
  JobPlan plan;
  plan.job_id = kJob;
  plan.node_of_rank = {0, 1};
  plan.local_index = {0, 0};
  return plan;
}

void BM_TurnWithIdlePairs(benchmark::State& state) {
  const auto pairs = static_cast<uint64_t>(state.range(0));
  FakeTransport transport;
  progress::Directory directory;
  const progress::CoreHooks hooks;
  progress::Outbound outbound(transport, directory, hooks);
  progress::Registrar registrar(transport, [] {});
  progress::Registrations registrations(registrar, {});
  Pairs known(transport, outbound, registrar, registrations, /*timeout_ns=*/1'000'000'000);
  progress::Job job(PlanOfTwoNodes());
  const std::shared_ptr<Session> session = MakeSession();
  progress::ServedRank rank(session, progress::DaemonSeat(*session), &job, 64, 1 << 20,
                            job.hold_budget);
  const std::shared_ptr<Region> heap = MakeHeap((pairs + 1) * (sizeof(shm::PairLayout) + kBytes));
  for (uint64_t i = 0; i < pairs; ++i) {
    PairPlan plan;
    plan.name = {kJob, 0, i + 1};
    plan.peer = 1;
    plan.is_send = i % 2 == 0;
    plan.size_bytes = kBytes;
    plan.end = {heap, i * sizeof(shm::PairLayout)};
    plan.window = {heap, pairs * sizeof(shm::PairLayout) + i * kBytes};
    if (!known.Add(rank, plan).ok()) {
      std::abort();
    }
  }
  uint64_t now_ns = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(known.Advance(++now_ns));
  }
  known.RemoveOf(rank);
}
BENCHMARK(BM_TurnWithIdlePairs)->Arg(0)->Arg(100)->Arg(10'000);

}  // namespace
}  // namespace ferry::daemon

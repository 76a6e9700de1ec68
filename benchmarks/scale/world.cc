// The control plane of one large job: the real code of the daemons, over a network in which time is
// a number (tests/daemon/jobs/job_world.h).
//
//   world NODES RANKS_PER_NODE RADIX all|way
//
// RADIX 0: no tree. all: each node has a daemon. way: only those from the root to the deepest leaf;
// their neighbours are stand-ins (job_world_path.h). Prints one line of JSON: times in
// milliseconds, what the busiest of the daemons here has done, and memory in bytes.
//
// A daemon takes as long as its code takes on this processor, and beside that what is in Costs
// below: what gRPC takes for a call and a new connection on two cores here.
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/jobs/job_members.h"
#include "daemon/peers/link_timing.h"
#include "proto/attach_protocol.h"
#include "tests/daemon/jobs/job_world.h"
#include "tests/daemon/jobs/job_world_path.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kPatienceMs = 600'000;    // of simulated time
constexpr uint64_t kRankApartNs = kNsPerMs;  // from one rank of a node to the next
constexpr uint64_t kAskNs = 50'000;          // from a rank's answer to its next question
constexpr uint64_t kIdleMs = 10'000;
constexpr uint64_t kLargestJob = 1U << 21;

WorldCosts Costs() {
  WorldCosts costs;
  costs.latency_ns = 50'000;
  costs.call_ns = 100'000;
  costs.greeting_ns = 5 * kNsPerMs;
  costs.bytes_per_us = 1000;  // 1 GB/s
  costs.counts_processor = true;
  return costs;
}

RegistryLimits Limits() {
  RegistryLimits limits;
  limits.max_ranks = kLargestJob;
  limits.peer_timeout_ms = 100 * kPatienceMs;  // its clock is real
  return limits;
}

uint64_t AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

double Ms(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

struct Job {
  uint32_t nodes;
  uint32_t per_node;
  uint32_t radix;
  bool has_stand_ins;
};

class Run {
 public:
  explicit Run(const Job& job)
      : job_(job),
        world_(job.nodes, Costs(), Limits(),
               job.has_stand_ins ? WayToLeaf(job.nodes, job.radix) : std::vector<uint32_t>()) {
    for (WorldNode* const node : world_.daemons()) {
      node->plane.Forget();
    }
    if (job.has_stand_ins) {
      stand_ins_.emplace(world_, job.radix, job.per_node);
    }
  }

  bool Measure() {
    const uint64_t empty_bytes = AllocatedBytes();
    Launch();
    EnterAll();
    if (!Until([](WorldNode& node) { return node.job()->complete; })) {
      return false;
    }
    const uint64_t joined_ns = world_.now_ns() - launched_ns_;
    AskForPlaces();
    if (!world_.RunUntil([this] { return asking_ == 0; }, kPatienceMs)) {
      return false;
    }
    const uint64_t start_ns = world_.now_ns();
    const uint64_t bytes = AllocatedBytes() - empty_bytes;
    size_t calls = 0;
    size_t busiest = 0;
    size_t greetings = 0;
    uint64_t sent_bytes = 0;
    uint64_t busy_ns = 0;
    for (const WorldNode* const node : world_.daemons()) {
      calls += node->counts.calls();
      busiest = std::max(busiest, node->counts.calls());
      greetings = std::max(greetings, node->counts.greetings);
      sent_bytes = std::max(sent_bytes, node->counts.bytes);
      busy_ns = std::max(busy_ns, node->counts.busy_ns);
    }
    std::printf(
        "{\"daemons\": %zu, \"launch_ms\": %.3f, \"launch_bytes\": %zu, \"join_ms\": %.3f, "
        "\"start_ms\": %.3f, \"calls\": %zu, \"most_calls\": %zu, \"most_links\": %zu, "
        "\"most_sent_bytes\": %zu, \"most_busy_ms\": %.3f, \"daemon_bytes\": %.0f, ",
        world_.daemons().size(), Ms(launched_ns_), size_t{launch_bytes_}, Ms(joined_ns),
        Ms(start_ns), calls, busiest, greetings, size_t{sent_bytes}, Ms(busy_ns),
        static_cast<double>(bytes) / static_cast<double>(world_.daemons().size()));
    return MeasureIdle() && MeasureDeath();
  }

 private:
  template <typename Predicate>
  bool Until(Predicate&& is_true) {
    size_t at = 0;  // it stays true of those before
    const std::vector<WorldNode*>& daemons = world_.daemons();
    return world_.RunUntil(
        [&] {
          while (at < daemons.size() && (daemons[at]->is_dead || is_true(*daemons[at]))) {
            ++at;
          }
          return at == daemons.size();
        },
        kPatienceMs);
  }

  // The launcher sends each daemon the whole table of the job, one after the other.
  void Launch() {
    const JobSpec spec = world_.SpecFor(job_.radix, job_.per_node);
    const auto build = [&spec] {
      control::CreateJobRequest request;
      request.set_job_id(spec.id);
      request.set_secret(spec.secret);
      request.set_size(static_cast<uint32_t>(spec.node_of_rank.size()));
      request.mutable_node_of_rank()->Add(spec.node_of_rank.begin(), spec.node_of_rank.end());
      for (const std::string& address : spec.node_addresses) {
        request.add_node_addresses(address);
      }
      request.set_tree_radix(spec.tree_radix);
      return request.SerializeAsString();
    };
    (void)build();  // the first one also gets memory
    timespec before{};
    timespec after{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    const auto bytes = std::make_shared<const std::string>(build());
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    launch_bytes_ = bytes->size();
    const auto built_ns = static_cast<uint64_t>((after.tv_sec - before.tv_sec) * 1'000'000'000 +
                                                after.tv_nsec - before.tv_nsec);
    const uint64_t each_ns = Costs().call_ns + std::max(built_ns, world_.TransferNs(bytes->size()));
    for (WorldNode* const node : world_.daemons()) {
      world_.AfterNs(each_ns * (node->number + 1), node, Costs().call_ns, [node, bytes] {
        control::CreateJobRequest request;
        if (!request.ParseFromString(*bytes)) {
          std::abort();
        }
        request.set_node(node->number);
        StatusOr<JobSpec> parsed = SpecFrom(request);
        const Status created =
            parsed.ok() ? node->registry().CreateJob(std::move(*parsed)) : parsed.status();
        if (!created.ok()) {
          std::fprintf(stderr, "world: %s\n", created.message().c_str());
          std::exit(1);
        }
      });
    }
    (void)Until([](WorldNode& node) { return node.job() != nullptr; });
    launched_ns_ = std::max(world_.now_ns(), each_ns * job_.nodes);
    world_.Run((launched_ns_ - world_.now_ns()) / kNsPerMs);
  }

  void EnterAll() {
    for (WorldNode* const node : world_.daemons()) {
      for (uint32_t local = 0; local < job_.per_node; ++local) {
        world_.AfterNs(local * kRankApartNs, node, 0,
                       [node, rank = node->number * job_.per_node + local] {
                         if (const Status entered = node->Enter(rank); !entered.ok()) {
                           std::fprintf(stderr, "world: %s\n", entered.message().c_str());
                           std::exit(1);
                         }
                       });
      }
    }
  }

  // The ranks of the root and of the last daemon ask where the others are.
  void AskForPlaces() {
    std::vector<WorldNode*> asked = {world_.daemons().front()};
    if (world_.daemons().size() > 1) {
      asked.push_back(world_.daemons().back());
    }
    for (WorldNode* const node : asked) {
      for (uint32_t local = 0; local < job_.per_node; ++local) {
        ++asking_;
        Ask(node, node->number * job_.per_node + local, 0);
      }
    }
  }

  void Ask(WorldNode* node, uint32_t rank, uint32_t first) {
    world_.AfterNs(kAskNs, node, 0, [this, node, rank, first] {
      const StatusOr<JobMembers::Places> places = node->registry().members().PlacesOf(
          *node->job()->ranks[rank].session, first, attach::kMostPeers);
      if (!places.ok()) {
        std::abort();
      }
      const auto next = first + static_cast<uint32_t>(places->peers.size());
      next < node->job()->size() ? Ask(node, rank, next) : void(--asking_);
    });
  }

  // Measures a daemon while nothing happens.
  bool MeasureIdle() {
    world_.Run(1000);
    std::vector<WorldCounts> before;
    for (const WorldNode* const node : world_.daemons()) {
      before.push_back(node->counts);
    }
    world_.Run(kIdleMs);
    size_t calls = 0;
    uint64_t busy_ns = 0;
    size_t links = 0;
    for (size_t index = 0; index < before.size(); ++index) {
      const WorldNode& node = *world_.daemons()[index];
      calls = std::max(calls, node.counts.calls() - before[index].calls());
      busy_ns = std::max(busy_ns, node.counts.busy_ns - before[index].busy_ns);
      links = std::max(links, node.LinksUp());
    }
    const LinkTiming timing;
    const auto beats = static_cast<double>(links * timing.heartbeat_interval_ms) /
                       static_cast<double>(timing.BeatPeriodMs(links));
    std::printf(
        "\"idle_calls\": %zu, \"idle_busy_percent\": %.4f, \"idle_links\": %zu, "
        "\"idle_beats\": %.1f, ",
        calls, 100 * Ms(busy_ns) / static_cast<double>(kIdleMs), links, beats);
    return true;
  }

  static bool HasEnded(WorldNode& node, uint32_t rank) {
    return node.job()->ranks[rank].state == RankState::kEnded;
  }

  bool MeasureDeath() {
    const uint32_t deepest = world_.daemons().back()->number;
    const uint32_t dead = (deepest + 1) * job_.per_node - 1;
    uint64_t began_ns = world_.now_ns();
    if (stand_ins_) {
      stand_ins_->Hush();
    }
    world_.AfterNs(0, &world_[deepest], 0, [this, deepest, dead] { world_[deepest].Die(dead); });
    if (!Until([&](WorldNode& node) { return HasEnded(node, dead); })) {
      return false;
    }
    uint64_t took_ns = world_.now_ns() - began_ns;
    if (stand_ins_) {  // and from the root to a leaf
      began_ns = world_.now_ns();
      const uint32_t other = 3 * job_.per_node - 1;  // of node 2
      stand_ins_->TellDeath(2);
      if (!Until([&](WorldNode& node) { return HasEnded(node, other); })) {
        return false;
      }
      took_ns += world_.now_ns() - began_ns;
    }
    std::printf("\"death_ms\": %.3f, ", Ms(took_ns));
    return MeasureLoss();
  }

  // An inner node dies. The world notices it after a tick; in truth a heartbeat may come later.
  bool MeasureLoss() {
    if (stand_ins_ || job_.nodes < 3) {
      std::printf("\"loss_ms\": null}\n");
      return true;
    }
    const uint32_t lost = 1;
    const uint64_t beats_ms = LinkTiming().BeatPeriodMs(world_[lost].LinksUp());
    const uint64_t began_ns = world_.now_ns();
    world_.Kill(lost);
    if (!Until([&](WorldNode& node) { return HasEnded(node, lost * job_.per_node); })) {
      return false;
    }
    const uint64_t later_ns = (std::max(beats_ms, World::kTickMs) - World::kTickMs) * kNsPerMs;
    std::printf("\"loss_ms\": %.3f}\n", Ms(world_.now_ns() - began_ns + later_ns));
    return true;
  }

  const Job job_;
  World world_;
  std::optional<StandIns> stand_ins_;
  uint64_t launch_bytes_ = 0;
  uint64_t launched_ns_ = 0;
  size_t asking_ = 0;
};

}  // namespace
}  // namespace ferry::daemon

int main(int argc, char** argv) {
  const auto number = [&](int index) {
    return static_cast<uint32_t>(std::strtoul(argv[index], nullptr, 10));
  };
  if (argc != 5 || number(1) == 0 || number(2) == 0) {
    std::fprintf(stderr, "usage: world NODES RANKS_PER_NODE RADIX all|way\n");
    return 2;
  }
  const bool has_stand_ins = std::strcmp(argv[4], "way") == 0;
  if (has_stand_ins && number(3) == 0) {
    std::fprintf(stderr, "world: only a tree has a way to a leaf\n");
    return 2;
  }
  ferry::daemon::Run run({number(1), number(2), number(3), has_stand_ins});
  if (!run.Measure()) {
    std::printf("\n");
    std::fprintf(stderr, "world: it did not come about\n");
    return 1;
  }
  return 0;
}

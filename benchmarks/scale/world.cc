// The control plane of one large job: the real code of the daemons, over a network in which time is
// a number (tests/daemon/jobs/job_world.h).
//
//   world NODES RANKS_PER_NODE RADIX all|way
//
// RADIX 0: no tree. all: each node has a daemon. way: only those from the root to the deepest leaf;
// their neighbours are stand-ins (job_world_path.h). Prints one line of JSON: times in
// milliseconds, what the busiest of the daemons here has done, and memory in bytes.
//
// A daemon takes as long as its code takes on this processor, and so does ferryrun, whose real code
// writes the frames and splits the hosts; beside that it takes what is in Costs below: what gRPC
// takes for a call and a new connection on two cores here.
#include <malloc.h>
#include <time.h>

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

#include "common/log.h"
#include "common/rank_table.h"
#include "daemon/jobs/job_members.h"
#include "daemon/peers/link_timing.h"
#include "proto/attach_protocol.h"
#include "tests/daemon/jobs/job_world.h"
#include "tests/daemon/jobs/job_world_path.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/agent_tree.h"
#include "tools/ferryrun/arguments.h"
#include "tools/ferryrun/job.h"
#include "tools/ferryrun/node_plan.h"
#include "tools/ferryrun/rank_commands.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kPatienceMs = 600'000;    // of simulated time
constexpr uint64_t kRankApartNs = kNsPerMs;  // from one rank of a node to the next
constexpr uint64_t kAskNs = 50'000;          // from a rank's answer to its next question
constexpr uint64_t kFrameNs = 5'000;         // of ferryrun and relays, for a frame on its way
constexpr uint64_t kIdleMs = 10'000;
constexpr char kRunDirectory[] = "/run/ferry";
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

uint64_t ProcessorNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
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
        "{\"daemons\": %zu, \"launch_ms\": %.3f, \"launch_bytes\": %zu, \"tell_ms\": %.3f, "
        "\"join_ms\": %.3f, "
        "\"start_ms\": %.3f, \"calls\": %zu, \"most_calls\": %zu, \"most_links\": %zu, "
        "\"most_sent_bytes\": %zu, \"most_busy_ms\": %.3f, \"daemon_bytes\": %.0f, ",
        world_.daemons().size(), Ms(launched_ns_), size_t{launch_bytes_}, Ms(told_ns_),
        Ms(joined_ns), Ms(start_ns), calls, busiest, greetings, size_t{sent_bytes}, Ms(busy_ns),
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

  // As ferryrun does it (tools/ferryrun/launch.cc), by its own code: one frame with all of the job
  // goes along the tree of agents, and each agent makes the job known to its daemon. Then ferryrun
  // tells the agents of one rank after the other. No process is started.
  void Launch() {
    const JobSpec spec = world_.SpecFor(job_.radix, job_.per_node);
    std::vector<tools::JobNode> nodes;
    tools::JobLayout layout;
    for (const std::string& address : spec.node_addresses) {
      nodes.push_back({.run_directory = kRunDirectory, .control_address = address});
      layout.nodes.push_back({.host = address, .remote = true, .ranks = job_.per_node});
    }
    layout.node_of_rank = spec.node_of_rank;
    layout.part_of_rank.assign(spec.node_of_rank.size(), 0);
    tools::Arguments arguments;
    arguments.parts.emplace_back().program = {"/usr/bin/program"};
    const tools::Job job(std::move(nodes), spec.node_of_rank, spec.tree_radix);
    const uint64_t began_ns = ProcessorNs();
    const tools::RankCommands commands(arguments, layout, {}, job);
    const auto text = std::make_shared<const std::string>(tools::ToText(commands.ForAgents()));
    const uint64_t built_ns = ProcessorNs() - began_ns;
    launch_bytes_ = text->size();
    arrivals_ns_.resize(job_.nodes);
    Pass(0, job_.nodes, arguments.launch_radix, world_.now_ns() + built_ns);
    uint64_t host_ns = 0;  // of the slowest host that is played, from the frame to the job
    for (WorldNode* const node : world_.daemons()) {
      world_.AfterNs(arrivals_ns_[node->number] - world_.now_ns(), node, Costs().call_ns,
                     [this, node, text, &spec, &host_ns] {
                       CreateJob(node, *text, spec);
                       host_ns = std::max(host_ns, world_.now_ns() - arrivals_ns_[node->number]);
                     });
    }
    (void)Until([](WorldNode& node) { return node.job() != nullptr; });
    const uint64_t last_ns = *std::max_element(arrivals_ns_.begin(), arrivals_ns_.end());
    launched_ns_ = last_ns + host_ns + Costs().latency_ns + kFrameNs * job_.nodes;
    world_.Run((launched_ns_ - std::min(launched_ns_, world_.now_ns())) / kNsPerMs);
    launched_ns_ = std::max(launched_ns_, world_.now_ns());
    told_ns_ = TellRanks(commands, job.size());
  }

  // The frame goes to the first host of each group, and from there on to the others of the group.
  void Pass(size_t first, size_t count, uint64_t radix, uint64_t at_ns) {
    const uint64_t each_ns = world_.TransferNs(launch_bytes_) + kFrameNs;
    for (const tools::HostGroup& group : tools::SplitHosts(first, count, radix)) {
      at_ns += each_ns;
      arrivals_ns_[group.first] = at_ns + Costs().latency_ns;
      Pass(group.first + 1, group.count - 1, radix, arrivals_ns_[group.first]);
    }
  }

  // Does what an agent does, and then its daemon, on one processor.
  static void CreateJob(WorldNode* node, const std::string& text, const JobSpec& spec) {
    const StatusOr<tools::AgentJob> all = tools::ReadJob(text);
    control::CreateJobRequest made;
    if (!all.ok() || !made.ParseFromString(all->request)) {
      std::abort();
    }
    made.set_packed_nodes(PackNodes(all->node_of_rank));
    made.set_node(node->number);
    made.set_job_id(spec.id);
    made.set_secret(spec.secret);
    control::CreateJobRequest request;
    if (!request.ParseFromString(made.SerializeAsString())) {
      std::abort();
    }
    StatusOr<JobSpec> parsed = SpecFrom(request);
    const Status created =
        parsed.ok() ? node->registry().CreateJob(std::move(*parsed)) : parsed.status();
    if (!created.ok()) {
      std::fprintf(stderr, "world: %s\n", created.message().c_str());
      std::exit(1);
    }
  }

  // How long ferryrun takes to tell all agents of all their ranks.
  static uint64_t TellRanks(const tools::RankCommands& commands, uint32_t size) {
    const uint64_t began_ns = ProcessorNs();
    std::string frames;
    for (uint32_t rank = 0; rank < size; ++rank) {
      frames.clear();
      tools::AppendFrame(tools::FrameKind::kStartRank, rank, tools::ToText(commands.There(rank)),
                         &frames);
    }
    return ProcessorNs() - began_ns;
  }

  // Ranks start in the order in which ferryrun tells of them.
  void EnterAll() {
    for (WorldNode* const node : world_.daemons()) {
      const auto told_ns = static_cast<uint64_t>(static_cast<double>(told_ns_) * node->number /
                                                 static_cast<double>(job_.nodes));
      for (uint32_t local = 0; local < job_.per_node; ++local) {
        world_.AfterNs(told_ns + local * kRankApartNs, node, 0,
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
  uint64_t told_ns_ = 0;
  std::vector<uint64_t> arrivals_ns_;  // by node: when the frame with the job is there
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
  spdlog::set_level(spdlog::level::off);  // the answer alone is on stdout
  ferry::daemon::Run run({number(1), number(2), number(3), has_stand_ins});
  if (!run.Measure()) {
    std::printf("\n");
    std::fprintf(stderr, "world: it did not come about\n");
    return 1;
  }
  return 0;
}

// Many daemons in one thread: the real registries of their jobs, over data planes that only record
// calls, and a network in which time is a number. By default every call takes a millisecond there
// and one back; a daemon that dies is noticed by those that have a link to it after a heartbeat's
// interval.
//
// Tests and benchmarks/scale use it. For these, what a call and a new link cost can be set, the
// processor time that the control code takes here counts as the time of its daemon, and most
// daemons may be stand-ins (job_world_path.h), so that jobs of any size fit.
#pragma once

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "daemon/jobs/job_nodes.h"
#include "daemon/jobs/job_registry.h"
#include "tests/daemon/fake_data_plane.h"

namespace ferry::daemon {

class World;

// The prices of the world.
struct WorldCosts {
  uint64_t latency_ns = 1'000'000;  // of a request or an answer, on its way
  uint64_t call_ns = 0;             // of a call, at each end, beside what the control code does
  uint64_t greeting_ns = 0;         // of a new link, at each end
  uint64_t bytes_per_us = 0;        // of the network; 0: size costs nothing
  bool counts_processor = false;    // the control code takes as long as the processor takes here
};

// Counts of the calls and of the work of a daemon.
struct WorldCounts {
  size_t relays = 0;
  size_t joineds = 0;
  size_t lefts = 0;
  size_t greetings = 0;  // links that came up; each takes two calls of Hello from either end
  uint64_t bytes = 0;    // of relays, joineds and lefts
  uint64_t busy_ns = 0;

  size_t calls() const { return relays + joineds + lefts; }
};

// One daemon.
class WorldNode final : public NodeLinks {
 public:
  WorldNode(World& world, uint32_t number);

  std::string address() const;
  JobRegistry& registry() { return *registry_; }
  JobRecord* job(const std::string& id = "job") {
    const auto found = registry_->jobs().find(id);
    return found == registry_->jobs().end() ? nullptr : found->second.get();
  }
  // A rank of this node attaches and joins; `joined` says how that ended. Errors of the two steps
  // before it joins.
  Status Enter(uint32_t rank, const std::string& id = "job");
  // Its process dies.
  void Die(uint32_t rank, const std::string& id = "job") {
    registry_->EndSession(id, rank, {ErrorCode::kPeerDied, "was killed"});
  }
  // So often its data plane was told of the rank's end, or of that of the link to its node.
  size_t Heard(uint32_t rank, const std::string& id = "job");
  size_t LinksUp() const;

  // ---- NodeLinks ----
  Status Acquire(const std::string& address, uid_t user) override;
  Status Name(const std::string& address, uid_t user) override;
  void Open(const std::string& address, uint64_t incarnation) override;
  void Check(const std::string& address) override;
  bool IsSilent(const std::string& address) const override;
  void Release(const std::string& address, uid_t user) override;
  uint64_t Incarnation() const override { return incarnation; }
  void SendJoined(const std::string& address, const control::JoinedRequest& request,
                  Done done) override;
  void SendLeft(const std::string& address, const control::LeftRequest& request,
                Done done) override;
  void SendRelay(const std::string& address, const control::RelayRequest& request,
                 Done done) override;
  void SendPairs(const std::string&, const control::PairNewsRequest&, NewsDone) override {}
  void SendLinkNews(const std::string&, const control::LinkNewsRequest&, NewsDone) override {}

  struct Link {
    uint32_t wanted = 0;
    bool is_open = false;
    bool is_known = false;  // Open has said so
    bool is_up = false;
  };

  const uint32_t number;
  uint64_t incarnation;
  bool is_dead = false;
  bool is_stopped = false;
  FakeDataPlane plane;
  std::map<std::string, Link> links;                         // by address
  std::vector<std::function<void()>> while_stopped;          // what came
  std::map<std::string, std::map<uint32_t, Status>> joined;  // by job and rank
  size_t checks = 0;
  WorldCounts counts;
  struct Work {
    uint64_t cost_ns;
    std::function<void()> act;
  };
  std::queue<Work> waiting;      // until it is free
  uint64_t free_at_ns = 0;       // busy until then
  uint64_t latest_relay_ns = 0;  // so long the latest request of a neighbour took it

 private:
  using Handle = std::function<Status(WorldNode& to)>;
  void Send(const std::string& address, uint64_t bytes, Done done, Handle handle);

  World& world_;
  std::unique_ptr<JobRegistry> registry_;
};

class World {
 public:
  static constexpr uint64_t kTickMs = 250;
  static constexpr uint64_t kNsPerMs = 1'000'000;
  static RegistryLimits UsualLimits() {
    RegistryLimits limits;
    limits.peer_timeout_ms = 15'000;
    return limits;
  }

  explicit World(uint32_t nodes) : World(nodes, {}, UsualLimits(), {}) {}
  // Only `real` nodes are daemons, all of them if there are none; the others are stand-ins.
  World(uint32_t nodes, WorldCosts costs, RegistryLimits limits, const std::vector<uint32_t>& real);

  // It must be no stand-in.
  WorldNode& operator[](uint32_t node) { return *nodes_[node]; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  const std::vector<WorldNode*>& daemons() const { return real_; }
  const WorldCosts& costs() const { return costs_; }
  const RegistryLimits& limits() const { return limits_; }
  static std::string AddressOf(uint32_t node);
  static uint32_t NumberOf(const std::string& address);
  static uint64_t FirstIncarnation(uint32_t node) { return 500 + uint64_t{node}; }
  // Null: a stand-in.
  WorldNode* At(const std::string& address) { return nodes_[NumberOf(address)].get(); }

  // The job of `per_node` ranks on each of `daemons`, of all nodes if there are none, for node 0.
  JobSpec SpecFor(uint32_t radix, uint32_t per_node, const std::string& id = "job",
                  std::vector<uint32_t> daemons = {}) const;
  // Creates it on each of these daemons. Errors of the first that fails.
  Status CreateJob(uint32_t radix, uint32_t per_node = 1, const std::string& id = "job",
                   std::vector<uint32_t> daemons = {});

  // ---- Time ----
  // Within an event of a daemon, what it has taken so far is in it.
  uint64_t now_ns() const;
  uint64_t now_ms() const { return now_ns() / kNsPerMs; }
  void After(uint64_t delay_ms, std::function<void()> act) {
    AfterNs(delay_ms * kNsPerMs, nullptr, 0, std::move(act));
  }
  // `at` does it once it has nothing else to do, and is busy for `cost_ns` beside the processor
  // time. Null: it is the work of no daemon.
  void AfterNs(uint64_t delay_ns, WorldNode* at, uint64_t cost_ns, std::function<void()> act);
  void Settle() {
    context_.restart();
    context_.poll();
  }
  // Lets time pass until `done`; false: it has not come for `most_ms`.
  bool RunUntil(const std::function<bool()>& done, uint64_t most_ms = 60'000);
  void Run(uint64_t ms) {
    RunUntil([] { return false; }, ms);
  }
  uint64_t TransferNs(uint64_t bytes) const {
    return costs_.bytes_per_us == 0 ? 0 : bytes * 1000 / costs_.bytes_per_us;
  }

  // ---- Faults ----
  void Kill(uint32_t node);
  void Stop(uint32_t node) { (*this)[node].is_stopped = true; }
  void Continue(uint32_t node);

  // ---- Links ----
  // Both ends that want each other, once one greets.
  void Greet(WorldNode& from, const std::string& address);
  void ReportUp(WorldNode& here, const std::string& address);
  // As the port of a dead daemon answers.
  void Look(WorldNode& from, const std::string& address);
  boost::asio::io_context& context() { return context_; }
  // Sees each relay that a daemon sends, when it does.
  std::function<void(WorldNode& from, uint32_t to, const control::RelayRequest& request)> on_relay;
  // So long a stand-in takes for a request.
  std::function<uint64_t(uint32_t stand_in)> stand_in_ns;

  // Links that are up, each counted once; without stand-ins only.
  size_t LinksUp() const;
  size_t Relays() const;
  size_t Lefts() const;
  // The nodes that live.
  template <typename Predicate>
  bool AllLiving(Predicate&& is_true) const {
    return std::all_of(real_.begin(), real_.end(),
                       [&](WorldNode* node) { return node->is_dead || is_true(*node); });
  }

 private:
  struct Event {
    uint64_t at_ns;
    uint64_t number;
    WorldNode* at;
    WorldNode::Work work;  // empty: what waits for the daemon
    bool operator<(const Event& other) const {
      return std::pair(at_ns, number) > std::pair(other.at_ns, other.number);
    }
  };

  void Push(Event event);
  Event Pop();
  void Carry(Event event);
  void CarryOut(WorldNode* at, const WorldNode::Work& work);
  void TickLater(uint32_t node, uint64_t delay_ns);
  void Tick(uint32_t node);
  void Notice(WorldNode* one, const std::string& address);
  void Refuse(WorldNode& from, const std::string& address);

  const WorldCosts costs_;
  const RegistryLimits limits_;
  boost::asio::io_context context_;
  std::vector<std::unique_ptr<WorldNode>> nodes_;  // null: a stand-in
  std::vector<WorldNode*> real_;
  std::vector<Event> events_;  // a heap
  uint64_t now_ns_ = 0;
  uint64_t next_ = 0;
  bool is_within_ = false;        // an event of a daemon
  uint64_t began_at_cpu_ns_ = 0;  // it
};

}  // namespace ferry::daemon

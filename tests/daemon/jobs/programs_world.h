// Programs that follow each other in the slots of a launch: registries of several nodes over a
// network in memory, whose messages a test delivers in any order.
#pragma once

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/jobs/job_members.h"
#include "daemon/jobs/job_nodes.h"
#include "daemon/jobs/job_registry.h"
#include "tests/daemon/fake_data_plane.h"

namespace ferry::daemon {

inline constexpr char kSecret[] = "a secret of thirty-two bytes ...";

class ProgramsWorld;

// The links of a node to the others.
class Wires final : public NodeLinks {
 public:
  Wires(ProgramsWorld& world, uint32_t node) : world_(world), node_(node) {}
  Status Acquire(const std::string& address, uid_t) override;
  void Release(const std::string&, uid_t) override { --acquired; }
  uint64_t Incarnation() const override { return 100 + node_; }
  void SendJoined(const std::string& to, const control::JoinedRequest& request, Done done) override;
  void SendLeft(const std::string& to, const control::LeftRequest& request, Done done) override;
  void SendPairs(const std::string&, const control::PairNewsRequest&, NewsDone) override {}
  void SendLinkNews(const std::string&, const control::LinkNewsRequest&, NewsDone) override {}

  int acquired = 0;

 private:
  ProgramsWorld& world_;
  const uint32_t node_;
};

// A process in a slot, from its attach on.
struct Process {
  std::shared_ptr<Session> session;
  std::optional<Status> joined = {};
  bool has_left = false;
};

class ProgramsWorld {
 public:
  struct Node {
    Node(ProgramsWorld& world, uint32_t index, const RegistryLimits& limits)
        : registry(world.context, plane, limits), wires(world, index) {
      registry.set_links(&wires);
    }
    FakeDataPlane plane;
    JobRegistry registry;
    Wires wires;
  };

  explicit ProgramsWorld(std::vector<uint32_t> node_of_rank, const RegistryLimits& limits = {});

  static std::string AddressOf(uint32_t node) { return "node" + std::to_string(node) + ":1"; }
  JobSpec SpecFor(uint32_t node, const std::string& id = "x") const;
  void Launch();

  JobRegistry& At(uint32_t node) { return nodes[node]->registry; }
  JobRegistry& Of(uint32_t rank) { return At(node_of_rank_[rank]); }
  uint32_t size() const { return static_cast<uint32_t>(node_of_rank_.size()); }

  // ---- What a process does ----
  Status Attach(uint32_t rank, pid_t pid = getpid());
  void Leave(uint32_t rank) {
    Of(rank).members().Detach(*processes[rank]->session, 0,
                              [process = processes[rank]](bool left) { process->has_left = left; });
  }
  void Die(uint32_t rank);
  std::string JobOf(uint32_t rank) const { return processes[rank]->session->job_id; }
  Status JoinOf(uint32_t rank) const {
    return processes[rank]->joined.value_or(Status(ErrorCode::kWouldBlock, "it waits"));
  }
  std::vector<std::string> JobsAt(uint32_t node);

  // ---- The network ----
  void Post(std::function<void()> message) { messages.push_back(std::move(message)); }
  void Deliver(size_t index);
  void Tick() {
    for (const auto& node : nodes) {
      node->registry.nodes().OnTick();
    }
    context.restart();
    context.poll();
  }
  // Until nothing is under way, and nothing would be said again.
  void Settle();
  // Loses the next so many messages: the sender hears of a timeout.
  int losses = 0;

  boost::asio::io_context context;
  std::vector<std::unique_ptr<Node>> nodes;
  std::deque<std::function<void()>> messages;
  std::vector<std::shared_ptr<Process>> processes;  // by rank: the latest

 private:
  const std::vector<uint32_t> node_of_rank_;
};

// Expects that status, with these words in its message.
void ExpectRefused(const Status& status, ErrorCode code, const std::string& words);

}  // namespace ferry::daemon

// Many daemons in one thread: the real registries of their jobs, over data planes that only record
// calls, and a network in which time is a number. Every call takes a millisecond there and one
// back; a daemon that dies is noticed by those that have a link to it after a heartbeat's interval.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/jobs/job_nodes.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/tls/secrets.h"
#include "tests/daemon/fake_data_plane.h"
#include "tests/daemon/test_rank.h"

namespace ferry::daemon {

class World;

// One daemon.
class WorldNode final : public NodeLinks {
 public:
  static constexpr uint64_t kPeerTimeoutMs = 15'000;

  WorldNode(World& world, uint32_t number);

  std::string address() const { return "127.0.0.1:" + std::to_string(10'000 + number); }
  JobRegistry& registry() { return *registry_; }
  JobRecord* job(const std::string& id = "job") {
    const auto found = registry_->jobs().find(id);
    return found == registry_->jobs().end() ? nullptr : found->second.get();
  }
  // A rank of this node attaches and joins; `joined` says how that ended.
  void Enter(uint32_t rank, const std::string& id = "job");
  // Its process dies.
  void Die(uint32_t rank, const std::string& id = "job") {
    registry_->EndSession(id, rank, {ErrorCode::kPeerDied, "was killed"});
  }
  // So often its data plane was told of the rank's end, or of that of the link to its node.
  size_t Heard(uint32_t rank, const std::string& id = "job");

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
  size_t relays = 0;  // sent
  size_t lefts = 0;

 private:
  template <typename Handle>
  void Send(const std::string& address, Done done, Handle handle);

  World& world_;
  std::unique_ptr<JobRegistry> registry_;
};

class World {
 public:
  static constexpr uint64_t kTickMs = 250;

  explicit World(uint32_t nodes) {
    for (uint32_t node = 0; node < nodes; ++node) {
      nodes_.push_back(std::make_unique<WorldNode>(*this, node));
      After(node % kTickMs, [this, node] { Tick(node); });
    }
  }
  WorldNode& operator[](uint32_t node) { return *nodes_[node]; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  WorldNode* At(const std::string& address) {
    for (const auto& node : nodes_) {
      if (node->address() == address) {
        return node.get();
      }
    }
    return nullptr;
  }

  // Creates a job of `per_node` ranks on each of these daemons, all of them if there are none.
  void CreateJob(uint32_t radix, uint32_t per_node = 1, const std::string& id = "job",
                 std::vector<uint32_t> daemons = {}) {
    const bool is_of_all = daemons.empty();
    for (uint32_t node = 0; daemons.size() < size() && node < size() && is_of_all; ++node) {
      daemons.push_back(node);
    }
    JobSpec spec;
    spec.id = id;
    spec.secret = kTestSecret;
    spec.owner = geteuid();
    spec.tree_radix = radix;
    for (const uint32_t daemon : daemons) {
      spec.node_addresses.push_back((*this)[daemon].address());
      spec.node_of_rank.insert(spec.node_of_rank.end(), per_node, spec.node);
      ++spec.node;
    }
    spec.node = 0;
    for (const uint32_t daemon : daemons) {
      ASSERT_TRUE((*this)[daemon].registry().CreateJob(spec).ok());
      ++spec.node;
    }
    Settle();
  }

  // ---- Time ----
  uint64_t now_ms() const { return now_ms_; }
  void After(uint64_t delay_ms, std::function<void()> act) {
    events_.push({now_ms_ + delay_ms, next_++, std::move(act)});
  }
  void Settle() {
    context_.restart();
    context_.poll();
  }
  // Lets time pass until `done`; false: it has not come for `most_ms`.
  bool RunUntil(const std::function<bool()>& done, uint64_t most_ms = 60'000) {
    const uint64_t end_ms = now_ms_ + most_ms;
    while (!done()) {
      if (events_.empty() || events_.top().at_ms > end_ms) {
        return false;
      }
      const Event next = events_.top();
      events_.pop();
      now_ms_ = next.at_ms;
      next.act();
      Settle();
    }
    return true;
  }
  void Run(uint64_t ms) {
    RunUntil([] { return false; }, ms);
  }

  // ---- Faults ----
  void Kill(uint32_t node) {
    WorldNode& dead = (*this)[node];
    dead.is_dead = true;
    for (const auto& one : nodes_) {
      After(kTickMs, [this, one = one.get(), address = dead.address()] { Notice(one, address); });
    }
  }
  void Stop(uint32_t node) { (*this)[node].is_stopped = true; }
  void Continue(uint32_t node) {
    (*this)[node].is_stopped = false;
    for (auto& act : std::exchange((*this)[node].while_stopped, {})) {
      act();
      Settle();
    }
    Tick(node, /*again=*/false);
  }

  // ---- Links ----
  // Both ends that want each other, once one greets.
  void Greet(WorldNode& from, const std::string& address) {
    WorldNode* const to = At(address);
    After(1, [this, &from, to] {
      if (from.is_dead || to == nullptr) {
        return;
      }
      if (to->is_dead) {
        return Refuse(from, to->address());
      }
      const auto answer = [this, &from, to] {
        const auto there = to->links.find(from.address());
        const auto here = from.links.find(to->address());
        if (there == to->links.end() || here == from.links.end() || here->second.is_up) {
          return;
        }
        there->second.is_open = here->second.is_open = true;
        there->second.is_up = here->second.is_up = true;
        // One of the two is up a little earlier.
        After(1, [this, &from, to] { ReportUp(from, *to); });
        After(3, [this, &from, to] { ReportUp(*to, from); });
      };
      to->is_stopped ? to->while_stopped.push_back(answer) : answer();
    });
  }

  void ReportUp(WorldNode& here, WorldNode& there) {
    const auto act = [&here, &there] {
      const auto link = here.links.find(there.address());
      if (here.is_dead || link == here.links.end() || !link->second.is_up) {
        return;
      }
      NodeContact contact;
      contact.address = there.address();
      contact.incarnation = there.incarnation;
      contact.link = 1000 + there.number;
      contact.life = 0;  // the first one
      here.registry().nodes().OnNodeUp(contact);
    };
    here.is_stopped ? here.while_stopped.push_back(act) : act();
  }

  boost::asio::io_context& context() { return context_; }

  // As the port of a dead daemon answers.
  void Look(WorldNode& from, const std::string& address) {
    After(1, [this, &from, address] {
      if (At(address)->is_dead) {
        Notice(&from, address);
      }
    });
  }

  // Links that are up, each counted once.
  size_t LinksUp() const {
    size_t ends = 0;
    for (const auto& node : nodes_) {
      ends += static_cast<size_t>(std::count_if(node->links.begin(), node->links.end(),
                                                [](const auto& one) { return one.second.is_up; }));
    }
    return ends / 2;
  }
  size_t Relays() const {
    size_t sum = 0;
    for (const auto& node : nodes_) {
      sum += node->relays;
    }
    return sum;
  }
  size_t Lefts() const {
    size_t sum = 0;
    for (const auto& node : nodes_) {
      sum += node->lefts;
    }
    return sum;
  }
  // The nodes that live.
  template <typename Predicate>
  bool AllLiving(Predicate&& is_true) const {
    return std::all_of(nodes_.begin(), nodes_.end(),
                       [&](const auto& node) { return node->is_dead || is_true(*node); });
  }

 private:
  struct Event {
    uint64_t at_ms;
    uint64_t number;
    std::function<void()> act;
    bool operator<(const Event& other) const {
      return std::pair(at_ms, number) > std::pair(other.at_ms, other.number);
    }
  };

  void Tick(uint32_t node, bool again = true) {
    WorldNode& one = (*this)[node];
    if (one.is_dead) {
      return;
    }
    if (!one.is_stopped) {
      for (auto& [address, link] : one.links) {
        if (link.is_open && !link.is_up) {
          Greet(one, address);
        }
      }
      one.registry().nodes().OnTick();
    }
    if (again) {
      After(kTickMs, [this, node] { Tick(node); });
    }
  }
  void Notice(WorldNode* one, const std::string& address) {
    const auto link = one->links.find(address);
    if (one->is_dead || link == one->links.end() || !link->second.is_up) {
      return;
    }
    if (one->is_stopped) {
      return one->while_stopped.push_back([this, one, address] { Notice(one, address); });
    }
    one->links.erase(link);
    one->registry().nodes().OnNodeDown(address, 1000 + At(address)->number,
                                       {ErrorCode::kNodeUnreachable, "its daemon has died"});
  }
  void Refuse(WorldNode& from, const std::string& address) {
    const auto link = from.links.find(address);
    if (link != from.links.end() && link->second.is_known) {
      from.registry().nodes().OnNodeRefused(
          address, {ErrorCode::kNodeUnreachable, "nothing listens there any more"});
    }
  }

  boost::asio::io_context context_;
  std::vector<std::unique_ptr<WorldNode>> nodes_;
  std::priority_queue<Event> events_;
  uint64_t now_ms_ = 0;
  uint64_t next_ = 0;
};

inline WorldNode::WorldNode(World& world, uint32_t its_number)
    : number(its_number),
      incarnation(500 + its_number),
      world_(world),
      registry_(std::make_unique<JobRegistry>(world.context(), plane,
                                              RegistryLimits{.peer_timeout_ms = kPeerTimeoutMs})) {
  registry_->set_links(this);
}

inline size_t WorldNode::Heard(uint32_t rank, const std::string& id) {
  const Node& node = job(id)->nodes[job(id)->spec.node_of_rank[rank]];
  return node.is_failure_known
             ? plane.Count("NodeFailed " + std::to_string(1000 + world_.At(node.address)->number))
             : plane.Count("RankEnded " + id + " " + std::to_string(rank) + " ");
}

inline void WorldNode::Enter(uint32_t rank, const std::string& id) {
  AttachClaim claim;
  claim.job_id = id;
  claim.secret = kTestSecret;
  claim.rank = rank;
  claim.size = job(id)->size();
  claim.pid = getpid();
  claim.uid = geteuid();
  const StatusOr<std::shared_ptr<Session>> session = registry_->Attach(claim, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_TRUE(registry_->Serve(**session).ok());
  registry_->members().Join(**session, 0,
                            [this, id, rank](const Status& status, const JoinAnswer& answer) {
                              if (!answer.waiting) {
                                joined[id][rank] = status;
                              }
                            });
  world_.Settle();
}

inline Status WorldNode::Acquire(const std::string& address, uid_t user) {
  (void)Name(address, user);
  Open(address, 0);
  return {};
}

inline Status WorldNode::Name(const std::string& address, uid_t) {
  Link& link = links[address];
  ++link.wanted;
  if (link.is_up) {
    world_.After(0, [this, address] { world_.ReportUp(*this, *world_.At(address)); });
  }
  return {};
}

inline void WorldNode::Open(const std::string& address, uint64_t known) {
  Link& link = links.at(address);
  link.is_known |= known != 0;
  if (!link.is_open) {
    link.is_open = true;
    world_.Greet(*this, address);
  }
}

inline void WorldNode::Check(const std::string& address) {
  ++checks;
  world_.Look(*this, address);
}

inline bool WorldNode::IsSilent(const std::string& address) const {
  return world_.At(address)->is_stopped;
}

inline void WorldNode::Release(const std::string& address, uid_t) {
  if (const auto found = links.find(address); found != links.end() && --found->second.wanted == 0) {
    links.erase(found);
  }
}

template <typename Handle>
void WorldNode::Send(const std::string& address, Done done, Handle handle) {
  WorldNode* const to = world_.At(address);
  const auto answered = std::make_shared<bool>(false);
  const auto answer = [this, answered, done = std::move(done)](const Status& status) {
    if (!std::exchange(*answered, true) && !is_dead) {
      is_stopped ? while_stopped.push_back([done, status] { done(status); }) : done(status);
    }
  };
  world_.After(3000, [answer] { answer({ErrorCode::kTimeout, "no answer"}); });
  world_.After(1, [this, to, answer, handle = std::move(handle)] {
    if (to->is_dead) {
      return answer({ErrorCode::kNodeUnreachable, "refused"});
    }
    const auto act = [this, to, answer, handle] {
      if (!to->is_dead) {
        const Status status = handle(*to);
        world_.After(1, [answer, status] { answer(status); });
      }
    };
    to->is_stopped ? to->while_stopped.push_back(act) : act();
  });
}

inline void WorldNode::SendJoined(const std::string& address, const control::JoinedRequest& request,
                                  Done done) {
  Send(address, std::move(done), [request, caller = this->address()](WorldNode& to) {
    return to.registry().nodes().OnJoined(request, caller);
  });
}

inline void WorldNode::SendLeft(const std::string& address, const control::LeftRequest& request,
                                Done done) {
  ++lefts;
  Send(address, std::move(done), [request, caller = this->address()](WorldNode& to) {
    return to.registry().nodes().OnLeft(request, caller);
  });
}

inline void WorldNode::SendRelay(const std::string& address, const control::RelayRequest& request,
                                 Done done) {
  ++relays;
  Send(address, std::move(done), [request, caller = this->address()](WorldNode& to) {
    return to.registry().nodes().OnRelay(request, caller);
  });
}

}  // namespace ferry::daemon

#include "tests/daemon/jobs/job_world.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "daemon/tls/secrets.h"
#include "tests/daemon/test_rank.h"

namespace ferry::daemon {
namespace {

uint64_t ProcessorNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

// ---- A daemon ----

WorldNode::WorldNode(World& world, uint32_t its_number)
    : number(its_number),
      incarnation(World::FirstIncarnation(its_number)),
      world_(world),
      registry_(std::make_unique<JobRegistry>(world.context(), plane, world.limits())) {
  registry_->set_links(this);
}

std::string WorldNode::address() const { return World::AddressOf(number); }

size_t WorldNode::Heard(uint32_t rank, const std::string& id) {
  const Node& node = job(id)->nodes[job(id)->spec.node_of_rank[rank]];
  return node.is_failure_known
             ? plane.Count("NodeFailed " + std::to_string(1000 + World::NumberOf(node.address)))
             : plane.Count("RankEnded " + id + " " + std::to_string(rank) + " ");
}

size_t WorldNode::LinksUp() const {
  return static_cast<size_t>(
      std::count_if(links.begin(), links.end(), [](const auto& one) { return one.second.is_up; }));
}

Status WorldNode::Enter(uint32_t rank, const std::string& id) {
  AttachClaim claim;
  claim.job_id = id;
  claim.secret = kTestSecret;
  claim.rank = rank;
  claim.size = job(id)->size();
  claim.pid = getpid();
  claim.uid = geteuid();
  const StatusOr<std::shared_ptr<Session>> session = registry_->Attach(claim, {});
  FERRY_RETURN_IF_ERROR(session.status());
  FERRY_RETURN_IF_ERROR(registry_->Serve(**session));
  registry_->members().Join(**session, 0,
                            [this, id, rank](const Status& status, const JoinAnswer& answer) {
                              if (!answer.waiting) {
                                joined[id][rank] = status;
                              }
                            });
  world_.Settle();
  return {};
}

Status WorldNode::Acquire(const std::string& address, uid_t user) {
  (void)Name(address, user);
  Open(address, 0);
  return {};
}

Status WorldNode::Name(const std::string& address, uid_t) {
  Link& link = links[address];
  ++link.wanted;
  if (link.is_up) {
    world_.AfterNs(0, this, 0, [this, address] { world_.ReportUp(*this, address); });
  }
  return {};
}

void WorldNode::Open(const std::string& address, uint64_t known) {
  Link& link = links.at(address);
  link.is_known |= known != 0;
  if (!link.is_open) {
    link.is_open = true;
    world_.Greet(*this, address);
  }
}

void WorldNode::Check(const std::string& address) {
  ++checks;
  world_.Look(*this, address);
}

bool WorldNode::IsSilent(const std::string& address) const {
  const WorldNode* const there = world_.At(address);
  return there != nullptr && there->is_stopped;
}

void WorldNode::Release(const std::string& address, uid_t) {
  if (const auto found = links.find(address); found != links.end() && --found->second.wanted == 0) {
    links.erase(found);
  }
}

void WorldNode::Send(const std::string& address, uint64_t bytes, Done done, Handle handle) {
  counts.bytes += bytes;
  const WorldCosts& costs = world_.costs();
  WorldNode* const to = world_.At(address);
  const auto answered = std::make_shared<bool>(false);
  const auto answer = [this, answered, done = std::move(done)](const Status& status) {
    if (!std::exchange(*answered, true) && !is_dead) {
      is_stopped ? while_stopped.push_back([done, status] { done(status); }) : done(status);
    }
  };
  const uint64_t there_ns = costs.latency_ns + world_.TransferNs(bytes);
  if (to == nullptr) {
    const uint64_t work_ns = world_.stand_in_ns(World::NumberOf(address)) + costs.call_ns;
    return world_.AfterNs(there_ns + work_ns + costs.latency_ns, this, costs.call_ns,
                          [answer] { answer({}); });
  }
  if (!costs.counts_processor) {  // where time is the processor's, a busy daemon is no silent one
    world_.AfterNs(3000 * World::kNsPerMs, nullptr, 0, [answer] {
      answer({ErrorCode::kTimeout, "no answer"});
    });
  }
  world_.AfterNs(there_ns, to, costs.call_ns, [this, to, answer, handle = std::move(handle)] {
    if (to->is_dead) {
      return answer({ErrorCode::kNodeUnreachable, "refused"});
    }
    const auto act = [this, to, answer, handle] {
      if (!to->is_dead) {
        const uint64_t began_ns = world_.now_ns();
        const Status status = handle(*to);
        to->latest_relay_ns = world_.now_ns() - began_ns;
        world_.AfterNs(world_.costs().latency_ns, this, world_.costs().call_ns,
                       [answer, status] { answer(status); });
      }
    };
    to->is_stopped ? to->while_stopped.push_back(act) : act();
  });
}

void WorldNode::SendJoined(const std::string& address, const control::JoinedRequest& request,
                           Done done) {
  ++counts.joineds;
  Send(address, request.ByteSizeLong(), std::move(done),
       [own = std::make_shared<const control::JoinedRequest>(request), caller = this->address()](
           WorldNode& to) { return to.registry().nodes().OnJoined(*own, caller); });
}

void WorldNode::SendLeft(const std::string& address, const control::LeftRequest& request,
                         Done done) {
  ++counts.lefts;
  Send(address, request.ByteSizeLong(), std::move(done),
       [own = std::make_shared<const control::LeftRequest>(request), caller = this->address()](
           WorldNode& to) { return to.registry().nodes().OnLeft(*own, caller); });
}

void WorldNode::SendRelay(const std::string& address, const control::RelayRequest& request,
                          Done done) {
  ++counts.relays;
  if (world_.on_relay != nullptr) {
    world_.on_relay(*this, World::NumberOf(address), request);
  }
  Send(address, request.ByteSizeLong(), std::move(done),
       [own = std::make_shared<const control::RelayRequest>(request), caller = this->address()](
           WorldNode& to) { return to.registry().nodes().OnRelay(*own, caller); });
}

// ---- All of them ----

World::World(uint32_t nodes, WorldCosts costs, RegistryLimits limits,
             const std::vector<uint32_t>& real)
    : costs_(costs), limits_(std::move(limits)), nodes_(nodes) {
  const auto add = [this](uint32_t node) {
    nodes_[node] = std::make_unique<WorldNode>(*this, node);
    real_.push_back(nodes_[node].get());
    TickLater(node, node % kTickMs * kNsPerMs);
  };
  for (uint32_t node = 0; node < nodes && real.empty(); ++node) {
    add(node);
  }
  std::for_each(real.begin(), real.end(), add);
}

// 24 bits of 127.0.0.0/8.
std::string World::AddressOf(uint32_t node) {
  const uint32_t host = node + 1;
  return "127." + std::to_string(host >> 16U) + "." + std::to_string(host >> 8U & 255U) + "." +
         std::to_string(host & 255U) + ":4711";
}

uint32_t World::NumberOf(const std::string& address) {
  uint32_t host = 0;
  uint32_t part = 0;
  for (const char c : address.substr(0, address.find(':'))) {
    if (c == '.') {
      host = host << 8U | std::exchange(part, 0);
    } else {
      part = 10 * part + static_cast<uint32_t>(c - '0');
    }
  }
  return ((host << 8U | part) & 0xff'ffffU) - 1;
}

JobSpec World::SpecFor(uint32_t radix, uint32_t per_node, const std::string& id,
                       std::vector<uint32_t> daemons) const {
  for (uint32_t node = 0, all = daemons.empty() ? size() : 0; node < all; ++node) {
    daemons.push_back(node);
  }
  JobSpec spec;
  spec.id = id;
  spec.secret = kTestSecret;
  spec.owner = geteuid();
  spec.tree_radix = radix;
  for (const uint32_t daemon : daemons) {
    spec.node_addresses.push_back(AddressOf(daemon));
    spec.node_of_rank.insert(spec.node_of_rank.end(), per_node, spec.node);
    ++spec.node;
  }
  spec.node = 0;
  return spec;
}

Status World::CreateJob(uint32_t radix, uint32_t per_node, const std::string& id,
                        std::vector<uint32_t> daemons) {
  JobSpec spec = SpecFor(radix, per_node, id, std::move(daemons));
  for (const std::string& address : spec.node_addresses) {
    if (WorldNode* const daemon = At(address); daemon != nullptr) {
      FERRY_RETURN_IF_ERROR(daemon->registry().CreateJob(spec));
    }
    ++spec.node;
  }
  Settle();
  return {};
}

// ---- Time ----

uint64_t World::now_ns() const {
  return now_ns_ + (is_within_ && costs_.counts_processor ? ProcessorNs() - began_at_cpu_ns_ : 0);
}

void World::AfterNs(uint64_t delay_ns, WorldNode* at, uint64_t cost_ns, std::function<void()> act) {
  Push({now_ns() + delay_ns, next_++, at, {cost_ns, std::move(act)}});
}

void World::Push(Event event) {
  events_.push_back(std::move(event));
  std::push_heap(events_.begin(), events_.end());
}

World::Event World::Pop() {
  std::pop_heap(events_.begin(), events_.end());
  Event next = std::move(events_.back());
  events_.pop_back();
  return next;
}

void World::Carry(Event event) {
  WorldNode* const at = event.at;
  if (at == nullptr) {
    return CarryOut(nullptr, event.work);
  }
  if (event.work.act != nullptr) {
    at->waiting.push(std::move(event.work));
    if (at->waiting.size() > 1) {
      return;  // an event for the first of them is under way
    }
  }
  if (at->free_at_ns <= now_ns_) {
    const WorldNode::Work work = std::move(at->waiting.front());
    CarryOut(at, work);
    at->waiting.pop();
  }
  if (!at->waiting.empty()) {
    Push({at->free_at_ns, next_++, at, {}});
  }
}

void World::CarryOut(WorldNode* at, const WorldNode::Work& work) {
  const uint64_t began_ns = now_ns_;
  is_within_ = at != nullptr;
  began_at_cpu_ns_ = is_within_ && costs_.counts_processor ? ProcessorNs() : 0;
  now_ns_ += work.cost_ns;  // before its results leave the daemon
  work.act();
  Settle();
  if (at != nullptr) {
    at->free_at_ns = now_ns();
    at->counts.busy_ns += at->free_at_ns - began_ns;
  }
  is_within_ = false;
  now_ns_ = began_ns;
}

bool World::RunUntil(const std::function<bool()>& done, uint64_t most_ms) {
  const uint64_t end_ns = now_ns_ + most_ms * kNsPerMs;
  while (!done()) {
    if (events_.empty() || events_.front().at_ns > end_ns) {
      now_ns_ = end_ns;
      return false;
    }
    Event next = Pop();
    now_ns_ = next.at_ns;
    Carry(std::move(next));
  }
  return true;
}

void World::TickLater(uint32_t node, uint64_t delay_ns) {
  AfterNs(delay_ns, nodes_[node].get(), 0, [this, node] {
    if (!(*this)[node].is_dead) {
      Tick(node);
      TickLater(node, kTickMs * kNsPerMs);
    }
  });
}

void World::Tick(uint32_t node) {
  WorldNode& one = (*this)[node];
  if (one.is_dead || one.is_stopped) {
    return;
  }
  for (auto& [address, link] : one.links) {
    if (link.is_open && !link.is_up) {
      Greet(one, address);
    }
  }
  one.registry().nodes().OnTick();
}

// ---- Faults ----

void World::Kill(uint32_t node) {
  WorldNode& dead = (*this)[node];
  dead.is_dead = true;
  for (WorldNode* const one : real_) {
    AfterNs(kTickMs * kNsPerMs, one, 0,
            [this, one, address = dead.address()] { Notice(one, address); });
  }
}

void World::Continue(uint32_t node) {
  (*this)[node].is_stopped = false;
  for (auto& act : std::exchange((*this)[node].while_stopped, {})) {
    act();
    Settle();
  }
  Tick(node);
}

void World::Notice(WorldNode* one, const std::string& address) {
  const auto link = one->links.find(address);
  if (one->is_dead || link == one->links.end() || !link->second.is_up) {
    return;
  }
  if (one->is_stopped) {
    return one->while_stopped.push_back([this, one, address] { Notice(one, address); });
  }
  one->links.erase(link);
  one->registry().nodes().OnNodeDown(address, 1000 + NumberOf(address),
                                     {ErrorCode::kNodeUnreachable, "its daemon has died"});
}

void World::Refuse(WorldNode& from, const std::string& address) {
  const auto link = from.links.find(address);
  if (link != from.links.end() && link->second.is_known) {
    from.registry().nodes().OnNodeRefused(
        address, {ErrorCode::kNodeUnreachable, "nothing listens there any more"});
  }
}

// ---- Links ----

void World::Greet(WorldNode& from, const std::string& address) {
  WorldNode* const to = At(address);
  if (to == nullptr) {  // a stand-in wants it, too
    return AfterNs(4 * costs_.latency_ns, &from, costs_.greeting_ns, [this, &from, address] {
      const auto here = from.links.find(address);
      if (here != from.links.end() && !std::exchange(here->second.is_up, true)) {
        ++from.counts.greetings;
        ReportUp(from, address);
      }
    });
  }
  AfterNs(costs_.latency_ns, nullptr, 0, [this, &from, to] {
    if (from.is_dead) {
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
      ++from.counts.greetings;
      ++to->counts.greetings;
      // One of the two is up a little earlier.
      AfterNs(costs_.latency_ns, &from, costs_.greeting_ns,
              [this, &from, to] { ReportUp(from, to->address()); });
      AfterNs(3 * costs_.latency_ns, to, costs_.greeting_ns,
              [this, &from, to] { ReportUp(*to, from.address()); });
    };
    to->is_stopped ? to->while_stopped.push_back(answer) : answer();
  });
}

void World::ReportUp(WorldNode& here, const std::string& address) {
  const auto act = [this, &here, address] {
    const auto link = here.links.find(address);
    if (here.is_dead || link == here.links.end() || !link->second.is_up) {
      return;
    }
    const uint32_t number = NumberOf(address);
    NodeContact contact;
    contact.address = address;
    contact.incarnation =
        nodes_[number] != nullptr ? nodes_[number]->incarnation : FirstIncarnation(number);
    contact.link = 1000 + number;
    contact.life = 0;  // the first one
    here.registry().nodes().OnNodeUp(contact);
  };
  here.is_stopped ? here.while_stopped.push_back(act) : act();
}

void World::Look(WorldNode& from, const std::string& address) {
  AfterNs(costs_.latency_ns, &from, 0, [this, &from, address] {
    if (const WorldNode* const there = At(address); there != nullptr && there->is_dead) {
      Notice(&from, address);
    }
  });
}

// ---- Sums ----

size_t World::LinksUp() const {
  size_t ends = 0;
  for (const WorldNode* const node : real_) {
    ends += node->LinksUp();
  }
  return ends / 2;
}

size_t World::Relays() const {
  size_t sum = 0;
  for (const WorldNode* const node : real_) {
    sum += node->counts.relays;
  }
  return sum;
}

size_t World::Lefts() const {
  size_t sum = 0;
  for (const WorldNode* const node : real_) {
    sum += node->counts.lefts;
  }
  return sum;
}

}  // namespace ferry::daemon

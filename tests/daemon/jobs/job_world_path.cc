#include "tests/daemon/jobs/job_world_path.h"

#include <algorithm>
#include <string>

#include "daemon/tls/secrets.h"
#include "tests/daemon/test_rank.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kNoNode = UINT32_MAX;

}  // namespace

std::vector<uint32_t> WayToLeaf(uint32_t nodes, uint32_t radix) {
  std::vector<uint32_t> way;
  for (uint64_t node = 0; node < nodes; node = node * radix + 1) {
    way.push_back(static_cast<uint32_t>(node));
  }
  return way;
}

StandIns::StandIns(World& world, uint32_t radix, uint32_t per_node)
    : world_(world), radix_(radix), per_node_(per_node) {
  world_.on_relay = [this](WorldNode& from, uint32_t to, const control::RelayRequest& request) {
    if (to < from.number) {
      Mirror(from, to, request);
    }
  };
  world_.stand_in_ns = [this](uint32_t stand_in) {
    const uint32_t parent = (stand_in - 1) / radix_;
    return world_[parent * radix_ + 1].latest_relay_ns;  // its sibling on the way
  };
}

StandIns::~StandIns() {
  world_.on_relay = nullptr;
  world_.stand_in_ns = nullptr;
}

// The node that is to `sibling` what `node` is to `daemon`, which is `node` or above it.
uint32_t StandIns::Counterpart(uint32_t node, uint32_t daemon, uint32_t sibling) const {
  uint64_t apart = sibling - daemon;
  for (uint32_t above = node; above > daemon; above = (above - 1) / radix_) {
    apart *= radix_;
  }
  const uint64_t found = node + apart;
  return found < world_.size() ? static_cast<uint32_t>(found) : kNoNode;
}

control::RelayRequest StandIns::RequestOf(uint32_t node) const {
  const uint64_t incarnation = World::FirstIncarnation(node);
  control::RelayRequest request;
  request.set_incarnation(incarnation);
  request.set_job_id("job");
  request.set_job_proof(JobProof(kTestSecret, "job", incarnation));
  request.set_node(node);
  return request;
}

void StandIns::Tell(uint32_t from, uint32_t to, const control::RelayRequest& request) {
  const WorldCosts& costs = world_.costs();
  // The node above has answered them one after the other, and so they tell the next thing.
  const uint64_t behind_ns = uint64_t{(from - 1) % radix_} * costs.call_ns;
  world_.AfterNs(behind_ns + costs.latency_ns + world_.TransferNs(request.ByteSizeLong()),
                 &world_[to], costs.call_ns, [this, from, to, request] {
                   (void)world_[to].registry().nodes().OnRelay(request, World::AddressOf(from));
                 });
}

void StandIns::Mirror(WorldNode& from, uint32_t to, const control::RelayRequest& request) {
  for (uint32_t sibling = from.number + 1; sibling < std::min(from.number + radix_, world_.size());
       ++sibling) {
    control::RelayRequest own = RequestOf(sibling);
    for (const control::RelayedNews& news : request.news()) {
      const bool is_of_node = news.kind() == control::RelayedNews::LOST;
      const uint32_t node = is_of_node ? news.node() : news.rank() / per_node_;
      const uint32_t counterpart = Counterpart(node, from.number, sibling);
      if (counterpart == kNoNode) {
        continue;
      }
      control::RelayedNews* const told = own.add_news();
      *told = news;
      told->set_node(counterpart);
      told->set_incarnation(World::FirstIncarnation(counterpart));
      told->set_rank(is_of_node ? 0 : counterpart * per_node_ + news.rank() % per_node_);
    }
    Tell(sibling, to, own);
  }
}

void StandIns::TellDeath(uint32_t child) {
  control::RelayRequest request = RequestOf(child);
  control::RelayedNews* const news = request.add_news();
  news->set_kind(control::RelayedNews::ENDED);
  news->set_rank((child + 1) * per_node_ - 1);
  news->set_count(1);
  news->set_error(static_cast<int32_t>(ErrorCode::kPeerDied));
  news->set_text("was killed");
  Tell(child, 0, request);
}

}  // namespace ferry::daemon

#include "tests/daemon/jobs/programs_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <type_traits>

namespace ferry::daemon {
namespace {

uint32_t NodeAt(const std::string& address) {
  return static_cast<uint32_t>(std::stoul(address.substr(4)));
}

// As PeerService does.
template <typename Request>
Status Take(JobNodes& nodes, const Request& request, const std::string& caller) {
  FERRY_RETURN_IF_ERROR(
      nodes.CheckPeer(request.job_id(), request.job_proof(), request.incarnation()));
  if constexpr (std::is_same_v<Request, control::JoinedRequest>) {
    return nodes.OnJoined(request, caller);
  } else {
    return nodes.OnLeft(request, caller);
  }
}

}  // namespace

// ---- The network ----

Status Wires::Acquire(const std::string& address, uid_t) {
  ++acquired;
  world_.Post([this, address] {
    NodeContact contact;
    contact.address = address;
    contact.incarnation = 100 + NodeAt(address);
    contact.link = 1 + NodeAt(address);
    contact.life = 1;
    world_.At(node_).nodes().OnNodeUp(contact);
  });
  return {};
}

void Wires::SendJoined(const std::string& to, const control::JoinedRequest& request, Done done) {
  world_.Post([this, to, request, done] {
    const bool is_lost = world_.losses > 0 && world_.losses-- > 0;
    const Status status =
        is_lost ? Status(ErrorCode::kTimeout, "lost")
                : Take(world_.At(NodeAt(to)).nodes(), request, ProgramsWorld::AddressOf(node_));
    world_.Post([done, status] { done(status); });
  });
}

void Wires::SendLeft(const std::string& to, const control::LeftRequest& request, Done done) {
  world_.Post([this, to, request, done] {
    const bool is_lost = world_.losses > 0 && world_.losses-- > 0;
    const Status status =
        is_lost ? Status(ErrorCode::kTimeout, "lost")
                : Take(world_.At(NodeAt(to)).nodes(), request, ProgramsWorld::AddressOf(node_));
    world_.Post([done, status] { done(status); });
  });
}

// ---- The world ----

ProgramsWorld::ProgramsWorld(std::vector<uint32_t> node_of_rank, const RegistryLimits& limits)
    : node_of_rank_(std::move(node_of_rank)) {
  const uint32_t last = *std::max_element(node_of_rank_.begin(), node_of_rank_.end());
  for (uint32_t node = 0; node <= last; ++node) {
    nodes.push_back(std::make_unique<Node>(*this, node, limits));
  }
  processes.resize(node_of_rank_.size());
}

JobSpec ProgramsWorld::SpecFor(uint32_t node, const std::string& id) const {
  JobSpec spec;
  spec.id = id;
  spec.secret = kSecret;
  spec.owner = geteuid();
  spec.launcher = 1;
  spec.programs_follow = true;
  spec.node = node;
  spec.node_of_rank = node_of_rank_;
  for (uint32_t one = 0; one < nodes.size(); ++one) {
    spec.node_addresses.push_back(AddressOf(one));
  }
  return spec;
}

void ProgramsWorld::Launch() {
  for (uint32_t node = 0; node < nodes.size(); ++node) {
    const Status status = At(node).CreateJob(SpecFor(node));
    ASSERT_TRUE(status.ok()) << status.message();
  }
  Settle();
}

Status ProgramsWorld::Attach(uint32_t rank, pid_t pid) {
  const AttachClaim claim{"x", kSecret, rank, size(), pid, geteuid()};
  StatusOr<std::shared_ptr<Session>> session = Of(rank).Attach(claim, {});
  FERRY_RETURN_IF_ERROR(session.status());
  processes[rank] = std::make_shared<Process>(Process{*session});
  FERRY_RETURN_IF_ERROR(Of(rank).Serve(**session));
  Of(rank).members().Join(**session, 0,
                          [process = processes[rank]](const Status& status, const JoinAnswer&) {
                            process->joined = status;
                          });
  return {};
}

void ProgramsWorld::Die(uint32_t rank) {
  Of(rank).EndSession(
      *processes[rank]->session,
      {ErrorCode::kPeerDied, "rank " + std::to_string(rank) + " of job " +
                                 processes[rank]->session->job_id + " (pid 9) died"});
}

std::vector<std::string> ProgramsWorld::JobsAt(uint32_t node) {
  std::vector<std::string> ids;
  for (const auto& [id, job] : At(node).jobs()) {
    ids.push_back(id);
  }
  return ids;
}

void ProgramsWorld::Deliver(size_t index) {
  const std::function<void()> message = std::move(messages[index]);
  messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(index));
  message();
  context.restart();
  context.poll();
}

void ProgramsWorld::Settle() {
  for (int round = 0; round < 4; ++round) {
    context.restart();
    context.poll();
    while (!messages.empty()) {
      Deliver(0);
    }
    Tick();
  }
}

void ExpectRefused(const Status& status, ErrorCode code, const std::string& words) {
  EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(code)) << status.message();
  EXPECT_THAT(status.message(), testing::HasSubstr(words));
}

}  // namespace ferry::daemon

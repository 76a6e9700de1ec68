// A control server in this process, over a fake data plane, and the calls of ranks and launchers.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/version.h"
#include "daemon/control/control_server.h"
#include "daemon/grpc/grpc_status.h"
#include "proto/control.grpc.pb.h"
#include "tests/daemon/fake_data_plane.h"
#include "tests/daemon/test_rank.h"
#include "tests/e2e/command.h"

namespace ferry::daemon {

inline config::Options TestOptions(const std::string& directory) {
  config::Options options;
  options.run_directory = directory;
  options.node_name = directory.substr(directory.rfind('/') + 1);
  options.max_local_ranks = 4;
  options.quota_sessions = 4;  // tests run as one user, often root
  options.heartbeat_interval_ms = 20;
  options.peer_timeout_ms = 60'000;  // a busy machine is no cut link
  options.attach_timeout_ms = 20'000;
  options.drain_timeout_ms = 100;
  return options;
}

// Of a daemon that fits those here.
inline control::NodeIdentity TestIdentity(const std::string& name, uint64_t incarnation) {
  control::NodeIdentity identity;
  identity.set_name(name);
  identity.set_incarnation(incarnation);
  identity.set_layout_version(kLayoutVersion);
  identity.set_protocol_version(kProtocolVersion);
  identity.set_provider("fake");
  return identity;
}

using AdminStub = control::Admin::Stub;
using LauncherStub = control::Launcher::Stub;
using PeerStub = control::Peer::Stub;

// Asks a daemon, in this process or not, as administrators, launchers and other daemons do; ranks
// ask by themselves (test_rank.h).
class DaemonClient {
 public:
  DaemonClient(const std::string& run_directory, const std::string& address) {
    Reach(run_directory, address);
  }
  const std::string& address() const { return address_; }
  std::string attach_path() const { return run_directory_ + "/attach.sock"; }

  // Makes one call, with the token if there is one; returns the Status that the daemon meant.
  template <typename Stub, typename Request, typename Reply>
  static Status Call(Stub& stub,
                     grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                     const std::type_identity_t<Request>& request, Reply* reply,
                     const std::string& token = "") {
    grpc::ClientContext context;
    if (!token.empty()) {
      context.AddMetadata("ferry-token", token);
    }
    return FromGrpc((stub.*method)(&context, request, reply));
  }
  // Makes one call at this daemon, as Call does.
  template <typename Stub, typename Request, typename Reply>
  Status Ask(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
             const std::type_identity_t<Request>& request, Reply* reply,
             const std::string& token = "") {
    return Call(*std::get<std::unique_ptr<Stub>>(stubs_), method, request, reply, token);
  }
  // For those who do not look at the answer.
  template <typename Stub, typename Request, typename Reply>
  Status Tell(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
              const std::type_identity_t<Request>& request, const std::string& token = "") {
    Reply reply;
    return Ask(method, request, &reply, token);
  }

  static control::CreateJobRequest JobRequest(const std::string& id,
                                              const std::vector<uint32_t>& node_of_rank,
                                              const std::vector<std::string>& addresses,
                                              uint32_t node) {
    control::CreateJobRequest request;
    request.set_job_id(id);
    request.set_secret(kTestSecret);
    request.set_size(static_cast<uint32_t>(node_of_rank.size()));
    request.mutable_node_of_rank()->Add(node_of_rank.begin(), node_of_rank.end());
    for (const std::string& address : addresses) {
      request.add_node_addresses(address);
    }
    request.set_node(node);
    return request;
  }
  Status CreateJob(const control::CreateJobRequest& request) {
    return Tell(&AdminStub::CreateJob, request);
  }
  // All ranks are here.
  Status CreateJob(const std::string& id, uint32_t size) {
    return CreateJob(JobRequest(id, std::vector<uint32_t>(size, 0), {address()}, 0));
  }
  // Rank 0 is on node 0, rank 1 on node 1: one here, the other at the daemon at `other`.
  Status CreateJobWith(const std::string& id, uint32_t node, const std::string& other) {
    std::vector<std::string> addresses = {address(), other};
    if (node == 1) {
      std::swap(addresses[0], addresses[1]);
    }
    return CreateJob(JobRequest(id, {0, 1}, addresses, node));
  }
  Status DestroyJob(const std::string& id) {
    control::DestroyJobRequest request;
    request.set_job_id(id);
    return Tell(&AdminStub::DestroyJob, request);
  }
  // Attaches a rank of the job "job", whose ranks are all here.
  TestRank AttachRank(uint32_t rank, uint32_t size) const {
    TestRank attached("job", rank, size, size);
    EXPECT_TRUE(attached.Enter(attach_path()));
    return attached;
  }
  // Creates that job, and attaches one of its ranks.
  TestRank StartRank(uint32_t size = 1, uint32_t rank = 0) {
    EXPECT_TRUE(CreateJob("job", size).ok());
    return AttachRank(rank, size);
  }
  // Creates the job with two ranks, and attaches both.
  std::pair<TestRank, TestRank> StartTwoRanks() {
    EXPECT_TRUE(CreateJob("job", 2).ok());
    return {AttachRank(0, 2), AttachRank(1, 2)};
  }
  Status Why(const std::string& job_id, control::WhyReply* reply) {
    control::WhyRequest request;
    request.set_job_id(job_id);
    return Ask(&AdminStub::Why, request, reply);
  }
  control::StatusReply GetStatus() {
    control::StatusReply reply;
    EXPECT_TRUE(Ask(&AdminStub::Status, {}, &reply).ok());
    return reply;
  }
  // Returns true if the daemon at `address` is up, and answers so many heartbeats more: each time
  // the time since it was heard of begins anew.
  bool HearsFrom(const std::string& address, int times = 1) {
    uint64_t before_ms = 0;
    int news = 0;
    return e2e::Eventually([&] {
      const control::StatusReply status = GetStatus();
      for (const control::PeerStatus& peer : status.peers()) {
        if (peer.control_address() == address && peer.state() == "up") {
          news += peer.last_heard_ms() < before_ms ? 1 : 0;
          before_ms = peer.last_heard_ms();
        }
      }
      return news >= times;
    });
  }
  template <typename Stub>
  Stub& stub() {
    return *std::get<std::unique_ptr<Stub>>(stubs_);
  }

 protected:
  DaemonClient() = default;
  void Reach(const std::string& run_directory, const std::string& address) {
    run_directory_ = run_directory;
    address_ = address;
    const auto channel = [](const std::string& target) {
      return grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
    };
    stubs_ = {control::Admin::NewStub(channel("unix:" + run_directory + "/admin.sock")),
              control::Launcher::NewStub(channel("unix:" + run_directory + "/control.sock")),
              control::Peer::NewStub(channel(address))};
  }

 private:
  std::string run_directory_;
  std::string address_;
  std::tuple<std::unique_ptr<AdminStub>, std::unique_ptr<LauncherStub>, std::unique_ptr<PeerStub>>
      stubs_;
};

// A control server over whichever data plane, which must outlive it.
class ServedDaemon : public DaemonClient {
 public:
  ControlServer& server() { return *server_; }
  void Stop() { server_.reset(); }

 protected:
  void Serve(const config::Options& options, DataPlane& plane) {
    auto server = ControlServer::Start(options, plane, [] {
      control::GpusReply gpus;
      gpus.add_gpus()->set_backend("host");
      return gpus;
    });
    EXPECT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(*server);
    Reach(options.run_directory, server_->control_address());
  }

 private:
  std::unique_ptr<ControlServer> server_;
};

class TestDaemon : public ServedDaemon {
 public:
  explicit TestDaemon(const config::Options& options) { Serve(options, plane); }
  ~TestDaemon() { Stop(); }

  FakeDataPlane plane;
};

// Each waits for the other one.
inline void ExpectJoin(TestRank& a, TestRank& b) {
  auto early = std::async(std::launch::async, [&] { return a.Join().status(); });
  const Status joined = b.Join().status();
  ASSERT_TRUE(joined.ok()) << joined.message();
  const Status first = early.get();
  ASSERT_TRUE(first.ok()) << first.message();
}

inline void ExpectError(const Status& status, ErrorCode code, const std::string& words) {
  EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(code)) << status.message();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

}  // namespace ferry::daemon

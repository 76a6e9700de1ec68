// A control server in this process, over a fake data plane, and the calls of ranks and launchers.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/version.h"
#include "daemon/control/control_server.h"
#include "daemon/control/grpc_status.h"
#include "proto/control.grpc.pb.h"
#include "tests/daemon/fake_data_plane.h"
#include "tests/daemon/test_rank.h"

namespace ferry::daemon {

inline config::Options TestOptions(const std::string& directory) {
  config::Options options;
  options.run_directory = directory;
  options.node_name = directory.substr(directory.rfind('/') + 1);
  options.max_local_ranks = 4;
  options.heartbeat_interval_ms = 20;
  options.peer_timeout_ms = 60'000;  // a busy machine is no cut link
  options.attach_timeout_ms = 20'000;
  options.drain_timeout_ms = 100;
  return options;
}

class TestDaemon {
 public:
  explicit TestDaemon(const config::Options& options) : options_(options) {
    auto server = ControlServer::Start(options, plane, [] {
      control::GpusReply gpus;
      gpus.add_gpus()->set_backend("host");
      return gpus;
    });
    EXPECT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(*server);
    const auto channel = [&](const char* socket) {
      return grpc::CreateChannel("unix:" + options.run_directory + socket,
                                 grpc::InsecureChannelCredentials());
    };
    admin = control::Admin::NewStub(channel("/admin.sock"));
    const auto users = channel("/control.sock");
    client = control::Client::NewStub(users);
    launcher = control::Launcher::NewStub(users);
    peer =
        control::Peer::NewStub(grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  }

  const std::string& address() const { return server_->control_address(); }
  std::string attach_path() const { return options_.run_directory + "/attach.sock"; }
  ControlServer& server() { return *server_; }
  void Stop() { server_.reset(); }

  // Makes one call, with the token if there is one; returns the Status that the daemon meant.
  template <typename Stub, typename Request, typename Reply>
  static Status Call(Stub& stub,
                     grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                     const Request& request, Reply* reply, const std::string& token = "") {
    grpc::ClientContext context;
    if (!token.empty()) {
      context.AddMetadata("ferry-token", token);
    }
    return FromGrpc((stub.*method)(&context, request, reply));
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
    control::CreateJobReply reply;
    return Call(*admin, &control::Admin::Stub::CreateJob, request, &reply);
  }
  Status Join(const TestRank& rank, control::JoinJobReply* reply) {
    return Call(*client, &control::Client::Stub::JoinJob, control::JoinJobRequest(), reply,
                rank.token());
  }
  Status Detach(const TestRank& rank) {
    control::DetachReply reply;
    return Call(*client, &control::Client::Stub::Detach, control::DetachRequest(), &reply,
                rank.token());
  }
  control::StatusReply GetStatus() {
    control::StatusReply reply;
    EXPECT_TRUE(Call(*admin, &control::Admin::Stub::Status, control::StatusRequest(), &reply).ok());
    return reply;
  }

  FakeDataPlane plane;
  std::unique_ptr<control::Admin::Stub> admin;
  std::unique_ptr<control::Client::Stub> client;
  std::unique_ptr<control::Launcher::Stub> launcher;
  std::unique_ptr<control::Peer::Stub> peer;

 private:
  const config::Options options_;
  std::unique_ptr<ControlServer> server_;
};

inline void ExpectError(const Status& status, ErrorCode code, const std::string& words) {
  EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(code)) << status.message();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

}  // namespace ferry::daemon

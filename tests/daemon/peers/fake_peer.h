// Another daemon's service Peer, as right or wrong as a test wants it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "common/version.h"
#include "daemon/grpc/grpc_status.h"
#include "daemon/peers/peer_links.h"
#include "daemon/tls/secrets.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {

class FakePeer final : public control::Peer::Service {
 public:
  // `change` makes another identity of the correct one.
  explicit FakePeer(const std::function<void(control::NodeIdentity*)>& change = nullptr) {
    identity_.set_name("fake");
    identity_.set_incarnation(4711);
    identity_.set_layout_version(kLayoutVersion);
    identity_.set_protocol_version(kProtocolVersion);
    identity_.set_provider("fake");
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    identity_.set_control_address(address());
    if (change != nullptr) {
      change(&identity_);
    }
    known_.set_value();
  }
  ~FakePeer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status Hello(grpc::ServerContext*, const control::HelloRequest* request,
                     control::HelloReply* reply) override {
    is_known_.wait();
    ++hellos;
    {
      std::lock_guard lock(mutex_);
      token_of_caller_ = request->token();
      tokens_[request->from().control_address()] = request->token();
      identity_of_caller_ = request->from();
    }
    reply->set_life(std::max(request->life(), life.load()));
    *reply->mutable_from() = identity_;
    reply->set_data_key(request->token().empty() ? 0 : data_key.load());
    reply->set_token_hash(HashOfToken(kToken));
    return grpc::Status::OK;
  }
  grpc::Status Heartbeat(grpc::ServerContext* context, const control::HeartbeatRequest*,
                         control::HeartbeatReply* reply) override {
    {
      std::lock_guard lock(mutex_);
      beats_.push_back({std::chrono::steady_clock::now(), context->peer()});
    }
    ++heartbeats;
    mute.wait(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(answer_delay_ms));
    reply->set_incarnation(incarnation);
    return ToGrpc(heartbeat_refused ? Status(ErrorCode::kDaemonDied, "took its caller for dead")
                                    : Status());
  }
  grpc::Status Joined(grpc::ServerContext*, const control::JoinedRequest*,
                      control::JoinedReply*) override {
    return grpc::Status::OK;
  }

  struct Beat {
    std::chrono::steady_clock::time_point time;
    std::string connection;  // the caller's end
  };
  // The heartbeats that have come.
  std::vector<Beat> beats() {
    std::lock_guard lock(mutex_);
    return beats_;
  }

  // The token by which it greets, if it is to prove who it is.
  static constexpr char kToken[] = "the fake peer's token";
  const control::NodeIdentity& identity() const { return identity_; }
  // The token of its last caller.
  std::string token_of_caller() {
    std::lock_guard lock(mutex_);
    return token_of_caller_;
  }

  // The last one of the daemon at that address.
  std::string token_of(const std::string& address) {
    std::lock_guard lock(mutex_);
    return tokens_[address];
  }

  // As whom it came.
  control::NodeIdentity identity_of_caller() {
    std::lock_guard lock(mutex_);
    return identity_of_caller_;
  }

  std::atomic<uint64_t> incarnation{4711};
  std::atomic<uint64_t> data_key{99};
  std::atomic<uint64_t> life{0};
  std::atomic<bool> heartbeat_refused{false};
  std::atomic<bool> mute{false};        // notify when it turns false
  std::atomic<int> answer_delay_ms{0};  // of heartbeats
  std::atomic<int> hellos{0};
  std::atomic<int> heartbeats{0};

 private:
  std::promise<void> known_;  // its identity is complete
  std::shared_future<void> is_known_ = known_.get_future().share();
  std::mutex mutex_;
  std::string token_of_caller_;
  std::map<std::string, std::string> tokens_;  // by address
  control::NodeIdentity identity_of_caller_;
  std::vector<Beat> beats_;
  control::NodeIdentity identity_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Says something to a daemon as the one at `address`, which shows that token.
template <typename Request, typename Reply>
Status TellAs(const std::string& address, const std::string& token, control::Peer::Stub& daemon,
              grpc::Status (control::Peer::Stub::*method)(grpc::ClientContext*, const Request&,
                                                          Reply*),
              const std::type_identity_t<Request>& request, Reply* reply = nullptr) {
  grpc::ClientContext context;
  context.AddMetadata(kCallerMetadata, address);
  context.AddMetadata(kCallerTokenMetadata, token);
  Reply unused;
  return FromGrpc((daemon.*method)(&context, request, reply == nullptr ? &unused : reply));
}

}  // namespace ferry::daemon

// A node that is no ferryd: it speaks as a daemon with another one, over the control plane and over
// the fabric, takes part in a job with a rank of its user's there, and says anything. See
// attacker.h for how it is called.
//
// The attack `impersonate` is a greeting in another daemon's name. Ends with 0 when its time is
// over, and says what it did; with 3 when the daemon no longer answers.
#include <grpcpp/grpcpp.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/version.h"
#include "daemon/control/secrets.h"
#include "progress/wire/wire.h"
#include "proto/control.grpc.pb.h"
#include "tests/hostile/attacker.h"
#include "tests/hostile/hostile_session.h"
#include "transports/loader/loader.h"

namespace ferry::hostile {
namespace {

using daemon::TestLauncher;
using progress::PacketHeader;
using progress::PacketKind;
using std::chrono::milliseconds;

constexpr milliseconds kCall(2000);
constexpr uint32_t kSize = 2;  // rank 0 there, rank 1 with us
constexpr int kActsInAJob = 300;

struct Ignore : transport::CompletionSink {
  void OnReceive(transport::PeerId, std::span<const std::byte>) override {}
  void OnComplete(uint64_t, ErrorCode) override {}
};

// Our answers to daemons that greet us and tell us news.
class AnyAnswer final : public control::Peer::Service {
 public:
  AnyAnswer(uint64_t seed, const bool honest) : honest_(honest), dice_(seed) {}
  void set_self(const control::NodeIdentity& self) {
    const std::lock_guard lock(mutex_);
    self_ = self;
  }

  grpc::Status Hello(grpc::ServerContext*, const control::HelloRequest* request,
                     control::HelloReply* reply) override {
    const std::lock_guard lock(mutex_);
    *reply->mutable_from() = self_;
    reply->set_data_key(dice_.Any());
    reply->set_life(honest_ ? request->life() : dice_.Mostly<uint64_t>(request->life()));
    return Any();
  }
  grpc::Status Joined(grpc::ServerContext*, const control::JoinedRequest*,
                      control::JoinedReply*) override {
    const std::lock_guard lock(mutex_);
    return Any();
  }
  grpc::Status Left(grpc::ServerContext*, const control::LeftRequest*,
                    control::LeftReply*) override {
    const std::lock_guard lock(mutex_);
    return Any();
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const control::HeartbeatRequest*,
                         control::HeartbeatReply* reply) override {
    const std::lock_guard lock(mutex_);
    reply->set_incarnation(dice_.Mostly<uint64_t>(self_.incarnation()));
    return Any();
  }
  grpc::Status Matches(grpc::ServerContext*, const control::MatchNewsRequest*,
                       control::NewsReply*) override {
    const std::lock_guard lock(mutex_);
    return Any();
  }

 private:
  grpc::Status Any() {
    if (!dice_.OneIn(8)) {
      return grpc::Status::OK;
    }
    return {static_cast<grpc::StatusCode>(dice_.Below(17)), "any words",
            std::to_string(static_cast<int32_t>(dice_.Number()))};
  }

  const bool honest_;
  std::mutex mutex_;
  Dice dice_;
  control::NodeIdentity self_;
};

class HostilePeer {
 public:
  explicit HostilePeer(const Attacker& attacker)
      : attacker_(attacker),
        dice_(attacker.seed),
        target_(IdentityOf(attacker.run_directory)),
        other_(IdentityOf(attacker.other_run_directory)),
        answers_(attacker.seed + 1, !attacker.Dares("impersonate")),
        peer_(control::Peer::NewStub(
            grpc::CreateChannel(target_.control_address, grpc::InsecureChannelCredentials()))),
        launcher_(control::Launcher::NewStub(
            grpc::CreateChannel("unix:" + attacker.run_directory + "/control.sock",
                                grpc::InsecureChannelCredentials()))) {}

  int Run() {
    if (!Listen()) {
      return 2;
    }
    int jobs = 0;
    int in_vain = 0;
    while (attacker_.Goes()) {
      if (BeginJob()) {
        ++jobs;
        in_vain = 0;
        for (int act = 0; act < kActsInAJob && attacker_.Goes(); ++act) {
          Act();
        }
      } else if (++in_vain > 100) {
        std::printf("the daemon does not let anybody in any more: %s\n", why_not_.c_str());
        return 3;
      } else {
        std::this_thread::sleep_for(milliseconds(100));
      }
      rank_.reset();
      launcher_connection_.reset();
    }
    std::printf("%d jobs, %llu calls, %llu packets\n", jobs,
                static_cast<unsigned long long>(calls_), static_cast<unsigned long long>(packets_));
    return jobs > 0 ? 0 : 3;
  }

 private:
  // -- Coming --

  bool Listen() {
    auto opened = transport::OpenTransport({});
    if (!opened.ok()) {
      std::printf("no fabric: %s\n", opened.status().message().c_str());
      return false;
    }
    fabric_ = std::move(*opened);
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&answers_);
    server_ = builder.BuildAndStart();
    self_.set_name("hostile");
    self_.set_incarnation(dice_.Any() | 1);
    self_.set_layout_version(kLayoutVersion);
    self_.set_protocol_version(kProtocolVersion);
    self_.set_control_address("127.0.0.1:" + std::to_string(port));
    self_.set_fabric_address(fabric_->Address().data(), fabric_->Address().size());
    self_.set_provider(fabric_->Describe().provider);
    answers_.set_self(self_);
    return server_ != nullptr;
  }
  // A job of two nodes, of which we are one.
  bool BeginJob() {
    job_ = "peers-" + std::to_string(getpid()) + "-" + std::to_string(++names_);
    launcher_connection_ = std::make_unique<TestLauncher>(attacker_.run_directory + "/attach.sock");
    control::CreateJobRequest request;
    request.set_job_id(job_);
    request.set_secret(daemon::kTestSecret);
    request.set_size(kSize);
    request.add_node_of_rank(0);
    request.add_node_of_rank(1);
    request.add_node_addresses(target_.control_address);
    request.add_node_addresses(self_.control_address());
    control::CreateJobReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCall);
    context.AddMetadata("ferry-token", launcher_connection_->token());
    const grpc::Status status = launcher_->CreateJob(&context, request, &reply);
    why_not_ = status.error_message();
    if (!status.ok()) {
      return false;
    }
    rank_ = std::make_unique<HostileSession>(job_, 0, kSize, 1);
    if (!rank_->Enter(attacker_.run_directory + "/attach.sock", &why_not_)) {
      return false;
    }
    Greet(self_, 1);
    TellJoined();
    return true;
  }

  // -- Acts --

  void Act() {
    switch (dice_.Below(12)) {
      case 0:
        GreetSomehow();
        break;
      case 1:
        TellJoined();
        break;
      case 2:
        TellLeft();
        break;
      case 3:
        Beat();
        break;
      case 4:
        AskWhy();
        break;
      case 5:
      case 6:
        TellMatches();
        break;
      default:
        SendPackets();
    }
  }

  template <typename Request, typename Reply>
  grpc::Status Call(grpc::Status (control::Peer::Stub::*method)(grpc::ClientContext*,
                                                                const Request&, Reply*),
                    const Request& request, Reply* reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCall);
    ++calls_;
    return (*peer_.*method)(&context, request, reply);
  }

  void Greet(const control::NodeIdentity& as, uint64_t life) {
    control::HelloRequest request;
    *request.mutable_from() = as;
    request.set_life(life);
    control::HelloReply reply;
    if (Call(&control::Peer::Stub::Hello, request, &reply).ok()) {
      data_key_ = reply.data_key();
      life_ = reply.life();
      const auto* address =
          reinterpret_cast<const std::byte*>(reply.from().fabric_address().data());
      if (peer_id_ == transport::kUnknownPeer) {
        const auto id = fabric_->AddPeer({address, reply.from().fabric_address().size()});
        peer_id_ = id.ok() ? *id : transport::kUnknownPeer;
      }
    }
  }
  void GreetSomehow() {
    control::NodeIdentity as = self_;
    switch (dice_.Below(6)) {
      case 0:
        as.set_fabric_address(dice_.Text(64));
        break;
      case 1:
        as.set_control_address(dice_.Text(40));
        break;
      case 2:
        as.set_name(dice_.Text(3000));
        break;
      case 3:
        as.set_protocol_version(static_cast<uint32_t>(dice_.Number()));
        break;
      default:
        if (attacker_.Dares("impersonate")) {
          as.set_incarnation(AnyIncarnation());
        }
    }
    Greet(as, attacker_.Dares("impersonate") ? dice_.Mostly<uint64_t>(life_ + dice_.Below(2))
                                             : life_ + dice_.Below(2));
  }
  uint64_t AnyIncarnation() {
    const uint64_t of[] = {self_.incarnation(), other_.incarnation, target_.incarnation, 0,
                           dice_.Number()};
    return of[dice_.Below(std::size(of))];
  }
  // Ours and our job's mostly, with the proof that goes with them.
  template <typename Request>
  void Sign(Request* request) {
    const bool genuine = !dice_.OneIn(8);
    request->set_incarnation(genuine ? self_.incarnation() : AnyIncarnation());
    request->set_job_id(genuine ? job_ : attacker_.victim_job);
    request->set_job_proof(
        dice_.OneIn(16)
            ? dice_.Text(40)
            : daemon::JobProof(daemon::kTestSecret, request->job_id(), request->incarnation()));
  }
  void TellJoined() {
    control::JoinedRequest request;
    Sign(&request);
    request.set_node(dice_.Mostly<uint32_t>(1));
    request.set_life(dice_.Mostly<uint64_t>(life_));
    for (uint64_t count = 1 + dice_.Below(3); count > 0; --count) {
      control::JobRank* rank = request.add_ranks();
      rank->set_rank(dice_.Mostly<uint32_t>(1));
      rank->set_private_memory_reachable(dice_.OneIn(2));
    }
    control::JoinedReply reply;
    (void)Call(&control::Peer::Stub::Joined, request, &reply);
  }
  void TellLeft() {
    if (!dice_.OneIn(8)) {
      return;  // it would end the job
    }
    control::LeftRequest request;
    Sign(&request);
    control::RankEnd* end = request.add_ranks();
    end->set_rank(dice_.Mostly<uint32_t>(1));
    end->set_orderly(dice_.OneIn(2));
    end->set_error(static_cast<int32_t>(dice_.Number()));
    end->set_reason(dice_.Text(2000));
    request.set_job_aborted(dice_.OneIn(4));
    control::LeftReply reply;
    (void)Call(&control::Peer::Stub::Left, request, &reply);
  }
  void Beat() {
    control::HeartbeatRequest request;
    request.set_incarnation(dice_.OneIn(2) ? self_.incarnation() : AnyIncarnation());
    request.set_life(dice_.Mostly<uint64_t>(life_));
    control::HeartbeatReply reply;
    (void)Call(&control::Peer::Stub::Heartbeat, request, &reply);
  }
  void AskWhy() {
    if (!attacker_.Dares("why")) {
      return;
    }
    control::PeerWhyRequest request;
    Sign(&request);
    request.set_rank(dice_.Mostly<uint32_t>(0));
    control::WhyReply reply;
    (void)Call(&control::Peer::Stub::Why, request, &reply);
  }
  void TellMatches() {
    control::MatchNewsRequest request;
    Sign(&request);
    if (!attacker_.Dares("impersonate") && request.incarnation() == 0) {
      return;
    }
    request.set_node(dice_.Mostly<uint32_t>(1));
    for (uint64_t count = 1 + dice_.Below(4); count > 0; --count) {
      control::MatchNews* news = request.add_news();
      news->set_kind(static_cast<control::MatchNews::Kind>(dice_.Below(5)));
      news->mutable_key()->set_context(static_cast<uint32_t>(dice_.Below(2)));
      news->mutable_key()->set_source(dice_.Mostly<uint32_t>(1));
      news->mutable_key()->set_destination(dice_.Mostly<uint32_t>(0));
      news->mutable_key()->set_tag(static_cast<int32_t>(dice_.Below(3)));
      news->mutable_key()->set_ordinal(dice_.Below(3));
      news->set_size_bytes(dice_.Number());
      news->set_mode(static_cast<uint32_t>(dice_.Below(5)));
      news->set_channel(dice_.Number());
      news->set_error(static_cast<int32_t>(dice_.Below(40)));
      news->set_rounds(dice_.Number());
      news->set_cells(static_cast<uint32_t>(dice_.Number()));
    }
    control::NewsReply reply;
    (void)Call(&control::Peer::Stub::Matches, request, &reply);
  }

  void SendPackets() {
    if (peer_id_ == transport::kUnknownPeer) {
      return;
    }
    for (uint64_t count = 1 + dice_.Below(8); count > 0; --count) {
      PacketHeader header{};
      header.magic = progress::kPacketMagic;
      header.version = progress::kPacketVersion;
      header.kind = static_cast<uint8_t>(dice_.Below(21));
      header.flags = static_cast<uint8_t>(dice_.OneIn(2) ? 0 : dice_.Below(16));
      header.key = data_key_;
      header.job_key = daemon::DeriveKey(daemon::kTestSecret, "job key|" + job_);
      header.source_node = dice_.Mostly<uint32_t>(1);
      header.source = dice_.Mostly<uint32_t>(1);
      header.destination = dice_.Mostly<uint32_t>(0);
      header.tag = static_cast<int32_t>(dice_.Below(3));
      // Requests, generations, keys and addresses; the sizes of the bodies that there are.
      constexpr uint32_t kSizes[] = {8, 16, 24, 32, 40, 48, 64, 1000};
      std::array<uint32_t, 256> body{};
      header.body_bytes = kSizes[dice_.Below(std::size(kSizes))];
      for (uint32_t i = 0; i < header.body_bytes / 4; ++i) {
        body[i] = static_cast<uint32_t>(dice_.OneIn(3) ? dice_.Number() : dice_.Below(3));
      }
      header.size_bytes = dice_.Mostly<uint64_t>(header.body_bytes);
      const auto sent = std::as_bytes(std::span(body)).first(header.body_bytes);
      if (dice_.OneIn(4)) {
        dice_.Spoil(&header);
      }
      fabric_->Poll(ignore_, 16, MonotonicNs());
      if (fabric_->SendMessage(peer_id_, progress::BytesOf(header), sent, 0, MonotonicNs()) ==
          ErrorCode::kOk) {
        ++packets_;
      }
    }
    fabric_->Poll(ignore_, 64, MonotonicNs());
  }

  const Attacker& attacker_;
  Dice dice_;
  const DaemonIdentity target_;
  const DaemonIdentity other_;
  AnyAnswer answers_;
  const std::unique_ptr<control::Peer::Stub> peer_;
  const std::unique_ptr<control::Launcher::Stub> launcher_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<transport::Transport> fabric_;
  Ignore ignore_;
  transport::PeerId peer_id_ = transport::kUnknownPeer;
  control::NodeIdentity self_;
  uint64_t data_key_ = 0;
  uint64_t life_ = 1;
  int names_ = 0;
  std::string job_;
  std::string why_not_;
  std::unique_ptr<TestLauncher> launcher_connection_;
  std::unique_ptr<HostileSession> rank_;
  uint64_t calls_ = 0;
  uint64_t packets_ = 0;
};

}  // namespace
}  // namespace ferry::hostile

int main(int argc, char** argv) {
  if (const ferry::Status status = ferry::transport::EnsureEnvironment(); !status.ok()) {
    std::fprintf(stderr, "hostile_peer: %s\n", status.message().c_str());
  }
  const ferry::hostile::Attacker attacker = ferry::hostile::BecomeAttacker(argc, argv);
  return ferry::hostile::HostilePeer(attacker).Run();
}

// A user who makes jobs of his own, whose ranks attach as they should, and then do anything: with
// the memory that they share with the daemon, with rings of devices and direct links, with
// descriptors, over the attach socket and over control.sock. See attacker.h for how it is called.
//
// Ends with 0 when its time is over, and says how many jobs it has made; with 3 when a daemon no
// longer answers.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proto/control.grpc.pb.h"
#include "tests/daemon/test_rank.h"
#include "tests/fuzz/rank_calls.h"
#include "tests/fuzz/rpc_caller.h"
#include "tests/hostile/attacker.h"
#include "tests/hostile/hostile_session.h"
#include "tests/hostile/odd_descriptors.h"

namespace ferry::hostile {
namespace {

using daemon::TestLauncher;
using daemon::TestRank;
using std::chrono::milliseconds;

constexpr uint32_t kLocal = 2;  // ranks 0 and 1 here, rank 2 on the other node
constexpr uint32_t kSize = 3;
constexpr int kActsInAJob = 400;
constexpr uint64_t kCallMs = 2000;
constexpr milliseconds kCall(kCallMs);

class HostileUser {
 public:
  explicit HostileUser(const Attacker& attacker)
      : attacker_(attacker),
        dice_(attacker.seed),
        here_(IdentityOf(attacker.run_directory)),
        there_(IdentityOf(attacker.other_run_directory)) {}

  int Run() {
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
        std::printf("a daemon does not let anybody in any more: %s\n", why_not_.c_str());
        return 3;
      } else {
        std::this_thread::sleep_for(milliseconds(100));
      }
      EndJob();
    }
    std::printf("%d jobs\n", jobs);
    return jobs > 0 ? 0 : 3;
  }

 private:
  // -- Coming and going --

  bool BeginJob() {
    job_ = "hostile-" + std::to_string(getpid()) + "-" + std::to_string(++names_);
    for (const std::string& directory : {attacker_.run_directory, attacker_.other_run_directory}) {
      launchers_.push_back(std::make_unique<TestLauncher>(directory + "/attach.sock"));
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      const auto channel = grpc::CreateCustomChannel("unix:" + directory + "/control.sock",
                                                     grpc::InsecureChannelCredentials(), arguments);
      launcher_stubs_.push_back(control::Launcher::NewStub(channel));
      callers_.push_back(std::make_unique<fuzz::RpcCaller>("unix:" + directory + "/control.sock",
                                                           IdentityOf(directory).control_address));
    }
    for (uint32_t node = 0; node < 2; ++node) {
      if (!Create(node, Request(node))) {
        return false;
      }
    }
    for (uint32_t rank = 0; rank < kSize; ++rank) {
      const uint32_t node = NodeOf(rank);
      const std::string& directory =
          node == 0 ? attacker_.run_directory : attacker_.other_run_directory;
      ranks_.push_back(std::make_unique<HostileSession>(job_, rank, kSize, node == 0 ? kLocal : 1));
      if (!ranks_.back()->Enter(directory + "/attach.sock", &why_not_)) {
        return false;
      }
    }
    JoinAll();
    return true;
  }
  void EndJob() {
    const bool orderly = dice_.OneIn(2);
    for (uint32_t rank = 0; orderly && rank < ranks_.size(); ++rank) {
      TestRank& leaving = ranks_[rank]->attach();
      Send(leaving, attach::DetachRequest{leaving.Header(attach::Kind::kDetach), kCallMs}, {});
    }
    ranks_.clear();
    launchers_.clear();
    launcher_stubs_.clear();
    callers_.clear();
    strangers_.clear();
  }
  static uint32_t NodeOf(uint64_t rank) { return rank < kLocal ? 0 : 1; }
  control::CreateJobRequest Request(uint32_t node) const {
    control::CreateJobRequest request;
    request.set_job_id(job_);
    request.set_secret(daemon::kTestSecret);
    request.set_size(kSize);
    for (uint32_t rank = 0; rank < kSize; ++rank) {
      request.add_node_of_rank(NodeOf(rank));
    }
    request.add_node_addresses(here_.control_address);
    request.add_node_addresses(there_.control_address);
    request.set_node(node);
    return request;
  }
  bool Create(uint32_t node, const control::CreateJobRequest& request) {
    control::CreateJobReply reply;
    const grpc::Status status = Call(*launcher_stubs_[node], &control::Launcher::Stub::CreateJob,
                                     request, &reply, launchers_[node]->token());
    why_not_ = status.error_message();
    return status.ok();
  }
  void JoinAll() {
    std::vector<std::thread> joins;
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      joins.emplace_back([this, rank] { (void)ranks_[rank]->attach().Join(kCallMs); });
    }
    for (std::thread& join : joins) {
      join.join();
    }
  }

  // -- Acts --

  void Act() {
    HostileSession& rank = *ranks_[dice_.Below(ranks_.size())];
    switch (dice_.Below(24)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
      case 7:
        rank.PushCommands(dice_);
        break;
      case 8:
      case 9:
        FillTransfer(rank);
        break;
      case 10:
        Scribble(rank);
        break;
      case 11:
      case 12:
        UseMemfds();
        break;
      case 13:
        SendPacket(rank.attach());
        break;
      case 14:
      case 15:
        ComeAsAStranger();
        break;
      case 16:
      case 17:
        rank.AbuseLinks(dice_);
        break;
      case 18:
      case 19:
        rank.AbuseRings(dice_);
        break;
      default:
        CallSomething();
    }
    rank.Ring();
    std::this_thread::sleep_for(std::chrono::microseconds(dice_.Below(500)));
  }

  void FillTransfer(HostileSession& rank) {
    shm::TransferLayout slot{};
    slot.state = static_cast<uint32_t>(dice_.Below(6));
    slot.generation = static_cast<uint32_t>(dice_.Below(3));
    slot.source = {static_cast<uint32_t>(dice_.Below(3)), 0, dice_.Number()};
    slot.destination = {static_cast<uint32_t>(dice_.Below(3)), 0, dice_.Number()};
    slot.size_bytes = dice_.Number();
    slot.chunk_bytes = static_cast<uint32_t>(dice_.Number());
    slot.source_rank = dice_.Mostly<uint32_t>(static_cast<uint32_t>(dice_.Below(kSize)));
    slot.remote_key = dice_.Number();
    slot.remote_flags = static_cast<uint32_t>(dice_.Below(16));
    dice_.Spoil(&slot);
    std::memcpy(static_cast<void*>(rank.transfer(dice_.Below(daemon::kTestRequests))), &slot,
                sizeof(slot));
  }
  void Scribble(HostileSession& rank) {
    const auto [base, size] = rank.Area(dice_);
    for (uint64_t count = 1 + dice_.Below(8); count > 0; --count) {
      const auto value = static_cast<uint32_t>(dice_.Number());
      std::memcpy(base + dice_.Below(size / 4) * 4, &value, sizeof(value));
    }
  }
  // The areas of all memory that this process shares with daemons.
  void UseMemfds() {
    std::vector<int> memfds;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      if (std::filesystem::read_symlink(entry, ignored).string().starts_with("/memfd:")) {
        memfds.push_back(std::stoi(entry.path().filename()));
      }
    }
    if (memfds.empty()) {
      return;
    }
    const int fd = memfds[dice_.Below(memfds.size())];
    const auto offset = static_cast<off_t>(dice_.Below(256) * 4096);
    const auto length = static_cast<off_t>((1 + dice_.Below(64)) * 4096);
    switch (dice_.Below(5)) {
      case 0:
        (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
        break;
      case 1:
        (void)!ftruncate(fd, static_cast<off_t>(dice_.Below(1 << 20)));
        break;
      case 2:
        (void)fcntl(fd, F_ADD_SEALS, static_cast<int>(dice_.Below(32)));
        break;
      case 3:
        (void)fallocate(fd, static_cast<int>(dice_.Below(64)), offset, length);
        break;
      default: {
        const uint64_t number = dice_.Number();
        (void)!pwrite(fd, &number, sizeof(number), offset);
      }
    }
  }

  // -- The attach socket --

  void SendPacket(TestRank& to) {
    std::vector<UniqueFd> owned;
    std::vector<int> fds;
    for (uint64_t count = dice_.Below(4); count > 0; --count) {
      owned.push_back(OddDescriptor(attacker_, dice_));
      if (owned.back().valid()) {
        fds.push_back(owned.back().get());
      }
    }
    SendAnyPacket(to, fds);
    // Another thread closes them: where the daemon has hung up we are the last to close a lingering
    // descriptor, and would hold up ourselves instead of the daemon.
    std::thread([owned = std::move(owned)] {}).detach();
  }
  void SendAnyPacket(TestRank& to, const std::vector<int>& fds) {
    switch (dice_.Below(10)) {
      case 0:
        return Send(to, to.AttachRequest(), fds);
      case 7:
      case 8:
        return SendCall(to, fds);
      case 1:
        return Send(to,
                    attach::SegmentsRequest{to.Header(attach::Kind::kSegments), dice_.Number(),
                                            dice_.Number()},
                    fds);
      case 2: {
        attach::RegionRequest request{};
        request.header = to.Header(attach::Kind::kRegion);
        request.region = static_cast<uint32_t>(dice_.Below(4));
        request.kind = static_cast<uint32_t>(dice_.Below(3));
        request.flags = dice_.OneIn(4) ? attach::kRegionByStream | attach::kRegionDmabuf
                                       : static_cast<uint32_t>(dice_.Below(3));
        request.dmabuf_offset = dice_.Number();
        request.size_bytes = dice_.Number();
        if (!attacker_.Dares("sizes")) {  // what no machine has
          request.size_bytes = 1 + request.size_bytes % (1 << 24);
        }
        return Send(to, request, fds);
      }
      case 3:
        return Send(
            to,
            attach::PeerRequest{
                to.Header(dice_.OneIn(2) ? attach::Kind::kPeerInbox : attach::Kind::kPeerRegion),
                static_cast<uint32_t>(dice_.Number()), static_cast<uint32_t>(dice_.Number())},
            fds);
      case 4:
        return Send(to, attach::UserRequest{to.Header(attach::Kind::kUser)}, fds);
      case 5:
        return Send(
            to,
            attach::NicRequest{
                to.Header(attach::Kind::kCounterPages), static_cast<uint32_t>(dice_.Below(3)), {}},
            fds);
      default: {
        std::array<uint64_t, attach::kMaxPacketBytes / 8 + 1> noise{};
        for (uint64_t& word : noise) {
          word = dice_.Number();
        }
        (void)daemon::SendPacket(
            to.socket(), std::as_bytes(std::span(noise)).first(dice_.Below(noise.size() * 8)), fds)
            .ok();
      }
    }
  }
  void SendCall(TestRank& to, const std::vector<int>& fds) {
    std::array<uint64_t, 32> choices{};
    for (uint64_t& choice : choices) {
      choice = dice_.OneIn(4) ? 0 : dice_.Any();
    }
    fuzz::FuzzInput input(reinterpret_cast<const uint8_t*>(choices.data()), sizeof(choices));
    const std::vector<std::byte> call = fuzz::AnyRankCall(input, /*ends_jobs=*/dice_.OneIn(16));
    (void)daemon::SendPacket(to.socket(), call, dice_.OneIn(8) ? fds : std::vector<int>()).ok();
    ReadAnswer(to);
  }
  template <typename Packet>
  void Send(TestRank& to, Packet packet, const std::vector<int>& fds) {
    if (attacker_.Dares("sizes") || !std::is_same_v<Packet, attach::RegionRequest>) {
      dice_.Spoil(&packet);
    }
    (void)daemon::SendPacket(to.socket(), packet, fds).ok();
    ReadAnswer(to);
  }
  // Unread answers would end the connection.
  static void ReadAnswer(const TestRank& from) {
    daemon::SocketPacket answer;
    (void)daemon::ReceivePacket(from.socket(), &answer).ok();
  }
  // Connects without attaching; some of these strangers stay for a while.
  void ComeAsAStranger() {
    if (strangers_.size() >= 16) {
      strangers_.clear();
    }
    const std::string other_job = dice_.OneIn(2) ? attacker_.victim_job : job_;
    auto stranger = std::make_unique<TestRank>(other_job, static_cast<uint32_t>(dice_.Below(kSize)),
                                               kSize, kLocal);
    if (!stranger->Connect(attacker_.run_directory + "/attach.sock").ok()) {
      return;
    }
    for (uint64_t count = dice_.Below(3); count > 0; --count) {
      SendPacket(*stranger);
    }
    strangers_.push_back(std::move(stranger));
  }

  // -- control.sock --

  template <typename Stub, typename Request, typename Reply>
  static grpc::Status Call(Stub& stub,
                           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                        Reply*),
                           const Request& request, Reply* reply, const std::string& token) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCall);
    context.AddMetadata("ferry-token", token);
    return (stub.*method)(&context, request, reply);
  }
  // Any method at any port, as the fuzzer of these calls makes them (tests/fuzz/rpc_caller.h).
  void CallSomething() {
    fuzz::RpcWorld world;
    world.jobs = {job_, attacker_.victim_job};
    world.keeps_jobs = true;
    world.secret = daemon::kTestSecret;
    for (const auto& launcher : launchers_) {
      world.tokens.push_back(launcher->token());
    }
    world.addresses = {here_.control_address, there_.control_address, "127.0.0.1:1"};
    world.incarnations = {here_.incarnation, there_.incarnation, 0};
    world.node.set_name("nobody's");
    world.node.set_incarnation(dice_.Any());
    world.node.set_control_address(world.addresses.back());
    std::array<uint64_t, 32> choices{};
    for (uint64_t& choice : choices) {
      choice = dice_.OneIn(4) ? 0 : dice_.Any();
    }
    fuzz::FuzzInput input(reinterpret_cast<const uint8_t*>(choices.data()), sizeof(choices));
    callers_[dice_.OneIn(8) ? 1 : 0]->Call(input, world);
  }

  const Attacker& attacker_;
  Dice dice_;
  const DaemonIdentity here_;
  const DaemonIdentity there_;
  int names_ = 0;
  std::string job_;
  std::string why_not_;
  std::vector<std::unique_ptr<TestLauncher>> launchers_;  // by node, as the stubs
  std::vector<std::unique_ptr<control::Launcher::Stub>> launcher_stubs_;
  std::vector<std::unique_ptr<fuzz::RpcCaller>> callers_;
  std::vector<std::unique_ptr<HostileSession>> ranks_;
  std::vector<std::unique_ptr<TestRank>> strangers_;
};

}  // namespace
}  // namespace ferry::hostile

int main(int argc, char** argv) {
  const ferry::hostile::Attacker attacker = ferry::hostile::BecomeAttacker(argc, argv);
  return ferry::hostile::HostileUser(attacker).Run();
}

// An ordinary user calls every method of every gRPC service, with ranks and launchers that come and
// go, and his ranks make every call at the attach socket: names of another user's job, tokens that
// are none, ranks and counts out of range, calls in any order, too often, left open. Behind it are
// two whole daemons and a job of their own user, with a rank on each.
//
// After each input the daemons must answer, hold nothing of this user's, and have no more
// descriptors nor memory than before; the other user's ranks exchange messages and check every
// byte. Meanwhile no answer says anything about that job, and no administrator's call is served.
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/log.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/peers/fake_peer.h"
#include "tests/daemon/test_rank.h"
#include "tests/fuzz/checked_job.h"
#include "tests/fuzz/rank_calls.h"
#include "tests/fuzz/rpc_caller.h"
#include "tests/fuzz/whole_daemon.h"
#include "tests/support/patience.h"
#include "transports/loader/loader.h"

extern "C" __attribute__((weak)) size_t __sanitizer_get_current_allocated_bytes();

namespace ferry::fuzz {
namespace {

using daemon::FakePeer;
using daemon::TestLauncher;
using daemon::TestRank;

constexpr uint32_t kMaxSteps = 32;
constexpr size_t kMostOfAKind = 6;
constexpr uid_t kIntruder = 12345;
constexpr char kVictim[] = "the-job-of-another-user";
using tests::kPatience;
constexpr uint32_t kWarmUp = 32;  // inputs after which memory is measured
constexpr size_t kMaxGrowthBytes = 64 << 20;
constexpr size_t kMaxMoreDescriptors = 16;  // gRPC makes some when more of its threads wait at once

[[noreturn]] void Fail(const std::string& text) {
  std::fprintf(stderr, "rpc_fuzz: %s\n", text.c_str());
  abort();
}

size_t HeapBytes() {
  if (&__sanitizer_get_current_allocated_bytes != nullptr) {
    return __sanitizer_get_current_allocated_bytes();
  }
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// While it lives this thread, and no other, is another user, if it may: the kernel has an identity
// for each thread, which the C library would change for all.
class AsIntruder {
 public:
  explicit AsIntruder(bool can) : can_(can) { Become(kIntruder); }
  ~AsIntruder() { Become(0); }

 private:
  void Become(uid_t uid) const {
    if (can_ && syscall(SYS_setresuid, -1, uid, -1) != 0) {
      Fail("cannot become another user");
    }
  }
  const bool can_;
};

// The state that all inputs share: the daemons, and the other user's job.
class Stage {
 public:
  // The knowledge of an intruder that starts with its own daemon.
  RpcWorld World(const FakePeer& node) {
    RpcWorld world;
    world.jobs = {"own-0", "own-1"};
    if (can_become_others_) {  // otherwise the job would be the intruder's own
      world.jobs.emplace_back(kVictim);
    }
    world.secret = daemon::kTestSecret;
    world.addresses = {
        nodes_.here.address(), node.address(), nodes_.there.address(), "127.0.0.1:1", "",
        "not an address"};
    world.node = node.identity();
    world.incarnations = {world.node.incarnation(), nodes_.here.identity().incarnation(),
                          nodes_.there.identity().incarnation(), 0};
    world.node_token = FakePeer::kToken;
    return world;
  }

  void CheckOutcome(const RpcOutcome& outcome) const {
    if (!outcome.over || !outcome.status.ok()) {
      return;
    }
    const std::string path = outcome.method->path;
    if (outcome.method->service == RpcService::kAdmin) {
      Fail(path + " was served");
    }
    if (can_become_others_ && outcome.method->service == RpcService::kLauncher) {
      CheckIsHisOwn(path, outcome.reply);
    }
  }

  void CheckNothingIsLeft() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    Holdings here;
    Holdings there;
    while ((here = nodes_.here.Holds()) != held_here_ ||
           (there = nodes_.there.Holds()) != held_there_) {
      if (std::chrono::steady_clock::now() > end) {
        Fail("left here: " + here.Text() + " (before: " + held_here_.Text() +
             "); there: " + there.Text());
      }
      std::this_thread::yield();
    }
    if (const std::string wrong = nodes_.victim.Exchange(); !wrong.empty()) {
      Fail("the job of another user: " + wrong);
    }
    ++inputs_;
    const size_t heap_bytes = HeapBytes();
    if (inputs_ <= kWarmUp) {
      heap_bytes_ = heap_bytes;
      descriptors_ = daemon::OpenDescriptors();
      return;
    }
    const size_t most = descriptors_ + kMaxMoreDescriptors;
    if (const size_t open = daemon::SettledDescriptors(most); open > most) {
      Fail(std::to_string(open) + " descriptors, " + std::to_string(descriptors_) + " before");
    }
    if (heap_bytes > heap_bytes_ + kMaxGrowthBytes) {
      Fail(std::to_string(heap_bytes) + " bytes of the heap after " + std::to_string(inputs_) +
           " inputs, " + std::to_string(heap_bytes_) + " before");
    }
  }

  WholeDaemon& here() { return nodes_.here; }
  bool can_become_others() const { return can_become_others_; }
  // The intruder's daemon claims another daemon's fabric address.
  void Pretend(control::NodeIdentity* identity) {
    identity->set_provider(nodes_.here.identity().provider());
    identity->set_fabric_address(nodes_.there.FabricAddress());
  }

 private:
  template <typename Reply>
  static Reply Parse(const std::string& path, const std::string& bytes) {
    Reply reply;
    if (!reply.ParseFromString(bytes)) {
      Fail(path + " answers what is no reply");
    }
    return reply;
  }
  static void CheckIsHisOwn(const std::string& path, const std::string& bytes) {
    if (path.ends_with("/Status")) {
      const auto reply = Parse<control::StatusReply>(path, bytes);
      for (const control::JobStatus& job : reply.jobs()) {
        CheckUser(path, job.uid());
      }
      for (const control::UserStatus& user : reply.users()) {
        CheckUser(path, user.uid());
      }
    } else if (path.ends_with("/Sessions")) {
      const auto reply = Parse<control::SessionsReply>(path, bytes);
      for (const auto& session : reply.sessions()) {
        CheckUser(path, session.uid());
      }
    } else if (path.ends_with("/Counters")) {
      const auto reply = Parse<control::CountersReply>(path, bytes);
      for (const auto& counter : reply.counters()) {
        CheckName(path, counter.scope());
      }
    } else if (path.ends_with("/Why")) {
      const auto reply = Parse<control::WhyReply>(path, bytes);
      for (const auto& rank : reply.ranks()) {
        CheckName(path, rank.job_id());
      }
    }
  }
  static void CheckUser(const std::string& path, uint32_t uid) {
    if (uid != kIntruder) {
      Fail(path + " tells of uid " + std::to_string(uid));
    }
  }
  static void CheckName(const std::string& path, const std::string& name) {
    if (name.find(kVictim) != std::string::npos) {
      Fail(path + " tells of " + name);
    }
  }

  const bool can_become_others_ = daemon::CanBecomeOthers();
  CheckedNodes nodes_{kVictim};
  const Holdings held_here_ = nodes_.here.Holds();
  const Holdings held_there_ = nodes_.there.Holds();
  uint64_t inputs_ = 0;
  size_t heap_bytes_ = 0;
  size_t descriptors_ = 0;
};

// The ordinary user, for one input.
class Intruder {
 public:
  explicit Intruder(Stage& stage)
      : stage_(stage),
        node_([&stage](control::NodeIdentity* identity) { stage.Pretend(identity); }),
        world_(stage.World(node_)),
        caller_(stage.here().control_socket(), stage.here().address()),
        launcher_(control::Launcher::NewStub(grpc::CreateChannel(
            stage.here().control_socket(), grpc::InsecureChannelCredentials()))) {}

  void Step(FuzzInput& input) {
    switch (input.Below(14)) {
      case 0:
        return BecomeLauncher(input);
      case 1:
        return Attach(input);
      case 12:
      case 13:
        return CallAsRank(input);
      case 10:
        return Drop(input, launchers_);
      case 11:
        return Drop(input, ranks_);
      default:
        stage_.CheckOutcome(caller_.Call(input, world_));
    }
  }

 private:
  void BecomeLauncher(FuzzInput& input) {
    if (launchers_.size() < kMostOfAKind) {
      const AsIntruder he(stage_.can_become_others());
      launchers_.push_back(std::make_unique<TestLauncher>(stage_.here().attach_socket()));
      world_.tokens.push_back(launchers_.back()->token());
    }
    if (const uint32_t job = input.Below(3); job < 2) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kPatience);
      context.AddMetadata("ferry-token", launchers_.back()->token());
      control::CreateJobReply reply;
      (void)launcher_->CreateJob(&context, ThreeRanks(world_, world_.jobs[job]), &reply);
    }
  }
  void Attach(FuzzInput& input) {
    if (ranks_.size() >= kMostOfAKind) {
      return;
    }
    const std::string& job = world_.jobs[input.Below(2)];
    auto rank = std::make_unique<TestRank>(job, input.Below(3), 3, 2);
    const bool with_segments = input.Below(8) != 7;
    {
      const AsIntruder he(stage_.can_become_others());
      if (!rank->Connect(stage_.here().attach_socket()).ok()) {
        return;
      }
    }
    if (rank->Attach().code() != ErrorCode::kOk) {
      return;
    }
    if (with_segments && rank->SendSegments().code() == ErrorCode::kOk) {
      (void)rank->SendRegion(1, 1 << 16);
    }
    ranks_.push_back(std::move(rank));
  }
  void CallAsRank(FuzzInput& input) {
    if (ranks_.empty()) {
      return;
    }
    const TestRank& rank = *ranks_[input.Below(static_cast<uint32_t>(ranks_.size()))];
    const std::vector<std::byte> call = AnyRankCall(input, /*ends_jobs=*/true);
    (void)daemon::SendPacket(rank.socket(), call, {}).ok();
    daemon::SocketPacket answer;
    (void)daemon::ReceivePacket(rank.socket(), &answer).ok();
  }
  template <typename Connection>
  static void Drop(FuzzInput& input, std::vector<std::unique_ptr<Connection>>& connections) {
    if (!connections.empty()) {
      connections.erase(connections.begin() +
                        input.Below(static_cast<uint32_t>(connections.size())));
    }
  }

  Stage& stage_;
  FakePeer node_;  // ends with the intruder: a job waits for a node that lives
  RpcWorld world_;
  RpcCaller caller_;
  const std::unique_ptr<control::Launcher::Stub> launcher_;
  std::vector<std::unique_ptr<TestLauncher>> launchers_;
  std::vector<std::unique_ptr<TestRank>> ranks_;
};

}  // namespace
}  // namespace ferry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = [] {
    spdlog::set_level(spdlog::level::off);
    return ferry::transport::EnsureEnvironment().ok();
  }();
  (void)quiet;
  static ferry::fuzz::Stage stage;
  {
    ferry::fuzz::FuzzInput input(data, size);
    ferry::fuzz::Intruder intruder(stage);
    for (uint32_t step = 0; step < ferry::fuzz::kMaxSteps && !input.empty(); ++step) {
      // A step reads its bytes even if it needs none, so that the next steps stay the same.
      const auto bytes = input.TakeBytes(input.Take<uint8_t>());
      ferry::fuzz::FuzzInput own(bytes.data(), bytes.size());
      intruder.Step(own);
    }
  }
  stage.CheckNothingIsLeft();
  return 0;
}

// A node that is no ferryd, but that a daemon takes for one (lying_node.h): it takes part in a job
// of its user's, with the keys and proofs that such a node has, and says anything, over the control
// plane and over the fabric; it answers wrong, twice, late or never, reads slowly or not at all.
// See attacker.h for how it is called.
//
// First of all, in each job, it proves that the daemon takes its packets for genuine: it reads
// words of the rank's memory there, and gets the answers. With --proof it does nothing else.
//
// Attacks by name: `impersonate`: greets in another daemon's name; `lies`: its answers to daemons'
// calls; `why`; `gets`: asks for gigabytes of answers and reads nothing; `lent`: has long gets
// announced, and takes none; `standing`: announces long puts, and lets no daemon read them; `slow`:
// reads little. Ends with 0 when its time is over, and says what it did; with 3 when the daemon no
// longer answers, with 4 when it never took a packet.
#include <grpcpp/grpcpp.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/tls/secrets.h"
#include "proto/control.grpc.pb.h"
#include "tests/hostile/attacker.h"
#include "tests/hostile/hostile_session.h"
#include "tests/hostile/lying_node.h"
#include "tests/hostile/peer_packets.h"
#include "transports/loader/loader.h"

namespace ferry::hostile {
namespace {

using daemon::TestLauncher;
using progress::PacketKind;
using std::chrono::milliseconds;

constexpr milliseconds kCall(2000);
constexpr milliseconds kLinkPatience(5'000);
constexpr uint32_t kSize = 2;         // rank 0 there, rank 1 with us
constexpr int kLongOperations = 256;  // announced at a time
constexpr uint64_t kLongBytes = 1 << 20;
constexpr uint64_t kProofs = 64;

// How it behaves for the length of a job.
enum class Manner { kTalks, kIsSlow, kIsDeaf, kTakesNothing, kGivesNothing };
constexpr struct {
  Manner manner;
  const char* attack;  // its name
  uint64_t for_ms;
} kManners[] = {{Manner::kTalks, "talk", 1500},
                {Manner::kGivesNothing, "standing", 4000},
                {Manner::kIsDeaf, "gets", 3000},
                {Manner::kTakesNothing, "lent", 1500},
                {Manner::kIsSlow, "slow", 1500}};

class HostilePeer {
 public:
  explicit HostilePeer(const Attacker& attacker)
      : attacker_(attacker),
        dice_(attacker.seed),
        target_(IdentityOf(attacker.run_directory)),
        other_(IdentityOf(attacker.other_run_directory)),
        node_(attacker.seed + 1, !attacker.Dares("lies")),
        peer_(control::Peer::NewStub(
            grpc::CreateChannel(target_.control_address, grpc::InsecureChannelCredentials()))),
        launcher_(control::Launcher::NewStub(
            grpc::CreateChannel("unix:" + attacker.run_directory + "/control.sock",
                                grpc::InsecureChannelCredentials()))) {}

  int Run() {
    if (const Status opened = node_.Open(); !opened.ok()) {
      std::printf("no node: %s\n", opened.message().c_str());
      return 2;
    }
    packets_ = std::make_unique<PeerPackets>(node_, dice_);
    int jobs = 0;
    int in_vain = 0;
    while (attacker_.Goes()) {
      if (BeginJob()) {
        in_vain = 0;
        genuine_jobs_ += Prove() ? 1 : 0;
        if (attacker_.only_proof) {
          break;
        }
        Behave(jobs++);
      } else if (++in_vain > 100) {
        std::printf("the daemon does not let anybody in any more: %s\n", why_not_.c_str());
        return 3;
      } else {
        std::this_thread::sleep_for(milliseconds(100));
      }
      EndJob();
    }
    std::printf(
        "%d jobs, %d of them with proof that packets are taken; %llu calls, %llu packets, "
        "%llu answers to them\n",
        jobs, genuine_jobs_, static_cast<unsigned long long>(calls_),
        static_cast<unsigned long long>(packets_->sent()),
        static_cast<unsigned long long>(packets_->answers()));
    return genuine_jobs_ > 0 ? 0 : 4;
  }

 private:
  // -- Coming and going --

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
    request.add_node_addresses(node_.self().control_address());
    control::CreateJobReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCall);
    context.AddMetadata("ferry-token", launcher_connection_->token());
    const grpc::Status status = launcher_->CreateJob(&context, request, &reply);
    why_not_ = status.error_message();
    if (!status.ok()) {
      return false;
    }
    node_.Acquire(target_.control_address);
    is_linked_ = true;
    const auto contact = node_.AwaitUp(kLinkPatience);
    if (!contact.has_value()) {
      why_not_ = "it does not take us for a node";
      return false;
    }
    life_ = contact->life;
    rank_ = std::make_unique<HostileSession>(job_, 0, kSize, 1);
    return rank_->Enter(attacker_.run_directory + "/attach.sock", &why_not_) &&
           packets_->Face(*contact, {contact->send_key,
                                     daemon::DeriveKey(daemon::kTestSecret, "job key|" + job_)}) &&
           TellJoined(/*is_true=*/true);
  }
  void EndJob() {
    rank_.reset();
    launcher_connection_.reset();
    if (std::exchange(is_linked_, false)) {
      node_.Release(target_.control_address);
    }
  }
  // Reads words of the rank's memory: the daemon answers what it takes for genuine, and nothing
  // else.
  bool Prove() {
    const uint64_t before = packets_->words_read();
    uint64_t wanted = 0;
    for (uint64_t i = 0; i < kProofs; ++i) {
      wanted += packets_->SayGet();
    }
    const uint64_t end_ns = MonotonicNs() + kLinkPatience.count() * 1'000'000;
    while (packets_->words_read() < before + wanted && MonotonicNs() < end_ns && node_.contact()) {
      packets_->Listen(64);
      std::this_thread::yield();
    }
    const uint64_t heard = packets_->words_read() - before;
    if (heard < wanted || attacker_.only_proof) {
      std::printf("%llu of %llu packets answered\n", static_cast<unsigned long long>(heard),
                  static_cast<unsigned long long>(wanted));
    }
    return heard >= wanted;
  }

  // -- Manners --

  void Behave(int job) {
    const auto& [its_manner, attack, for_ms] =
        kManners[static_cast<size_t>(job) % std::size(kManners)];
    const Manner manner = attacker_.Dares(attack) ? its_manner : Manner::kTalks;
    const uint64_t end_ns = MonotonicNs() + for_ms * 1'000'000;
    switch (manner) {
      case Manner::kTalks:
      case Manner::kIsSlow:
        for (uint64_t act = 0; MonotonicNs() < end_ns && attacker_.Goes() && node_.contact();
             ++act) {
          Act();
          if (manner != Manner::kIsSlow) {
            packets_->Listen(64);
          } else if (act % 8 == 0) {
            packets_->Listen(1);
          } else {
            packets_->Push();
          }
        }
        return;
      case Manner::kIsDeaf:
        return WhileItStands(end_ns, [this] { packets_->SayGets(shm::kCellBytes); });
      case Manner::kTakesNothing:
        return WhileItStands(end_ns, [this] { packets_->SayLongGet(kLongBytes); });
      case Manner::kGivesNothing:
        for (int i = 0; i < kLongOperations; ++i) {
          packets_->SayLongPut(kLongBytes);
        }
        return WhileItStands(end_ns, [] {});
    }
  }
  // Reads nothing, and goes on until the transport takes no more, or its time is over.
  template <typename Function>
  void WhileItStands(uint64_t end_ns, Function function) {
    packets_->ClearFull();
    while (MonotonicNs() < end_ns && attacker_.Goes()) {
      for (int i = 0; i < 64 && !packets_->is_full(); ++i) {
        function();
      }
      packets_->Push();
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  // -- Acts --

  void Act() {
    switch (dice_.Below(16)) {
      case 0:
        GreetSomehow();
        break;
      case 1:
        TellJoined(/*is_true=*/false);
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
      case 7:
        TellLinks();
        break;
      case 8:
        rank_->PushCommands(dice_);
        rank_->Ring();
        break;
      default:
        for (uint64_t count = 1 + dice_.Below(8); count > 0; --count) {
          if (dice_.OneIn(3) || !packets_->AnswerSomething()) {
            packets_->SayAnything();
          }
        }
    }
  }

  template <typename Request, typename Reply>
  grpc::Status Call(grpc::Status (control::Peer::Stub::*method)(grpc::ClientContext*,
                                                                const Request&, Reply*),
                    const Request& request, Reply* reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCall);
    node_.NameCaller(&context);
    ++calls_;
    return (*peer_.*method)(&context, request, reply);
  }

  // As ourselves, or nearly: without the token that proves it, unless it is one by chance.
  void GreetSomehow() {
    control::HelloRequest request;
    control::NodeIdentity& as = *request.mutable_from();
    as = node_.self();
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
          as.set_control_address(dice_.OneIn(2) ? other_.control_address : as.control_address());
        }
    }
    request.set_life(dice_.Mostly<uint64_t>(life_ + dice_.Below(2)));
    request.set_token(dice_.Text(32));
    control::HelloReply reply;
    if (Call(&control::Peer::Stub::Hello, request, &reply).ok() && reply.data_key() != 0) {
      std::printf("a greeting without proof was told a key\n");
      std::exit(1);
    }
  }
  uint64_t AnyIncarnation() {
    const uint64_t of[] = {node_.self().incarnation(), other_.incarnation, target_.incarnation, 0,
                           dice_.Number()};
    return of[dice_.Below(std::size(of))];
  }
  // Ours and our job's mostly, with the proof that goes with them.
  template <typename Request>
  void Sign(Request* request, bool is_true = false) {
    const bool genuine = is_true || !dice_.OneIn(8);
    request->set_incarnation(genuine ? node_.self().incarnation() : AnyIncarnation());
    request->set_job_id(genuine ? job_ : attacker_.victim_job);
    request->set_job_proof(
        !is_true && dice_.OneIn(16)
            ? dice_.Text(40)
            : daemon::JobProof(daemon::kTestSecret, request->job_id(), request->incarnation()));
  }
  bool TellJoined(bool is_true) {
    control::JoinedRequest request;
    Sign(&request, is_true);
    request.set_node(is_true ? 1 : dice_.Mostly<uint32_t>(1));
    request.set_life(is_true ? life_ : dice_.Mostly<uint64_t>(life_));
    for (uint64_t count = is_true ? 1 : 1 + dice_.Below(3); count > 0; --count) {
      control::JobRank* rank = request.add_ranks();
      rank->set_rank(is_true ? 1 : dice_.Mostly<uint32_t>(1));
      rank->set_private_memory_reachable(dice_.OneIn(2));
    }
    control::JoinedReply reply;
    const grpc::Status status = Call(&control::Peer::Stub::Joined, request, &reply);
    why_not_ = status.error_message();
    return status.ok();
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
    request.set_incarnation(dice_.OneIn(2) ? node_.self().incarnation() : AnyIncarnation());
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
    control::PairNewsRequest request;
    Sign(&request);
    if (!attacker_.Dares("impersonate") && request.incarnation() == 0) {
      return;
    }
    request.set_node(dice_.Mostly<uint32_t>(1));
    for (uint64_t count = 1 + dice_.Below(4); count > 0; --count) {
      control::PairNews* news = request.add_news();
      news->set_kind(static_cast<control::PairNews::Kind>(dice_.Below(5)));
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

  // News of the direct link between rank 0 there and rank 1 here: what would follow upon what the
  // daemon has told, or anything.
  void TellLinks() {
    control::LinkNewsRequest request;
    Sign(&request);
    request.set_node(dice_.Mostly<uint32_t>(1));
    for (uint64_t count = 1 + dice_.Below(4); count > 0; --count) {
      const auto told = node_.TakeLinkNews();
      control::LinkNews* news = request.add_news();
      news->set_kind(static_cast<control::LinkNews::Kind>(dice_.Below(12)));
      news->set_rank(dice_.Mostly<uint32_t>(1));
      news->set_peer(dice_.Mostly<uint32_t>(0));
      news->set_link(dice_.Mostly<uint64_t>(told ? told->link() : dice_.Below(4)));
      news->set_round(dice_.Mostly<uint32_t>(static_cast<uint32_t>(dice_.Below(4))));
      if (told && told->kind() == control::LinkNews::WANTED) {
        news->set_kind(control::LinkNews::OPENED);
      }
      // Ours, as that of our rank: what there is connects here, and hears what no rank says.
      const auto& address = node_.fabric().Address();
      news->set_address(dice_.OneIn(4) ? dice_.Text(200)
                                       : std::string(reinterpret_cast<const char*>(address.data()),
                                                     address.size()));
      for (uint64_t keys = dice_.Mostly<uint32_t>(2) % 5; keys > 0; --keys) {
        news->add_key(dice_.Any());
      }
      news->set_error(static_cast<int32_t>(dice_.OneIn(2) ? 0 : dice_.Below(40)));
      news->set_text(dice_.Text(300));
    }
    control::NewsReply reply;
    (void)Call(&control::Peer::Stub::Links, request, &reply);
  }

  const Attacker& attacker_;
  Dice dice_;
  const DaemonIdentity target_;
  const DaemonIdentity other_;
  LyingNode node_;
  std::unique_ptr<PeerPackets> packets_;
  const std::unique_ptr<control::Peer::Stub> peer_;
  const std::unique_ptr<control::Launcher::Stub> launcher_;
  uint64_t life_ = 1;
  bool is_linked_ = false;
  int names_ = 0;
  int genuine_jobs_ = 0;
  std::string job_;
  std::string why_not_;
  std::unique_ptr<TestLauncher> launcher_connection_;
  std::unique_ptr<HostileSession> rank_;
  uint64_t calls_ = 0;
};

}  // namespace
}  // namespace ferry::hostile

int main(int argc, char** argv) {
  if (const ferry::Status status = ferry::transport::EnsureEnvironment(); !status.ok()) {
    std::fprintf(stderr, "hostile_peer: %s\n", status.message().c_str());
  }
  const ferry::hostile::Attacker attacker = ferry::hostile::BecomeAttacker(argc, argv);
  spdlog::set_level(spdlog::level::off);  // of links that end, as they should
  return ferry::hostile::HostilePeer(attacker).Run();
}

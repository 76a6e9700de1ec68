// Launchers, ranks and other daemons call the control plane with any protobuf messages: parsed as
// gRPC parses them, then handed to the job registry as the services do. One thread, no sockets.
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/log.h"
#include "daemon/jobs/job_link_books.h"
#include "daemon/jobs/job_members.h"
#include "daemon/jobs/job_nodes.h"
#include "daemon/jobs/job_regions.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/tls/secrets.h"
#include "proto/control.pb.h"
#include "tests/daemon/fake_data_plane.h"
#include "tests/fuzz/fuzz_input.h"

namespace ferry::daemon {
namespace {

using fuzz::FuzzInput;

constexpr uint32_t kMaxSteps = 32;
constexpr char kSecret[] = "0123456789abcdef0123456789abcdef";
constexpr uint64_t kIncarnation = 42;

class NoLinks final : public NodeLinks {
 public:
  Status Acquire(const std::string& address, uid_t) override {
    return address.empty() ? Status(ErrorCode::kInvalidArgument, "no address") : Status();
  }
  void Release(const std::string&, uid_t) override {}
  uint64_t Incarnation() const override { return 1; }
  void SendJoined(const std::string&, const control::JoinedRequest&, Done) override {}
  void SendLeft(const std::string&, const control::LeftRequest&, Done) override {}
  void SendPairs(const std::string&, const control::PairNewsRequest&, NewsDone) override {}
  void SendLinkNews(const std::string&, const control::LinkNewsRequest&, NewsDone) override {}
};

class NoConnection final : public RankConnection {
 public:
  void Goodbye(const Status&) override {}
  void Order(const attach::LinkOrder&) override {}
};

LinkPolicy AnyLinks() {
  LinkPolicy policy;
  policy.allowed = {};
  policy.limits = {.per_rank = 2, .per_job = 3};
  return policy;
}

class ControlFuzz {
 public:
  ControlFuzz() : registry_(context_, plane_, RegistryLimits{64, 4, 20'000, {}, AnyLinks()}) {
    registry_.set_links(&links_);
  }

  void Run(FuzzInput& input) {
    for (uint32_t step = 0; step < kMaxSteps && !input.empty(); ++step) {
      Step(input);
      context_.restart();
      context_.poll();
    }
    registry_.EndAll("the fuzzer is through");
    context_.restart();
    context_.poll();
    if (registry_.local_ranks() != 0) {
      abort();  // a session outlived its end
    }
  }

 private:
  // Bytes as they come, or behind something sensible, whose fields they then override or add to.
  template <typename Message>
  Message Parse(FuzzInput& input, Message sensible) {
    if (input.Below(4) == 0) {
      sensible.Clear();
    }
    Message message = sensible;
    if (!message.MergeFromString(input.TakeText(input.Below(48)))) {
      return sensible;
    }
    return message;
  }
  void Step(FuzzInput& input) {
    const std::string id(1, static_cast<char>('a' + input.Below(2)));
    switch (input.Below(13)) {
      case 0:
        Create(input, id);
        break;
      case 1:
        Attach(input, id);
        break;
      case 2:
        if (Session* session = Any(input); session != nullptr) {
          (void)registry_.Serve(*session);
        }
        break;
      case 3:
        if (Session* session = Any(input); session != nullptr) {
          registry_.members().Join(*session, input.Below(2),
                                   [](const Status&, const JoinAnswer&) {});
        }
        break;
      case 4:
        Joined(input, id);
        break;
      case 5:
        Left(input, id);
        break;
      case 6:
        Meet(input);
        break;
      case 7:
        Nodes(input);
        break;
      case 8:
        End(input);
        break;
      case 9:
        Link(input, id);
        break;
      case 10:
        LinkNews(input, id);
        break;
      case 11:
        Relay(input, id);
        break;
      default:
        registry_.nodes().OnTick();
        break;
    }
  }
  void Create(FuzzInput& input, const std::string& id) {
    control::CreateJobRequest sensible;
    sensible.set_job_id(id);
    sensible.set_secret(kSecret);
    sensible.set_size(3);
    for (const uint32_t node : {0U, 0U, 1U}) {
      sensible.add_node_of_rank(node);
    }
    sensible.add_node_addresses("127.0.0.1:1");
    sensible.add_node_addresses("127.0.0.1:2");
    if (id == "b") {  // whose nodes are a tree
      sensible.set_tree_radix(1 + input.Below(2));
      for (int node = 2; node < 6; ++node) {
        sensible.add_node_addresses("127.0.0.1:" + std::to_string(node + 1));
      }
    }
    const auto request = Parse(input, sensible);
    JobSpec spec;
    spec.id = request.job_id();
    spec.secret = request.secret();
    spec.owner = request.has_uid() ? request.uid() : geteuid();
    spec.node = request.node();
    spec.node_of_rank.assign(request.node_of_rank().begin(), request.node_of_rank().end());
    spec.tree_radix = request.tree_radix();
    spec.node_addresses.assign(request.node_addresses().begin(), request.node_addresses().end());
    (void)registry_.CreateJob(std::move(spec));
  }
  void Attach(FuzzInput& input, const std::string& id) {
    AttachClaim claim{id, kSecret, input.Below(4), 3, getpid(), geteuid()};
    if (input.Below(8) == 0) {
      claim.size = input.Take<uint32_t>();
      claim.rank = input.Take<uint32_t>();
      claim.secret = input.TakeText(8);
    }
    if (auto session = registry_.Attach(claim, connection_); session.ok()) {
      sessions_.push_back(*session);
    }
  }
  Session* Any(FuzzInput& input) {
    if (sessions_.empty()) {
      return nullptr;
    }
    last_ = input.Below(static_cast<uint32_t>(sessions_.size()));
    return sessions_[last_].get();
  }
  // Returns the other node of the job, or a node of no job.
  static std::string Caller(FuzzInput& input) {
    return input.Below(16) == 15 ? "127.0.0.1:3" : "127.0.0.1:2";
  }
  void Joined(FuzzInput& input, const std::string& id) {
    control::JoinedRequest sensible;
    sensible.set_incarnation(kIncarnation);
    sensible.set_job_id(id);
    sensible.set_node(1);
    sensible.add_ranks()->set_rank(2);
    auto request = Parse(input, sensible);
    if (input.Below(4) != 0) {
      request.set_job_proof(JobProof(kSecret, request.job_id(), request.incarnation()));
    }
    (void)registry_.nodes().OnJoined(request, Caller(input));
  }
  void Left(FuzzInput& input, const std::string& id) {
    control::LeftRequest sensible;
    sensible.set_incarnation(kIncarnation);
    sensible.set_job_id(id);
    sensible.add_ranks()->set_rank(2);
    auto request = Parse(input, sensible);
    if (input.Below(4) != 0) {
      request.set_job_proof(JobProof(kSecret, request.job_id(), request.incarnation()));
    }
    (void)registry_.nodes().OnLeft(request, Caller(input));
  }
  // A neighbour passes on news.
  void Relay(FuzzInput& input, const std::string& id) {
    control::RelayRequest sensible;
    sensible.set_incarnation(kIncarnation);
    sensible.set_job_id(id);
    sensible.set_node(1);
    for (uint32_t count = input.Below(4); count > 0; --count) {
      control::RelayedNews* const news = sensible.add_news();
      news->set_kind(static_cast<control::RelayedNews::Kind>(input.Below(7)));
      news->set_rank(input.Below(4));
      news->set_count(input.Below(8) == 0 ? input.Take<uint32_t>() : input.Below(3));
      news->set_node(input.Below(7));
      news->set_incarnation(input.Below(2) * kIncarnation);
      news->set_error(input.Below(20));
      news->set_text("it says");
    }
    auto request = Parse(input, sensible);
    if (input.Below(4) != 0) {
      request.set_job_proof(JobProof(kSecret, request.job_id(), request.incarnation()));
    }
    (void)registry_.nodes().OnRelay(request, Caller(input));
    registry_.nodes().WantWay(id, input.Below(7));
    registry_.nodes().OnNodeRefused("127.0.0.1:" + std::to_string(1 + input.Below(6)),
                                    {ErrorCode::kNodeUnreachable, "refused"});
  }
  // A rank wants a direct link, or says something of one.
  void Link(FuzzInput& input, const std::string& id) {
    registry_.link_books().Want(id, input.Below(4), input.Below(4));
    if (Session* session = Any(input); session != nullptr) {
      attach::LinkReply reply{};
      reply.event = input.Below(8);
      reply.peer = input.Below(8) == 0 ? input.Take<uint32_t>() : 2;
      reply.link = input.Below(4);
      reply.flags = input.Below(2);
      reply.address_bytes = input.Below(8) == 0 ? input.Take<uint32_t>() : 8;
      (void)registry_.link_books().OnReply(*session, reply);
    }
    if (input.Below(8) == 0) {
      (void)registry_.link_books().TakeBack(id, input.Below(4), kAnyRank, input.Below(2) == 0);
    }
  }
  void LinkNews(FuzzInput& input, const std::string& id) {
    control::LinkNewsRequest sensible;
    sensible.set_incarnation(kIncarnation);
    sensible.set_job_id(id);
    sensible.set_node(1);
    control::LinkNews* news = sensible.add_news();
    news->set_kind(static_cast<control::LinkNews::Kind>(input.Below(12)));
    news->set_rank(2);
    news->set_peer(input.Below(2));
    news->set_link(input.Below(4));
    news->set_round(input.Below(3));
    news->set_address("somewhere");
    news->add_key(1);
    news->add_key(2);
    auto request = Parse(input, sensible);
    if (input.Below(4) != 0) {
      request.set_job_proof(JobProof(kSecret, request.job_id(), request.incarnation()));
    }
    control::NewsReply reply;
    (void)registry_.link_books().TakeNews(request, Caller(input), &reply);
  }
  void Meet(FuzzInput& input) {
    Session* session = Any(input);
    if (session == nullptr) {
      return;
    }
    (void)registry_.members().PlacesOf(*session, input.Below(4), input.Below(4));
    auto region = std::make_shared<Region>();
    region->id = input.Below(3);
    (void)registry_.regions().Add(*session, region);
    registry_.regions().Remove(*session, input.Below(3), [](const Status&) {});
    (void)registry_.FindPeer(*session, input.Take<uint32_t>());
  }
  void Nodes(FuzzInput& input) {
    const std::string address = "127.0.0.1:" + std::to_string(1 + input.Below(6));
    if (input.Below(2) == 0) {
      NodeContact contact;
      contact.address = address;
      contact.incarnation = kIncarnation + input.Below(2);
      contact.link = contact.incarnation;
      contact.direct_links = input.Below(4) != 0;
      registry_.nodes().OnNodeUp(contact);
    } else {
      registry_.nodes().OnNodeDown(address, kIncarnation, {ErrorCode::kNodeUnreachable, "gone"});
    }
  }
  void End(FuzzInput& input) {
    Session* session = Any(input);
    if (session == nullptr) {
      return;
    }
    switch (input.Below(5)) {
      case 0:
        registry_.members().Detach(*session, input.Below(2), [](bool) {});
        break;
      case 1:
        registry_.EndSession(*session, {ErrorCode::kPeerDied, "it died"});
        break;
      case 2:
        registry_.Abort(*session, input.Take<int32_t>(), input.TakeText(input.Below(48)));
        break;
      case 3:
        (void)registry_.DestroyJob(session->job_id);
        break;
      default:
        registry_.EndSession(session->job_id, session->rank, {ErrorCode::kCorrupt, "bad"});
        break;
    }
  }

  boost::asio::io_context context_;
  FakeDataPlane plane_;
  NoLinks links_;
  JobRegistry registry_;
  std::shared_ptr<NoConnection> connection_ = std::make_shared<NoConnection>();
  std::vector<std::shared_ptr<Session>> sessions_;
  uint32_t last_ = 0;
};

}  // namespace
}  // namespace ferry::daemon

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = [] {
    spdlog::set_level(spdlog::level::off);
    return true;
  }();
  (void)quiet;
  ferry::fuzz::FuzzInput input(data, size);
  ferry::daemon::ControlFuzz().Run(input);
  return 0;
}

#include "tests/hostile/lying_node.h"

#include <unistd.h>

#include <utility>

#include "common/version.h"
#include "daemon/grpc/grpc_status.h"
#include "daemon/tls/secrets.h"
#include "transports/loader/loader.h"

namespace ferry::hostile {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMostLinkNews = 64;
constexpr uint32_t kMostFrames = 16'384;  // that it may have under way, to a daemon that it ignores
// Longer than a daemon waits for an answer.
constexpr milliseconds kNever(5000);

daemon::LinkTiming Timing() {
  daemon::LinkTiming timing;
  timing.heartbeat_interval_ms = 50;
  return timing;
}

}  // namespace

// The service Peer.
class LyingNode::AnyAnswers final : public control::Peer::Service {
 public:
  AnyAnswers(LyingNode& node, uint64_t seed) : node_(node), dice_(seed) {}

  void Stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  std::optional<control::LinkNews> TakeLinkNews() {
    const std::lock_guard lock(mutex_);
    if (link_news_.empty()) {
      return std::nullopt;
    }
    control::LinkNews news = std::move(link_news_.front());
    link_news_.pop_front();
    return news;
  }

  grpc::Status Hello(grpc::ServerContext*, const control::HelloRequest* request,
                     control::HelloReply* reply) override {
    const StatusOr<control::HelloReply> right =
        node_.loop_.Run([&] { return node_.links_.HandleHello(*request, ""); });
    if (!right.ok()) {
      return daemon::ToGrpc(right.status());
    }
    *reply = *right;
    // A link that is up, so that there is one before its daemon is lied to.
    if (node_.contact().has_value() && Lies(16)) {
      const std::lock_guard lock(mutex_);
      switch (dice_.Below(4)) {
        case 0:
          reply->set_data_key(dice_.Any());
          break;
        case 1:
          reply->set_life(dice_.Number());
          break;
        case 2:
          reply->set_token_hash(dice_.Text(64));
          break;
        default:
          reply->mutable_from()->set_fabric_address(dice_.Text(64));
      }
    }
    return grpc::Status::OK;
  }
  grpc::Status Joined(grpc::ServerContext* context, const control::JoinedRequest*,
                      control::JoinedReply*) override {
    return Any(context);
  }
  grpc::Status Left(grpc::ServerContext* context, const control::LeftRequest*,
                    control::LeftReply*) override {
    return Any(context);
  }
  grpc::Status Heartbeat(grpc::ServerContext* context, const control::HeartbeatRequest*,
                         control::HeartbeatReply* reply) override {
    reply->set_incarnation(node_.self_.incarnation());
    if (Lies(64)) {
      const std::lock_guard lock(mutex_);
      reply->set_incarnation(dice_.Number());
    }
    return Lies(8) ? Any(context) : grpc::Status::OK;
  }
  grpc::Status Matches(grpc::ServerContext* context, const control::PairNewsRequest* request,
                       control::NewsReply* reply) override {
    Refuse(static_cast<uint32_t>(request->news_size()), reply);
    return Any(context);
  }
  grpc::Status Links(grpc::ServerContext* context, const control::LinkNewsRequest* request,
                     control::NewsReply* reply) override {
    Refuse(static_cast<uint32_t>(request->news_size()), reply);
    {
      const std::lock_guard lock(mutex_);
      for (const control::LinkNews& news : request->news()) {
        if (link_news_.size() < kMostLinkNews) {
          link_news_.push_back(news);
        }
      }
    }
    return Any(context);
  }
  grpc::Status Why(grpc::ServerContext* context, const control::PeerWhyRequest* request,
                   control::WhyReply* reply) override {
    {
      const std::lock_guard lock(mutex_);
      for (uint64_t count = dice_.Below(4); count > 0; --count) {
        control::RankWait* rank = reply->add_ranks();
        rank->set_rank(dice_.Mostly<uint32_t>(request->rank()));
        rank->set_node(dice_.Mostly<uint32_t>(1));
        rank->set_state(dice_.Text(100));
      }
    }
    return Any(context);
  }

 private:
  bool Lies(uint64_t one_in) {
    const std::lock_guard lock(mutex_);
    return !node_.is_honest_ && dice_.OneIn(one_in);
  }
  // Refuses news that there are, or are not.
  void Refuse(uint32_t count, control::NewsReply* reply) {
    if (!Lies(4)) {
      return;
    }
    const std::lock_guard lock(mutex_);
    for (uint64_t refused = 1 + dice_.Below(3); refused > 0; --refused) {
      control::RefusedNews* news = reply->add_refused();
      news->set_index(dice_.Mostly<uint32_t>(static_cast<uint32_t>(dice_.Below(count + 1))));
      news->set_error(static_cast<int32_t>(dice_.Below(40)));
      news->set_text(dice_.Text(300));
    }
  }
  grpc::Status Any(grpc::ServerContext* context) {
    if (!Lies(8)) {
      return grpc::Status::OK;
    }
    std::unique_lock lock(mutex_);
    if (dice_.OneIn(4)) {
      const auto end = std::chrono::steady_clock::now() + kNever;
      while (!stopped_ && !context->IsCancelled() && std::chrono::steady_clock::now() < end) {
        changed_.wait_for(lock, milliseconds(100));
      }
    }
    return {static_cast<grpc::StatusCode>(dice_.Below(17)), "any words",
            std::to_string(static_cast<int32_t>(dice_.Number()))};
  }

  LyingNode& node_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  Dice dice_;
  std::deque<control::LinkNews> link_news_;
};

LyingNode::LyingNode(uint64_t seed, bool is_honest)
    : is_honest_(is_honest),
      links_(loop_, *this, Timing(), nullptr),
      answers_(std::make_unique<AnyAnswers>(*this, seed)) {
  self_.set_incarnation(daemon::RandomId());
}

LyingNode::~LyingNode() {
  if (server_ != nullptr) {
    answers_->Stop();
    server_->Shutdown(std::chrono::system_clock::now());
    links_.Stop();
    loop_.Stop();
  }
}

Status LyingNode::Open() {
  transport::TransportOptions options;
  options.max_outstanding = kMostFrames;
  options.max_outstanding_per_peer = kMostFrames;
  StatusOr<std::unique_ptr<transport::Transport>> opened = transport::OpenTransport(options);
  FERRY_RETURN_IF_ERROR(opened.status());
  fabric_ = std::move(*opened);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(answers_.get());
  // No daemon can call before its address is told.
  server_ = builder.BuildAndStart();
  self_.set_name("hostile");
  self_.set_layout_version(kLayoutVersion);
  self_.set_protocol_version(kProtocolVersion);
  self_.set_control_address("127.0.0.1:" + std::to_string(port));
  self_.set_provider(fabric_->Describe().provider);
  self_.set_direct_links(true);
  links_.set_self(self_, [this](uint64_t guest) {
    const std::vector<std::byte> address = fabric_->AddressFor(guest);
    return std::string(reinterpret_cast<const char*>(address.data()), address.size());
  });
  loop_.Start();
  return server_ != nullptr ? Status() : Status(ErrorCode::kSystem, "no port to serve at");
}

void LyingNode::Acquire(const std::string& address) {
  loop_.Run([&] { (void)links_.Acquire(address, geteuid()).ok(); });
}

void LyingNode::Release(const std::string& address) {
  loop_.Run([&] { links_.Release(address, geteuid()); });
  SetContact({});
}

std::optional<daemon::NodeContact> LyingNode::AwaitUp(milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return contact_.has_value(); });
  return contact_;
}

std::optional<daemon::NodeContact> LyingNode::contact() {
  const std::lock_guard lock(mutex_);
  return contact_;
}

std::optional<control::LinkNews> LyingNode::TakeLinkNews() { return answers_->TakeLinkNews(); }

void LyingNode::NameCaller(grpc::ClientContext* context) {
  context->AddMetadata(daemon::kCallerMetadata, self_.control_address());
  if (const auto callee = contact(); callee.has_value()) {
    context->AddMetadata(daemon::kCallerTokenMetadata,
                         links_.identity().TokenFor(callee->address, callee->incarnation));
  }
}

void LyingNode::SetContact(const std::optional<daemon::NodeContact>& contact) {
  const std::lock_guard lock(mutex_);
  contact_ = contact;
  changed_.notify_all();
}

void LyingNode::OnNodeUp(const daemon::NodeContact& contact) { SetContact(contact); }
void LyingNode::OnNodeDown(const std::string&, uint64_t, const Status&) { SetContact({}); }
void LyingNode::OnNodeCut(const std::string&, uint64_t, const Status&) { SetContact({}); }

}  // namespace ferry::hostile

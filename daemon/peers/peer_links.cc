#include "daemon/peers/peer_links.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/log.h"
#include "common/net_address.h"
#include "common/version.h"
#include "daemon/grpc/grpc_status.h"
#include "daemon/peers/peer_link.h"
#include "daemon/peers/port_probe.h"
#include "daemon/tls/secrets.h"
#include "daemon/tls/tls_credentials.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr size_t kMostDown = 4096;
constexpr uint32_t kMostEarlyGreetings = 4;  // between two ticks
constexpr size_t kStrangersAtOnce = 64;      // of one user's nodes
constexpr size_t kMostQuestions = 64;        // that wait for one link to open

// True if the callee has understood the question and will not answer another one of its kind.
bool IsRefusal(const Status& status) {
  return status.code() != ErrorCode::kNodeUnreachable && status.code() != ErrorCode::kTimeout;
}

Status Restarted() {
  return {ErrorCode::kNodeUnreachable, "its daemon was restarted, the one of this job is gone"};
}

Status Died() {
  return {ErrorCode::kNodeUnreachable, "its daemon has died: nothing listens there any more"};
}

}  // namespace

PeerLinks::PeerLinks(ControlLoop& loop, NodeEvents& events, LinkTiming timing,
                     const TlsCredentials* tls, AddressList nodes)
    : loop_(loop),
      events_(events),
      timing_(timing),
      late_(timing.heartbeat_interval_ms),
      tls_(tls),
      nodes_(std::move(nodes)),
      turns_(kStrangersAtOnce),
      timer_(loop.context()),
      calls_(loop, links_, identity_, timing_, tls) {}

PeerLinks::~PeerLinks() = default;

void PeerLinks::Stop() {
  loop_.Run([this] {
    ticking_ = false;
    timer_.cancel();
    for (const auto& [address, link] : links_) {
      link->probes.clear();  // they hold the link, and so do these
      link->when_up.clear();
    }
  });
  calls_.Stop();
}

// ---- The life of a link ----

Status PeerLinks::CheckAddress(const std::string& host) const {
  if (!nodes_.empty() && !nodes_.Contains(host)) {
    return {ErrorCode::kPermissionDenied,
            host +
                " is not among the other nodes that jobs of this ferryd may name (its option "
                "node_addresses): ask its administrator if it should be"};
  }
  return tls_ == nullptr ? CheckLoopback(host) : Status();
}

Status PeerLinks::Acquire(const std::string& address, uid_t user) {
  const StatusOr<LinkPtr> link = Want(address, user, /*is_dormant=*/false);
  FERRY_RETURN_IF_ERROR(link.status());
  Awake(*link);
  return {};
}

Status PeerLinks::Name(const std::string& address, uid_t user) {
  return Want(address, user, /*is_dormant=*/true).status();
}

// Begins to greet a daemon that was only named so far.
void PeerLinks::Awake(const LinkPtr& link) {
  if (std::exchange(link->is_dormant, false)) {
    link->stranger_since_ns = MonotonicNs();
    GreetStranger(link);
  }
}

void PeerLinks::Open(const std::string& address, uint64_t incarnation) {
  if (const auto found = links_.find(address); found != links_.end()) {
    const LinkPtr link = found->second;
    link->known = incarnation;
    Awake(link);
  }
}

void PeerLinks::SendWhy(const std::string& address, const control::PeerWhyRequest& request,
                        PeerCalls::ReplyDone<control::WhyReply> done) {
  const auto found = links_.find(address);
  const bool opens =
      found != links_.end() && (found->second->is_dormant || !found->second->when_up.empty());
  if (!opens) {
    return calls_.SendWhy(address, request, std::move(done));
  }
  const LinkPtr link = found->second;
  if (link->when_up.size() < kMostQuestions) {
    link->when_up.push_back([this, address, request, done = std::move(done)] {
      calls_.SendWhy(address, request, done);
    });
  }
  Awake(link);
}

void PeerLinks::Check(const std::string& address) {
  if (const auto found = links_.find(address); found != links_.end() && found->second->up) {
    MarkDownIfDied(found->second);
  }
}

bool PeerLinks::IsSilent(const std::string& address) const {
  const auto found = links_.find(address);
  return found != links_.end() && found->second->unanswered_since_ns != 0 &&
         MonotonicNs() - found->second->unanswered_since_ns > timing_.CallTimeoutMs() * kNsPerMs;
}

size_t PeerLinks::OpenLinks() const {
  return static_cast<size_t>(std::count_if(
      links_.begin(), links_.end(), [](const auto& entry) { return !entry.second->is_dormant; }));
}

StatusOr<PeerLinks::LinkPtr> PeerLinks::Want(const std::string& address, uid_t user,
                                             bool is_dormant) {
  if (const auto found = links_.find(address); found != links_.end()) {
    const LinkPtr link = found->second;
    if (++link->wanted[user] == 1 && link->in_line) {
      link->in_line = false;  // its new user's turn may come earlier
      GreetStranger(link);
    }
    if (link->up) {
      loop_.Post([this, link] { ReportUp(link); });
    }
    return link;
  }
  const StatusOr<HostPort> parsed = ParseHostPort(address);
  FERRY_RETURN_IF_ERROR(parsed.status());
  FERRY_RETURN_IF_ERROR(CheckAddress(parsed->host));
  auto link = std::make_shared<PeerLink>();
  link->address = address;
  link->host = parsed->host;
  link->wanted[user] = 1;
  link->stranger_since_ns = MonotonicNs();
  link->is_dormant = is_dormant;
  links_.emplace(address, link);
  if (!is_dormant) {
    GreetStranger(link);
  }
  if (!std::exchange(ticking_, true)) {
    TickLater();
  }
  return link;
}

void PeerLinks::Release(const std::string& address, uid_t user) {
  const auto found = links_.find(address);
  if (found == links_.end()) {
    return;
  }
  std::map<uid_t, uint32_t>& wanted = found->second->wanted;
  if (const auto jobs = wanted.find(user); jobs != wanted.end() && --jobs->second == 0) {
    wanted.erase(jobs);
  }
  if (wanted.empty()) {
    links_.erase(found);
  }
}

bool PeerLinks::IsCurrent(const LinkPtr& link) const {
  const auto found = links_.find(link->address);
  return found != links_.end() && found->second == link;
}

// Greets an address that has never answered, at the turn of a user whose jobs name it.
void PeerLinks::GreetStranger(const LinkPtr& link) {
  std::vector<uid_t> users;
  for (const auto& [user, jobs] : link->wanted) {
    users.push_back(user);
  }
  link->in_line = true;
  turns_.Await(users, [this, weak = std::weak_ptr(link)](uid_t user) {
    const LinkPtr link = weak.lock();
    if (link == nullptr || !IsCurrent(link) || !std::exchange(link->in_line, false)) {
      return false;
    }
    link->turn = user;
    SayHello(link);
    return true;
  });
}

void PeerLinks::SayHello(const LinkPtr& link) {
  link->asking = true;
  calls_.RefreshConnection(*link);
  control::HelloRequest request;
  *request.mutable_from() = identity_.self();
  request.set_life(link->life);
  if (link->contact.incarnation != 0) {
    request.set_token(identity_.TokenFor(link->address, link->contact.incarnation));
  }
  calls_.SendHello(link, request,
                   link->trouble.empty() ? timing_.CallTimeoutMs() : timing_.RetryTimeoutMs(),
                   [this, link](const Status& status, const control::HelloReply& reply) {
                     OnHello(link, status, reply);
                   });
}

// Greets before the next tick: the peer knows us by now, or needs us to know it.
void PeerLinks::GreetNow(const LinkPtr& link) {
  if (link->up) {
    return;
  }
  if (link->asking) {
    link->greet_again = true;
  } else if (link->contact.incarnation == 0) {
    link->next_greeting_ns = 0;
  } else if (link->early_greetings < kMostEarlyGreetings) {
    ++link->early_greetings;
    SayHello(link);
  }
}

void PeerLinks::OnHello(const LinkPtr& link, const Status& status,
                        const control::HelloReply& reply) {
  link->asking = false;
  if (const auto turn = std::exchange(link->turn, std::nullopt)) {
    turns_.End(*turn);
  }
  if (!IsCurrent(link)) {
    return;
  }
  const bool greet_again = std::exchange(link->greet_again, false);
  const Status answer = status.ok() ? CheckReply(link, reply) : status;
  if (!answer.ok()) {
    if (IsRefusal(answer)) {
      return MarkDown(link, answer);
    }
    link->trouble = ExplainConnectionError(answer.message(), tls_);
    events_.OnNodeTrouble(link->address, {answer.code(), link->trouble});
    if (link->contact.incarnation != 0) {  // the peer was cut off, and may have died since
      MarkDownIfDied(link);
    } else {
      if (link->known != 0) {
        Probe(link, [this, link](bool refused) {
          if (refused) {
            events_.OnNodeRefused(link->address, Died());
          }
        });
      }
      link->stub.reset();
      const uint64_t now_ns = MonotonicNs();
      const uint64_t unanswered_ms = (now_ns - link->stranger_since_ns) / kNsPerMs;
      link->next_greeting_ns =
          greet_again ? now_ns : now_ns + timing_.GreetingPauseMs(unanswered_ms) * kNsPerMs;
    }
    return;  // until Tick
  }
  if (link->contact.incarnation != 0 && (reply.from().incarnation() != link->contact.incarnation ||
                                         reply.token_hash() != link->token_hash)) {
    return MarkDown(link, Restarted());
  }
  const bool is_new = link->contact.incarnation == 0;
  Learn(link, reply);
  const bool has_agreed = reply.life() == link->life && reply.data_key() != 0;
  link->life = std::max(link->life, reply.life());
  if (reply.data_key() == 0) {
    link->trouble = "the daemon there has not called this one back at " +
                    identity_.self().control_address() +
                    " yet: the job may not have been created there";
    events_.OnNodeTrouble(link->address, {ErrorCode::kNodeUnreachable, link->trouble});
  }
  if (is_new && !has_agreed) {
    return SayHello(link);  // now with a token
  }
  if (!has_agreed) {  // the key, if any, is of another life: the next tick greets again
    return greet_again ? GreetNow(link) : void();
  }
  link->up = true;
  link->NoteAnswer();
  link->contact.send_key = reply.data_key();
  link->contact.receive_key = identity_.ReceiveKey(reply.from(), link->life);
  link->contact.life = link->life;
  spdlog::info("peer {} at {} is up", link->contact.name, link->address);
  ReportUp(link);
  for (const auto& ask : std::exchange(link->when_up, {})) {
    ask();
  }
  Beat(link);  // the peer may have greeted us too early: now it need not wait
}

// Checks that a daemon that we can talk to answers at the link's address, and that the address is
// its own.
Status PeerLinks::CheckReply(const LinkPtr& link, const control::HelloReply& reply) const {
  FERRY_RETURN_IF_ERROR(identity_.CheckIdentity(reply.from()));
  FERRY_RETURN_IF_ERROR(PeerIdentity::CheckLife(reply.life()));
  if (reply.from().control_address() != link->address) {
    return {ErrorCode::kInvalidArgument,
            "the daemon of node " + reply.from().name() + ", which answers at " + link->address +
                ", is reached at " + reply.from().control_address() + ": name it by that address"};
  }
  return {};
}

void PeerLinks::Learn(const LinkPtr& link, const control::HelloReply& reply) {
  link->Learn(reply, identity_.LinkTo(reply.from()));
  down_.erase(link->address);
}

void PeerLinks::ReportUp(const LinkPtr& link) {
  if (IsCurrent(link)) {
    events_.OnNodeUp(link->contact);
  }
}

void PeerLinks::Beat(const LinkPtr& link) {
  link->asking = true;
  link->asked_ns = MonotonicNs();
  uint64_t timeout_ms = timing_.RetryTimeoutMs();
  if (link->unanswered_since_ns == 0) {
    link->unanswered_since_ns = link->asked_ns;
    timeout_ms = timing_.BeatTimeoutMs(link->answer_ms);
  } else {
    calls_.RefreshConnection(*link);
  }
  control::HeartbeatRequest request;
  request.set_incarnation(identity_.self().incarnation());
  request.set_life(link->life);
  calls_.SendHeartbeat(link, request, timeout_ms,
                       [this, link](const Status& status, const control::HeartbeatReply& reply) {
                         OnBeat(link, status, reply.incarnation());
                       });
}

void PeerLinks::OnBeat(const LinkPtr& link, const Status& status, uint64_t incarnation) {
  link->asking = false;
  if (!IsCurrent(link)) {
    return;
  }
  const uint64_t now_ns = MonotonicNs();
  if (status.ok() && incarnation != link->contact.incarnation) {
    return MarkDown(link, Restarted());
  }
  if (status.ok()) {
    return link->NoteBeatAnswer();
  }
  link->trouble = status.message();
  if (status.code() == ErrorCode::kDaemonDied) {  // see CheckAlive
    return MarkDown(link, {ErrorCode::kNodeUnreachable, status.message()});
  }
  if (status.code() == ErrorCode::kLinkDown) {
    return MarkCut(link, link->life + 1, status);
  }
  uint64_t since_ns = link->unanswered_since_ns;
  LateTicks::Forgive(late_.LostSince(now_ns), now_ns, &since_ns);
  const uint64_t silent_ms = (now_ns - since_ns) / kNsPerMs;
  if (silent_ms >= timing_.peer_timeout_ms) {
    return MarkCut(
        link, link->life + 1,
        {ErrorCode::kLinkDown, "its daemon has been silent for " + std::to_string(silent_ms) +
                                   " ms (peer_timeout_ms): " + status.message()});
  }
  calls_.Connect(*link);
  MarkDownIfDied(link);
}

void PeerLinks::MarkDownIfDied(const LinkPtr& link) {
  Probe(link, [this, link](bool refused) {
    if (refused) {
      MarkDown(link, Died());
    }
  });
}

void PeerLinks::Probe(const LinkPtr& link, std::function<void(bool refused)> done) {
  link->probes.push_back(std::move(done));
  if (link->probes.size() > 1) {
    return;
  }
  const auto answer = [this, link](bool refused) {
    for (const auto& probe : std::exchange(link->probes, {})) {
      if (IsCurrent(link)) {
        probe(refused);
      }
    }
  };
  const StatusOr<HostPort> where = ParseHostPort(link->address);
  if (!where.ok()) {
    return answer(false);
  }
  ProbePort(loop_.context(), *where, std::chrono::milliseconds(timing_.heartbeat_interval_ms),
            answer);
}

void PeerLinks::MarkDown(const LinkPtr& link, const Status& why) {
  link->when_up.clear();  // they hold the link
  links_.erase(link->address);
  if (link->contact.incarnation != 0) {
    if (down_.size() >= kMostDown) {
      down_.erase(down_.begin());  // that peer finds out by itself
    }
    down_[link->address] = link->contact.incarnation;
  }
  spdlog::error("peer {} at {} is down: {}", link->contact.name, link->address, why.message());
  events_.OnNodeDown(link->address, link->contact.link, why);
}

void PeerLinks::MarkCut(const LinkPtr& link, uint64_t next_life, const Status& why) {
  link->up = false;
  link->life = next_life;
  link->trouble = why.message();
  calls_.Connect(*link);
  spdlog::error("peer {} at {} is cut off: {}", link->contact.name, link->address, why.message());
  events_.OnNodeCut(link->address, link->contact.link, why);
}

void PeerLinks::TickLater() {
  timer_.expires_after(std::chrono::milliseconds(timing_.heartbeat_interval_ms));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && ticking_) {
      Tick();
    }
  });
}

void PeerLinks::Tick() {
  ticking_ = !links_.empty();
  if (!ticking_) {
    return;  // an idle daemon without peers has no timer at all
  }
  const uint64_t now_ns = MonotonicNs();
  const uint64_t lost_ns = late_.Tick(now_ns);
  open_links_ = OpenLinks();
  for (const auto& [address, link] : links_) {
    LateTicks::Forgive(lost_ns, now_ns, &link->unanswered_since_ns);
    link->early_greetings = 0;
    if (link->asking || link->is_dormant) {
      continue;
    }
    if (!link->up && link->contact.incarnation == 0) {
      // A tick may come a little early.
      const uint64_t soon_ns = now_ns + timing_.heartbeat_interval_ms / 2 * kNsPerMs;
      if (!link->in_line && soon_ns >= link->next_greeting_ns) {
        GreetStranger(link);
      }
    } else if (!link->up) {
      SayHello(link);
    } else if (link->IsBeatDue(timing_, open_links_, now_ns)) {
      Beat(link);
    }
  }
  events_.OnTick();
  TickLater();
}

PeerLinks::LinkPtr PeerLinks::FindUp(uint64_t link) const {
  const auto found = std::find_if(links_.begin(), links_.end(), [link](const auto& entry) {
    return entry.second->up && entry.second->contact.link == link;
  });
  return found == links_.end() ? nullptr : found->second;
}

void PeerLinks::Lose(uint64_t lost, const Status& why) {
  const LinkPtr link = FindUp(lost);
  if (link == nullptr) {
    return;
  }
  // Meanwhile the peer may have noticed the loss, too, and a new life of the link may have begun.
  Probe(link, [this, link, why, life = link->life](bool refused) {
    if (refused) {
      MarkDown(link, Died());
    } else if (link->up && link->life == life) {
      MarkCut(link, link->life + 1, why);
    }
  });
}

// ---- The side that is called ----

StatusOr<control::HelloReply> PeerLinks::HandleHello(const control::HelloRequest& request,
                                                     const std::string& certificate) {
  const control::NodeIdentity& from = request.from();
  if (tls_ != nullptr) {
    FERRY_RETURN_IF_ERROR(PeerIdentity::CheckCertificate(from, certificate));
  }
  FERRY_RETURN_IF_ERROR(identity_.CheckIdentity(from));
  FERRY_RETURN_IF_ERROR(PeerIdentity::CheckLife(request.life()));
  control::HelloReply reply;
  *reply.mutable_from() = identity_.self();
  reply.set_life(request.life());
  reply.set_token_hash(HashOfToken(identity_.TokenFor(from.control_address(), from.incarnation())));
  const auto found = links_.find(from.control_address());
  if (found == links_.end()) {
    return reply;
  }
  const LinkPtr link = found->second;
  Awake(link);  // a rank there needs one here, or a node the other as its neighbour
  if (!link->IsFrom(from.incarnation(), request.token())) {
    // The proof may be missing only because its answer to our own greeting is still on its way.
    link->greet_again = link->greet_again || link->asking;
    link->next_greeting_ns = 0;  // or the daemon has come late: it answers from now on
    return reply;
  }
  if (link->up && link->life < request.life()) {
    MarkCut(link, request.life(),
            {ErrorCode::kLinkDown, "its daemon has lost the link, and greets anew"});
  }
  link->life = std::max(link->life, request.life());
  reply.set_life(link->life);
  reply.set_data_key(identity_.ReceiveKey(from, link->life));
  reply.mutable_from()->set_fabric_address(address_for_(identity_.LinkTo(from)));
  GreetNow(link);
  return reply;
}

Status PeerLinks::CheckAlive(const std::string& address, uint64_t incarnation) const {
  if (const auto down = down_.find(address); down != down_.end() && down->second == incarnation) {
    return {ErrorCode::kDaemonDied, "the daemon of node " + identity_.self().name() +
                                        " took its caller for dead, and has ended their jobs"};
  }
  return {};
}

Status PeerLinks::CheckCaller(const std::string& address, uint64_t incarnation,
                              const std::string& token) const {
  const auto found = links_.find(address);
  if (found == links_.end() || found->second->contact.incarnation != incarnation ||
      incarnation == 0) {
    return {ErrorCode::kNodeUnreachable, "the daemon of node " + identity_.self().name() +
                                             " has not been answered by its caller at " + address +
                                             " yet, or by another incarnation"};
  }
  if (!found->second->IsFrom(incarnation, token)) {
    return {ErrorCode::kPermissionDenied,
            "the caller has not shown that it is the daemon at " + address};
  }
  return {};
}

Status PeerLinks::CheckHeartbeat(const std::string& address, const std::string& token,
                                 const control::HeartbeatRequest& request) {
  FERRY_RETURN_IF_ERROR(CheckAlive(address, request.incarnation()));
  const auto found = links_.find(address);
  if (found == links_.end() || found->second->contact.incarnation != request.incarnation()) {
    return {};
  }
  if (request.life() < found->second->life) {
    return {ErrorCode::kLinkDown,
            "the daemon of node " + identity_.self().name() + " has lost the link to its caller"};
  }
  found->second->NoteBeatOfPeer(request, token);
  GreetNow(found->second);  // where its own link is up, ours can be
  return {};
}

// ---- Report ----

std::vector<control::PeerStatus> PeerLinks::Report() const {
  std::vector<control::PeerStatus> report;
  for (const auto& [address, link] : links_) {
    report.push_back(link->Report(2 * timing_.heartbeat_interval_ms * kNsPerMs));
  }
  return report;
}

}  // namespace ferry::daemon

// PeerLinks as the one that is called: who calls, and what it may be told.
#include <algorithm>
#include <string>
#include <utility>

#include "common/net_address.h"
#include "common/version.h"
#include "daemon/peers/peer_link.h"
#include "daemon/peers/peer_links.h"
#include "daemon/tls/secrets.h"
#include "daemon/tls/tls_credentials.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kMostLives = uint64_t{1} << 32;  // far more than a link can be cut

std::string Versions(const control::NodeIdentity& node) {
  return "layout version " + std::to_string(node.layout_version()) + ", protocol version " +
         std::to_string(node.protocol_version());
}

}  // namespace

Status PeerLinks::CheckLife(uint64_t life) {
  return life < kMostLives
             ? Status()
             : Status(ErrorCode::kInvalidArgument,
                      "no link between two daemons has had " + std::to_string(life) + " lives");
}

Status PeerLinks::CheckIdentity(const control::NodeIdentity& peer) const {
  if (peer.layout_version() != self_.layout_version() ||
      peer.protocol_version() != self_.protocol_version()) {
    return {ErrorCode::kVersionMismatch, "the daemon of node " + peer.name() + " has " +
                                             Versions(peer) + "; the one of node " + self_.name() +
                                             " has " + Versions(self_) +
                                             ": use the same release of Ferry on both"};
  }
  if (peer.incarnation() == 0) {
    return {ErrorCode::kInvalidArgument,
            "the daemon of node " + peer.name() + " says no incarnation, which every daemon has"};
  }
  if (peer.incarnation() == self_.incarnation()) {
    return {ErrorCode::kInvalidArgument,
            "that address is the daemon of node " + self_.name() + " itself"};
  }
  if (peer.provider() != self_.provider()) {
    return {ErrorCode::kUnsupported, "the daemon of node " + peer.name() + " uses the provider " +
                                         peer.provider() + "; the one of node " + self_.name() +
                                         " uses " + self_.provider() +
                                         ": set the option provider alike on both"};
  }
  return {};
}

// Whether a daemon with that certificate may say that it is `peer`.
Status PeerLinks::CheckCertificate(const control::NodeIdentity& peer,
                                   const std::string& certificate) const {
  const StatusOr<CertificateChain> chain = CertificateChain::Parse(certificate);
  FERRY_RETURN_IF_ERROR(chain.status());
  const StatusOr<HostPort> address = ParseHostPort(peer.control_address());
  FERRY_RETURN_IF_ERROR(address.status());
  const Status named = chain->CheckName(address->host);
  return named.ok()
             ? named
             : Status(named.code(), "the certificate of the daemon of node " + peer.name() + " " +
                                        named.message() + ", the host of its control address " +
                                        peer.control_address());
}

// All are derived, not stored: a stranger that greets us a million times costs no memory.
uint64_t PeerLinks::ReceiveKey(const control::NodeIdentity& peer, uint64_t life) const {
  return DeriveKey(key_secret_, "receive key|" + std::to_string(peer.incarnation()) + "|" +
                                    std::to_string(life) + "|" + peer.control_address());
}

std::string PeerLinks::TokenFor(const std::string& address, uint64_t incarnation) const {
  return DeriveToken(key_secret_, std::to_string(incarnation) + "|" + address);
}

uint64_t PeerLinks::LinkTo(const control::NodeIdentity& peer) const {
  return DeriveKey(key_secret_,
                   "link|" + std::to_string(peer.incarnation()) + "|" + peer.control_address());
}

// Whether who shows that token is the daemon that answers at the link's address.
bool PeerLinks::IsFrom(const Link& link, uint64_t incarnation, const std::string& token) {
  return link.contact.incarnation == incarnation &&
         ConstantTimeEquals(HashOfToken(token), link.token_hash);
}

StatusOr<control::HelloReply> PeerLinks::HandleHello(const control::HelloRequest& request,
                                                     const std::string& certificate) {
  const control::NodeIdentity& from = request.from();
  if (tls_ != nullptr) {
    FERRY_RETURN_IF_ERROR(CheckCertificate(from, certificate));
  }
  FERRY_RETURN_IF_ERROR(CheckIdentity(from));
  FERRY_RETURN_IF_ERROR(CheckLife(request.life()));
  control::HelloReply reply;
  *reply.mutable_from() = self_;
  reply.set_life(request.life());
  reply.set_token_hash(HashOfToken(TokenFor(from.control_address(), from.incarnation())));
  const auto found = links_.find(from.control_address());
  if (found == links_.end()) {
    return reply;
  }
  const LinkPtr link = found->second;
  if (!IsFrom(*link, from.incarnation(), request.token())) {
    // Perhaps only because its answer to our own greeting is still on its way.
    link->greet_again = link->greet_again || link->asking;
    link->next_greeting_ns = 0;  // or one that comes late: it answers from now on
    return reply;
  }
  if (link->up && link->life < request.life()) {
    MarkCut(link, request.life(),
            {ErrorCode::kLinkDown, "its daemon has lost the link, and greets anew"});
  }
  link->life = std::max(link->life, request.life());
  reply.set_life(link->life);
  reply.set_data_key(ReceiveKey(from, link->life));
  reply.mutable_from()->set_fabric_address(address_for_(LinkTo(from)));
  GreetNow(link);
  return reply;
}

Status PeerLinks::CheckAlive(const std::string& address, uint64_t incarnation) const {
  if (const auto dead = dead_.find(address); dead != dead_.end() && dead->second == incarnation) {
    return {ErrorCode::kDaemonDied, "the daemon of node " + self_.name() +
                                        " took its caller for dead, and has ended their jobs"};
  }
  return {};
}

Status PeerLinks::CheckCaller(const std::string& address, uint64_t incarnation,
                              const std::string& token) const {
  const auto found = links_.find(address);
  if (found == links_.end() || found->second->contact.incarnation != incarnation ||
      incarnation == 0) {
    return {ErrorCode::kNodeUnreachable, "the daemon of node " + self_.name() +
                                             " has not been answered by its caller at " + address +
                                             " yet, or by another incarnation"};
  }
  if (!IsFrom(*found->second, incarnation, token)) {
    return {ErrorCode::kPermissionDenied,
            "the caller has not shown that it is the daemon at " + address};
  }
  return {};
}

Status PeerLinks::CheckHeartbeat(const std::string& address,
                                 const control::HeartbeatRequest& request) {
  FERRY_RETURN_IF_ERROR(CheckAlive(address, request.incarnation()));
  const auto found = links_.find(address);
  if (found == links_.end() || found->second->contact.incarnation != request.incarnation()) {
    return {};
  }
  if (request.life() < found->second->life) {
    return {ErrorCode::kLinkDown,
            "the daemon of node " + self_.name() + " has lost the link to its caller"};
  }
  GreetNow(found->second);  // where its own link is up, ours can be
  return {};
}

}  // namespace ferry::daemon

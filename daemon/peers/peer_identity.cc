#include "daemon/peers/peer_identity.h"

#include <string>

#include "common/net_address.h"
#include "daemon/tls/secrets.h"
#include "daemon/tls/tls_credentials.h"

namespace ferry::daemon {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr uint64_t kMostLives = uint64_t{1} << 32;  // far more than a link can be cut

std::string Versions(const control::NodeIdentity& node) {
  return "layout version " + std::to_string(node.layout_version()) + ", protocol version " +
         std::to_string(node.protocol_version());
}

}  // namespace

PeerIdentity::PeerIdentity() : secret_(kSecretBytes, '\0') {
  FillRandom({reinterpret_cast<uint8_t*>(secret_.data()), secret_.size()});
}

Status PeerIdentity::CheckLife(uint64_t life) {
  return life < kMostLives
             ? Status()
             : Status(ErrorCode::kInvalidArgument,
                      "no link between two daemons has had " + std::to_string(life) + " lives");
}

Status PeerIdentity::CheckIdentity(const control::NodeIdentity& peer) const {
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

Status PeerIdentity::CheckCertificate(const control::NodeIdentity& peer,
                                      const std::string& certificate) {
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

uint64_t PeerIdentity::ReceiveKey(const control::NodeIdentity& peer, uint64_t life) const {
  return DeriveKey(secret_, "receive key|" + std::to_string(peer.incarnation()) + "|" +
                                std::to_string(life) + "|" + peer.control_address());
}

std::string PeerIdentity::TokenFor(const std::string& address, uint64_t incarnation) const {
  return DeriveToken(secret_, std::to_string(incarnation) + "|" + address);
}

uint64_t PeerIdentity::LinkTo(const control::NodeIdentity& peer) const {
  return DeriveKey(secret_,
                   "link|" + std::to_string(peer.incarnation()) + "|" + peer.control_address());
}

}  // namespace ferry::daemon

// Our identity towards other daemons, the keys, tokens and link numbers that we give them, and the
// checks of the identities that they give (peer_links.h, "Identity").
//
// Keys, tokens and link numbers are derived from a secret, not stored: a stranger that greets a
// million times costs no memory.
//
// Thread: the control thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "common/status.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

class PeerIdentity {
 public:
  // Draws the secret.
  PeerIdentity();

  void set_self(control::NodeIdentity self) { self_ = std::move(self); }
  const control::NodeIdentity& self() const { return self_; }

  // ---- Keys and tokens for others ----
  // The key that packets to us must carry: of that daemon, and of that life of the link to it.
  uint64_t ReceiveKey(const control::NodeIdentity& peer, uint64_t life) const;
  // Our token for that incarnation of the daemon at `address`.
  std::string TokenFor(const std::string& address, uint64_t incarnation) const;
  // NodeContact::link.
  uint64_t LinkTo(const control::NodeIdentity& peer) const;

  // ---- Checks of others ----
  // kInvalidArgument: no link reaches that life.
  static Status CheckLife(uint64_t life);
  // kVersionMismatch (both versions named), kUnsupported (another provider), kInvalidArgument
  // (ourselves, or no incarnation).
  Status CheckIdentity(const control::NodeIdentity& peer) const;
  // Ok if a daemon with that certificate (in PEM form) may say that it is `peer`.
  // kPermissionDenied: the certificate is for others.
  static Status CheckCertificate(const control::NodeIdentity& peer, const std::string& certificate);

 private:
  control::NodeIdentity self_;
  std::string secret_;
};

}  // namespace ferry::daemon

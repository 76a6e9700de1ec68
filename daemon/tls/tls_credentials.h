// Mutual TLS between daemons: both ends show a certificate, and both check that one of their
// authorities vouches for the other's. The called daemon must also have a certificate for the host
// by which it was called. The calling daemon leaves TLS to gRPC; the called one decrypts the bytes
// before gRPC gets them (byte_sieve.h).
//
// Any thread. Load and Reload read files; the rest does not block.
#pragma once

#include <grpcpp/security/credentials.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "common/status.h"
#include "daemon/tls/tls_files.h"
#include "daemon/tls/tls_session.h"

namespace ferry::daemon {

class TlsCredentials {
 public:
  // kConfiguration: see LoadTls.
  static StatusOr<std::unique_ptr<TlsCredentials>> Load(TlsFiles files);

  // Reads the files again, for connections made from now on; those that stand go on as they are.
  // After an error everything is as before.
  Status Reload();
  // Grows with every Reload that succeeds.
  uint64_t generation() const;

  // The context for a new connection of a server, with the files' contents of the last Load or
  // Reload.
  std::shared_ptr<SSL_CTX> ForServer() const;
  // The credentials for a channel to the daemon at `host` (without port), with the files' contents
  // of the last Load or Reload.
  std::shared_ptr<grpc::ChannelCredentials> ForPeer(const std::string& host) const;

  // Describes this daemon's own certificate, for people to read.
  std::string Describe() const;
  // Checks that this daemon's own certificate is still valid; kConfiguration names the file.
  Status CheckOwn() const;
  const TlsFiles& files() const { return files_; }

 private:
  TlsCredentials(TlsFiles files, TlsIdentity identity, std::shared_ptr<SSL_CTX> server);
  std::shared_ptr<const TlsIdentity> Current() const;

  const TlsFiles files_;
  mutable std::mutex mutex_;
  std::shared_ptr<const TlsIdentity> identity_;
  std::shared_ptr<SSL_CTX> server_;
  uint64_t generation_ = 1;
};

// Explains gRPC's error for a connection that could not be made, where TLS may be the cause: says
// what is wrong and what to do. Other errors come back as they are. `tls` is null without TLS.
std::string ExplainConnectionError(const std::string& error, const TlsCredentials* tls);

}  // namespace ferry::daemon

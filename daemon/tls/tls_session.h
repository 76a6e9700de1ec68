// The server's side of one TLS connection whose client must show a certificate, over a nonblocking
// socket.
//
// One thread at a time; nothing blocks. OpenSSL writes to the socket, which raises SIGPIPE where
// that is not blocked or ignored.
#pragma once

#include <openssl/ssl.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "common/openssl_ptr.h"
#include "common/status.h"

namespace ferry::daemon {

// Makes the context that all sessions of a server share: its certificate, its key, and the
// authorities that it trusts, all in PEM form. For gRPC clients: TLS 1.2 or later, and HTTP/2.
// kConfiguration, in OpenSSL's own words.
StatusOr<std::shared_ptr<SSL_CTX>> MakeTlsServerContext(const std::string& authorities,
                                                        const std::string& certificate,
                                                        const std::string& key);

class TlsSession {
 public:
  // `socket` must outlive it. Null: no memory.
  static std::unique_ptr<TlsSession> Accept(SSL_CTX& context, int socket);

  // The event that the handshake waits for: the socket can be read, or written to.
  enum class Step { kDone, kRead, kWrite };
  // Goes on with the handshake. kPermissionDenied: it has failed, for the reason given.
  StatusOr<Step> ShakeHands();

  // After the handshake: like recv(2) and send(2), with -1 and EAGAIN while there is nothing to
  // read, or no room.
  ssize_t Receive(std::byte* to, size_t size);
  ssize_t Send(std::span<const std::byte> bytes);
  // The client's certificate, in PEM form.
  std::string PeerCertificate() const;

 private:
  using SslPtr = std::unique_ptr<SSL, OpensslDeleter<SSL_free>>;
  explicit TlsSession(SslPtr ssl) : ssl_(std::move(ssl)) {}
  ssize_t Result(int result);

  const SslPtr ssl_;
};

}  // namespace ferry::daemon

#include "daemon/tls/tls_session.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <climits>
#include <utility>

namespace ferry::daemon {
namespace {

constexpr unsigned char kHttp2[] = {2, 'h', '2'};

// Returns the last error that OpenSSL has noted, and clears its queue.
std::string LastError() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "the other end hung up" : reason;
}

Status Bad(const char* what) {
  return {ErrorCode::kConfiguration, std::string("TLS: ") + what + ": " + LastError()};
}

BioPtr Read(const std::string& pem) {
  return BioPtr(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

X509Ptr NextCertificate(BIO* pem) {
  return X509Ptr(PEM_read_bio_X509(pem, nullptr, nullptr, nullptr));
}

int ChooseHttp2(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offer,
                unsigned offer_size, void*) {
  const int found = SSL_select_next_proto(const_cast<unsigned char**>(chosen), size, kHttp2,
                                          sizeof(kHttp2), offer, offer_size);
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

Status UseCertificate(SSL_CTX* context, const std::string& certificate, const std::string& key) {
  const BioPtr chain = Read(certificate);
  const X509Ptr own = NextCertificate(chain.get());
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1) {
    return Bad("tls_cert_file cannot be used");
  }
  while (X509Ptr issuer = NextCertificate(chain.get())) {
    if (SSL_CTX_add1_chain_cert(context, issuer.get()) != 1) {
      return Bad("tls_cert_file cannot be used");
    }
  }
  const KeyPtr own_key(PEM_read_bio_PrivateKey(Read(key).get(), nullptr, nullptr, nullptr));
  if (own_key == nullptr || SSL_CTX_use_PrivateKey(context, own_key.get()) != 1) {
    return Bad("tls_key_file cannot be used");
  }
  return {};
}

Status TrustAuthorities(SSL_CTX* context, const std::string& authorities) {
  const BioPtr all = Read(authorities);
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  int count = 0;
  for (X509Ptr one = NextCertificate(all.get()); one != nullptr;
       one = NextCertificate(all.get()), ++count) {
    if (X509_STORE_add_cert(store, one.get()) != 1 ||
        SSL_CTX_add_client_CA(context, one.get()) != 1) {
      return Bad("tls_ca_file cannot be used");
    }
  }
  if (count == 0) {
    return Bad("tls_ca_file holds no certificate");
  }
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
  return {};
}

}  // namespace

StatusOr<std::shared_ptr<SSL_CTX>> MakeTlsServerContext(const std::string& authorities,
                                                        const std::string& certificate,
                                                        const std::string& key) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return Bad("no context");
  }
  FERRY_RETURN_IF_ERROR(UseCertificate(context.get(), certificate, key));
  FERRY_RETURN_IF_ERROR(TrustAuthorities(context.get(), authorities));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_alpn_select_cb(context.get(), ChooseHttp2, nullptr);
  // A resumed session would not show its certificate, and renegotiation costs the server more.
  SSL_CTX_set_options(context.get(),
                      SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  ERR_clear_error();  // the end of a PEM text is one
  return context;
}

std::unique_ptr<TlsSession> TlsSession::Accept(SSL_CTX& context, int socket) {
  SslPtr ssl(SSL_new(&context));
  if (ssl == nullptr || SSL_set_fd(ssl.get(), socket) != 1) {
    return nullptr;
  }
  SSL_set_accept_state(ssl.get());
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(ssl)));
}

StatusOr<TlsSession::Step> TlsSession::ShakeHands() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    return Step::kDone;
  }
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Step::kRead;
    case SSL_ERROR_WANT_WRITE:
      return Step::kWrite;
    default:
      break;
  }
  std::string why = LastError();
  if (const long verdict = SSL_get_verify_result(ssl_.get()); verdict != X509_V_OK) {
    why += std::string(" (") + X509_verify_cert_error_string(verdict) + ")";
  }
  return Status(ErrorCode::kPermissionDenied, why);
}

// Any error but a wait for the socket ends the session: OpenSSL forbids to use it any more.
ssize_t TlsSession::Result(int result) {
  if (result > 0) {
    return result;
  }
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    default:
      ERR_clear_error();
      errno = ECONNRESET;
      return -1;
  }
}

ssize_t TlsSession::Receive(std::byte* to, size_t size) {
  ERR_clear_error();
  return Result(SSL_read(ssl_.get(), to, static_cast<int>(std::min<size_t>(size, INT_MAX))));
}

ssize_t TlsSession::Send(std::span<const std::byte> bytes) {
  ERR_clear_error();
  return Result(SSL_write(ssl_.get(), bytes.data(),
                          static_cast<int>(std::min<size_t>(bytes.size(), INT_MAX))));
}

std::string TlsSession::PeerCertificate() const {
  const X509Ptr certificate(SSL_get1_peer_certificate(ssl_.get()));
  const BioPtr text(BIO_new(BIO_s_mem()));
  if (certificate == nullptr || text == nullptr ||
      PEM_write_bio_X509(text.get(), certificate.get()) != 1) {
    return "";
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  return {data, static_cast<size_t>(size)};
}

}  // namespace ferry::daemon

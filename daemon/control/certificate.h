// X.509 certificates between daemons: reading them from PEM text, and checking them as RFC 5280 and
// RFC 6125 say, with OpenSSL.
//
// Any thread; nothing blocks. Every error is a phrase that follows "the certificate".
#pragma once

#include <string>
#include <vector>

#include "common/openssl_ptr.h"
#include "common/status.h"

namespace ferry::daemon {

// The end of a connection that shows a certificate.
enum class TlsRole { kServer, kClient };

// A certificate with those that link it to its authority; or the authorities of a file.
class CertificateChain {
 public:
  // All certificates of a PEM text. kInvalidArgument where there is none, or one is damaged.
  static StatusOr<CertificateChain> Parse(const std::string& pem);

  // Whether the first certificate is valid now and one of `authorities` vouches for it, directly or
  // by the others here. kPermissionDenied says why not.
  Status CheckIssuedBy(const CertificateChain& authorities, TlsRole role) const;
  // Whether it is valid for `host`, an IP address or a name, by its subject alternative names;
  // the common name does not count. kPermissionDenied.
  Status CheckName(const std::string& host) const;
  // Whether `key` is the private key that belongs to it.
  bool BelongsTo(EVP_PKEY* key) const;

  // "CN = node0, valid for node0, 127.0.0.1 until Nov 20 15:10:00 2027 GMT".
  std::string Describe() const;

 private:
  X509* leaf() const { return certificates_.front().get(); }
  std::string NamesText() const;

  std::vector<X509Ptr> certificates_;  // at least one
};

}  // namespace ferry::daemon

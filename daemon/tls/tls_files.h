// The PEM files by which daemons know each other: a node's certificate, its key, and the
// authorities that may vouch for others.
//
// Any thread; reads three small files.
#pragma once

#include <string>
#include <vector>

#include "common/openssl_ptr.h"
#include "common/status.h"

namespace ferry::daemon {

// The end of a connection that shows a certificate.
enum class TlsRole { kServer, kClient };

// A certificate (X.509) with those that link it to its authority; or the authorities of a file.
// Checks are as RFC 5280 and RFC 6125 say. Nothing blocks; every error is a phrase that follows
// "the certificate".
class CertificateChain {
 public:
  // Reads all certificates of a PEM text. kInvalidArgument: there is none, or one is damaged.
  static StatusOr<CertificateChain> Parse(const std::string& pem);

  // Checks that the first certificate is valid now and that one of `authorities` vouches for it,
  // directly or by the others of this chain. kPermissionDenied says why not.
  Status CheckIssuedBy(const CertificateChain& authorities, TlsRole role) const;
  // Checks that the first certificate is valid for `host`, an IP address or a name, by its subject
  // alternative names; the common name does not count. kPermissionDenied.
  Status CheckName(const std::string& host) const;
  // Returns true if `key` is the private key of the first certificate.
  bool BelongsTo(EVP_PKEY* key) const;

  // "CN = node0, valid for node0, 127.0.0.1 until Nov 20 15:10:00 2027 GMT".
  std::string Describe() const;

 private:
  X509* leaf() const { return certificates_.front().get(); }
  std::string NamesText() const;

  std::vector<X509Ptr> certificates_;  // at least one
};

// Paths: the options tls_ca_file, tls_cert_file and tls_key_file.
struct TlsFiles {
  std::string authorities;
  std::string certificate;
  std::string key;
};

// The contents of the files, checked.
struct TlsIdentity {
  std::string authorities_pem;
  std::string certificate_pem;
  std::string key_pem;
  CertificateChain authorities;
  CertificateChain certificate;
};

// Reads and checks the files. kConfiguration names the option and the file: a file that cannot be
// read or holds something else, a key that others may read, that needs a passphrase or belongs to
// another certificate, or a certificate that peers with the same authorities would refuse.
StatusOr<TlsIdentity> LoadTls(const TlsFiles& files);

}  // namespace ferry::daemon

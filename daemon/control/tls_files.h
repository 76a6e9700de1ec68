// The PEM files by which daemons know each other: a node's certificate, its key, and the
// authorities that may vouch for others.
//
// Any thread; reads three small files.
#pragma once

#include <string>

#include "common/status.h"
#include "daemon/control/certificate.h"

namespace ferry::daemon {

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

// kConfiguration, naming option and file: one that cannot be read or holds something else, a key
// that others may read, that needs a passphrase or belongs to another certificate, and a
// certificate that peers with the same authorities would refuse.
StatusOr<TlsIdentity> LoadTls(const TlsFiles& files);

}  // namespace ferry::daemon

// Makes X.509 certificates for trying out TLS between daemons: an authority, and nodes that it
// vouches for. Keys are EC P-256, without passphrase.
//
// Any thread; nothing blocks. Everything is PEM text.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

struct CertificateAndKey {
  std::string certificate;
  std::string key;
};

struct Validity {
  time_t from = 0;
  time_t until = 0;
};

// Makes an authority's certificate and key. kSystem: OpenSSL refuses.
StatusOr<CertificateAndKey> MakeAuthority(const std::string& name, const Validity& validity);

// Makes a certificate for client and server, valid for `names`: host names, node names and IP
// addresses. The first becomes the common name. kInvalidArgument: a name is not valid, or the
// authority is damaged or its key does not belong to it.
StatusOr<CertificateAndKey> MakeNodeCertificate(const CertificateAndKey& authority,
                                                const std::vector<std::string>& names,
                                                const Validity& validity);

}  // namespace ferry::tools

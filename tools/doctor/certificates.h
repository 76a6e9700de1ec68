// How long the certificates of a PEM file are still valid.
//
// Any thread; reads the file.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"

namespace ferry::tools {

// The certificate of a file that expires first.
struct CertificateLife {
  std::string subject;       // "CN = node0"
  std::string until;         // "Nov 20 15:10:00 2027 GMT"
  int64_t seconds_left = 0;  // negative: expired so long ago
};

// kNotFound: cannot be read; kInvalidArgument: holds no certificate.
StatusOr<CertificateLife> ReadCertificateLife(const std::string& path);

}  // namespace ferry::tools

#include "tools/doctor/certificates.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

#include <optional>

#include "common/openssl_ptr.h"

namespace ferry::tools {
namespace {

constexpr int64_t kSecondsPerDay = 86'400;

std::string Text(BIO* memory) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory, &bytes);
  return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : "";
}

CertificateLife LifeOf(X509* certificate) {
  CertificateLife life;
  const ASN1_TIME* end = X509_get0_notAfter(certificate);
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, end) == 1) {  // from now
    life.seconds_left = days * kSecondsPerDay + seconds;
  }
  const BioPtr subject(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(subject.get(), X509_get_subject_name(certificate), 0, XN_FLAG_ONELINE);
  life.subject = Text(subject.get());
  const BioPtr until(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(until.get(), end);
  life.until = Text(until.get());
  return life;
}

}  // namespace

StatusOr<CertificateLife> ReadCertificateLife(const std::string& path) {
  const BioPtr file(BIO_new_file(path.c_str(), "r"));
  if (file == nullptr) {
    const int error = errno;
    ERR_clear_error();
    return Status(ErrorCode::kNotFound, path + ": " + strerror(error));
  }
  std::optional<CertificateLife> first;
  while (true) {
    const X509Ptr certificate(PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr));
    if (certificate == nullptr) {
      break;
    }
    CertificateLife life = LifeOf(certificate.get());
    if (!first || life.seconds_left < first->seconds_left) {
      first = std::move(life);
    }
  }
  ERR_clear_error();
  if (!first) {
    return Status(ErrorCode::kInvalidArgument, path + " holds no certificate in PEM form");
  }
  return *first;
}

}  // namespace ferry::tools

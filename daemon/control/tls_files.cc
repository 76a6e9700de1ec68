#include "daemon/control/tls_files.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "common/unique_fd.h"

namespace ferry::daemon {
namespace {

constexpr size_t kMaxBytes =
    1 << 20;  // of a file: a bundle of all public authorities has a quarter
constexpr mode_t kForOthers = S_IRWXG | S_IRWXO;

enum class Readers { kAnybody, kOwnerOnly };

Status Mistake(std::string text) { return {ErrorCode::kConfiguration, std::move(text)}; }

std::string ModeText(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode & ALLPERMS);
  return text.data();
}

StatusOr<std::string> Read(const std::string& option, const std::string& path, Readers readers) {
  const std::string what = option + " " + path;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!file.valid() || fstat(file.get(), &about) != 0) {
    return Mistake(StatusFromErrno(errno, "cannot read " + what).message());
  }
  if (!S_ISREG(about.st_mode) || static_cast<size_t>(about.st_size) > kMaxBytes) {
    return Mistake(what + " is no file of PEM text");
  }
  if (readers == Readers::kOwnerOnly && (about.st_mode & kForOthers) != 0) {
    return Mistake(what + " is open to others (mode " + ModeText(about.st_mode) +
                   "): a private key must be its owner's alone; run: chmod 600 " + path);
  }
  std::string text(static_cast<size_t>(about.st_size), '\0');
  const ssize_t size = read(file.get(), text.data(), text.size());
  if (size < 0) {
    return Mistake(StatusFromErrno(errno, "cannot read " + what).message());
  }
  text.resize(static_cast<size_t>(size));
  return text;
}

StatusOr<CertificateChain> Parse(const std::string& option, const std::string& path,
                                 const std::string& pem) {
  StatusOr<CertificateChain> chain = CertificateChain::Parse(pem);
  if (!chain.ok()) {
    return Mistake(option + " " + path + ": a certificate " + chain.status().message());
  }
  return chain;
}

// There is nobody to ask for a passphrase.
int NoPassphrase(char*, int, int, void*) { return -1; }

StatusOr<KeyPtr> ParseKey(const std::string& path, const std::string& pem) {
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (key != nullptr) {
    return key;
  }
  const std::string what = "tls_key_file " + path;
  if (pem.find("ENCRYPTED") != std::string::npos) {
    return Mistake(what + " needs a passphrase, which ferryd can ask nobody for: store the key " +
                   "without one (openssl pkey)");
  }
  if (pem.find("PRIVATE KEY-----") == std::string::npos) {
    return Mistake(what + ": the key is missing: there is no -----BEGIN PRIVATE KEY----- (PEM)");
  }
  return Mistake(what + ": the key is damaged");
}

}  // namespace

StatusOr<TlsIdentity> LoadTls(const TlsFiles& files) {
  auto authorities_pem = Read("tls_ca_file", files.authorities, Readers::kAnybody);
  FERRY_RETURN_IF_ERROR(authorities_pem.status());
  auto certificate_pem = Read("tls_cert_file", files.certificate, Readers::kAnybody);
  FERRY_RETURN_IF_ERROR(certificate_pem.status());
  auto key_pem = Read("tls_key_file", files.key, Readers::kOwnerOnly);
  FERRY_RETURN_IF_ERROR(key_pem.status());

  auto authorities = Parse("tls_ca_file", files.authorities, *authorities_pem);
  FERRY_RETURN_IF_ERROR(authorities.status());
  auto certificate = Parse("tls_cert_file", files.certificate, *certificate_pem);
  FERRY_RETURN_IF_ERROR(certificate.status());
  const StatusOr<KeyPtr> key = ParseKey(files.key, *key_pem);
  FERRY_RETURN_IF_ERROR(key.status());
  if (!certificate->BelongsTo(key->get())) {
    return Mistake("tls_key_file " + files.key + " is not the key of the certificate in " +
                   "tls_cert_file " + files.certificate);
  }
  for (const TlsRole role : {TlsRole::kServer, TlsRole::kClient}) {
    if (Status issued = certificate->CheckIssuedBy(*authorities, role); !issued.ok()) {
      return Mistake("tls_cert_file " + files.certificate + ": the certificate " +
                     issued.message() + "; trusted are those in tls_ca_file " + files.authorities);
    }
  }
  return TlsIdentity{std::move(*authorities_pem), std::move(*certificate_pem), std::move(*key_pem),
                     std::move(*authorities), std::move(*certificate)};
}

}  // namespace ferry::daemon

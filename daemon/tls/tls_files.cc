#include "daemon/tls/tls_files.h"

#include <arpa/inet.h>
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

using StorePtr = std::unique_ptr<X509_STORE, OpensslDeleter<X509_STORE_free>>;
using ContextPtr = std::unique_ptr<X509_STORE_CTX, OpensslDeleter<X509_STORE_CTX_free>>;
using StackPtr = std::unique_ptr<STACK_OF(X509), decltype([](STACK_OF(X509) * stack) {
                                   sk_X509_free(stack);  // the certificates have other owners
                                 })>;

std::string TextOf(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return {bytes, static_cast<size_t>(size)};
}

std::string TimeText(const ASN1_TIME* time) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(bio.get(), time);
  return TextOf(bio.get());
}

std::string NameText(const X509_NAME* name) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
  return TextOf(bio.get());
}

std::string IpText(const ASN1_OCTET_STRING* address) {
  const int family = ASN1_STRING_length(address) == sizeof(in6_addr) ? AF_INET6 : AF_INET;
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(family, ASN1_STRING_get0_data(address), text.data(), text.size());
  return text.data();
}

// The last error, which is taken off OpenSSL's queue with all others.
std::string LastError() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "unknown format" : reason;
}

Status Denied(std::string why) { return {ErrorCode::kPermissionDenied, std::move(why)}; }

// Explains what X509_verify_cert found out, in words that say what to do.
Status ExplainFailure(X509_STORE_CTX* context, TlsRole role) {
  const int error = X509_STORE_CTX_get_error(context);
  X509* at = X509_STORE_CTX_get_current_cert(context);
  const bool of_authority = X509_STORE_CTX_get_error_depth(context) > 0;
  const std::string whose =
      of_authority
          ? "is of an authority (" + NameText(X509_get_subject_name(at)) + ") whose certificate "
          : "";
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return Denied(whose + "expired on " + TimeText(X509_get0_notAfter(at)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Denied(whose + "is valid only from " + TimeText(X509_get0_notBefore(at)) +
                    " on: are the clocks right?");
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return Denied("is of an authority that is not trusted (issuer: " +
                    NameText(X509_get_issuer_name(at)) + ")");
    case X509_V_ERR_INVALID_PURPOSE:
      return Denied(std::string("may not be used by a ") +
                    (role == TlsRole::kServer ? "server" : "client") +
                    ": its extended key usage must allow serverAuth and clientAuth");
    default:
      return Denied(whose + "cannot be verified: " + X509_verify_cert_error_string(error));
  }
}

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

// Gives OpenSSL no passphrase, since a daemon cannot ask a person for one.
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

// ---- Certificate ----

StatusOr<CertificateChain> CertificateChain::Parse(const std::string& pem) {
  CertificateChain chain;
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  ERR_clear_error();
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    chain.certificates_.emplace_back(certificate);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string error = LastError();
  if (!at_end) {
    return Status(ErrorCode::kInvalidArgument, "is damaged: " + error);
  }
  if (chain.certificates_.empty()) {
    return Status(ErrorCode::kInvalidArgument,
                  "is missing: there is no -----BEGIN CERTIFICATE----- (PEM)");
  }
  return chain;
}

Status CertificateChain::CheckIssuedBy(const CertificateChain& authorities, TlsRole role) const {
  const StorePtr store(X509_STORE_new());
  for (const X509Ptr& authority : authorities.certificates_) {
    X509_STORE_add_cert(store.get(), authority.get());
  }
  const StackPtr others(sk_X509_new_null());
  for (const X509Ptr& certificate : certificates_) {
    sk_X509_push(others.get(), certificate.get());
  }
  const ContextPtr context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), store.get(), leaf(), others.get()) != 1) {
    return Denied("cannot be verified: " + LastError());
  }
  X509_STORE_CTX_set_default(context.get(), role == TlsRole::kServer ? "ssl_server" : "ssl_client");
  return X509_verify_cert(context.get()) == 1 ? Status() : ExplainFailure(context.get(), role);
}

Status CertificateChain::CheckName(const std::string& host) const {
  constexpr unsigned kFlags =
      X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;
  std::array<unsigned char, sizeof(in6_addr)> address{};
  const bool numeric = inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
                       inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
  const int valid = numeric ? X509_check_ip_asc(leaf(), host.c_str(), kFlags)
                            : X509_check_host(leaf(), host.data(), host.size(), kFlags, nullptr);
  return valid == 1 ? Status() : Denied("is valid for " + NamesText() + ", not for " + host);
}

bool CertificateChain::BelongsTo(EVP_PKEY* key) const {
  const bool match = X509_check_private_key(leaf(), key) == 1;
  ERR_clear_error();
  return match;
}

std::string CertificateChain::NamesText() const {
  const GeneralNamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(leaf(), NID_subject_alt_name, nullptr, nullptr)));
  std::string text;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int type = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &type);
    const auto* string = static_cast<const ASN1_STRING*>(value);
    const auto size = static_cast<size_t>(ASN1_STRING_length(string));
    if (type == GEN_DNS) {
      text += text.empty() ? "" : ", ";
      text.append(reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)), size);
    } else if (type == GEN_IPADD && (size == sizeof(in_addr) || size == sizeof(in6_addr))) {
      text += (text.empty() ? "" : ", ") + IpText(string);
    }
  }
  return text.empty() ? "no name (it has no subject alternative names)" : text;
}

std::string CertificateChain::Describe() const {
  return NameText(X509_get_subject_name(leaf())) + ", valid for " + NamesText() + " until " +
         TimeText(X509_get0_notAfter(leaf()));
}

// ---- TlsFiles ----

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

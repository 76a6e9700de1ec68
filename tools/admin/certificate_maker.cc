#include "tools/admin/certificate_maker.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "common/openssl_ptr.h"

namespace ferry::tools {
namespace {

constexpr size_t kSerialBytes = 16;

Status Refused(const std::string& what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return {ErrorCode::kSystem, what + ": " + (reason == nullptr ? "OpenSSL failed" : reason)};
}

bool IsAddress(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1;
}

// Letters, digits and what joins them: nothing that would mean more to OpenSSL's parser.
bool IsName(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
         });
}

StatusOr<std::string> AlternativeNames(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (!IsAddress(name) && !IsName(name)) {
      return Status(ErrorCode::kInvalidArgument,
                    "\"" + name + "\" is neither a name (letters, digits, '-', '.', '_') nor an " +
                        "IP address");
    }
    text += (text.empty() ? "" : ",") + std::string(IsAddress(name) ? "IP:" : "DNS:") + name;
  }
  return text;
}

template <typename Write>
std::string PemText(Write write) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  write(bio.get());
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return {bytes, static_cast<size_t>(size)};
}

struct Extension {
  int id;
  std::string value;
};

// A certificate that `issuer` signs with `issuer_key`; null: one that signs itself.
StatusOr<CertificateAndKey> Make(const std::string& common_name, const Validity& validity,
                                 const std::vector<Extension>& extensions, X509* issuer,
                                 EVP_PKEY* issuer_key) {
  const std::string what = "cannot make a certificate for " + common_name;
  const KeyPtr key(EVP_EC_gen("P-256"));
  const X509Ptr certificate(X509_new());
  X509* made = certificate.get();
  std::array<unsigned char, kSerialBytes> serial{};
  if (key == nullptr || made == nullptr || RAND_bytes(serial.data(), serial.size()) != 1) {
    return Refused(what);
  }
  serial[0] = (serial[0] & 0x7f) | 0x40;  // positive, and never shorter
  ASN1_STRING_set(X509_get_serialNumber(made), serial.data(), serial.size());
  X509_set_version(made, X509_VERSION_3);
  ASN1_TIME_set(X509_getm_notBefore(made), validity.from);
  ASN1_TIME_set(X509_getm_notAfter(made), validity.until);
  X509_set_pubkey(made, key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509* signer = issuer == nullptr ? made : issuer;
  X509_set_issuer_name(made, X509_get_subject_name(signer));
  X509V3_CTX context;
  X509V3_set_ctx(&context, signer, made, nullptr, nullptr, 0);
  for (const Extension& extension : extensions) {
    X509_EXTENSION* added =
        X509V3_EXT_conf_nid(nullptr, &context, extension.id, extension.value.c_str());
    const bool done = added != nullptr && X509_add_ext(made, added, -1) == 1;
    X509_EXTENSION_free(added);
    if (!done) {
      return Refused(what);
    }
  }
  if (X509_sign(made, issuer == nullptr ? key.get() : issuer_key, EVP_sha256()) == 0) {
    return Refused(what);
  }
  return CertificateAndKey{
      PemText([&](BIO* bio) { PEM_write_bio_X509(bio, made); }), PemText([&](BIO* bio) {
        PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
      })};
}

}  // namespace

StatusOr<CertificateAndKey> MakeAuthority(const std::string& name, const Validity& validity) {
  return Make(name, validity,
              {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
               {NID_key_usage, "critical,keyCertSign,cRLSign"},
               {NID_subject_key_identifier, "hash"}},
              nullptr, nullptr);
}

StatusOr<CertificateAndKey> MakeNodeCertificate(const CertificateAndKey& authority,
                                                const std::vector<std::string>& names,
                                                const Validity& validity) {
  const StatusOr<std::string> alternative_names = AlternativeNames(names);
  FERRY_RETURN_IF_ERROR(alternative_names.status());
  const auto memory = [](const std::string& text) {
    return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  };
  const X509Ptr issuer(
      PEM_read_bio_X509(memory(authority.certificate).get(), nullptr, nullptr, nullptr));
  const KeyPtr issuer_key(PEM_read_bio_PrivateKey(
      memory(authority.key).get(), nullptr, [](char*, int, int, void*) { return -1; }, nullptr));
  if (issuer == nullptr || issuer_key == nullptr ||
      X509_check_private_key(issuer.get(), issuer_key.get()) != 1) {
    ERR_clear_error();
    return Status(ErrorCode::kInvalidArgument,
                  "the authority's certificate and key are damaged or do not belong together");
  }
  return Make(names.front(), validity,
              {{NID_basic_constraints, "critical,CA:FALSE"},
               {NID_key_usage, "critical,digitalSignature"},
               {NID_ext_key_usage, "serverAuth,clientAuth"},
               {NID_subject_alt_name, *alternative_names},
               {NID_subject_key_identifier, "hash"},
               {NID_authority_key_identifier, "keyid"}},
              issuer.get(), issuer_key.get());
}

}  // namespace ferry::tools

#include "daemon/tls/tls_credentials.h"

#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <utility>
#include <vector>

namespace ferry::daemon {
namespace {

namespace tls = grpc::experimental;

// Checks the certificate of the daemon that we call, before anything is said to it. gRPC's own
// check is left out because it tells only that it failed, not why.
class PeerVerifier final : public tls::ExternalCertificateVerifier {
 public:
  PeerVerifier(std::string host, std::shared_ptr<const TlsIdentity> own, std::string authority_file)
      : host_(std::move(host)), own_(std::move(own)), authority_file_(std::move(authority_file)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* verdict) override {
    const grpc::string_ref pem = request->peer_cert_full_chain();
    const Status status = Check({pem.data(), pem.size()});
    *verdict = status.ok()
                   ? grpc::Status::OK
                   : grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                  "the certificate of the daemon there " + status.message());
    return true;  // done already
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  Status Check(const std::string& pem) const {
    const StatusOr<CertificateChain> chain = CertificateChain::Parse(pem);
    FERRY_RETURN_IF_ERROR(chain.status());
    if (Status issued = chain->CheckIssuedBy(own_->authorities, TlsRole::kServer); !issued.ok()) {
      return {issued.code(),
              issued.message() + "; trusted are those in tls_ca_file " + authority_file_};
    }
    return chain->CheckName(host_);
  }

  const std::string host_;
  const std::shared_ptr<const TlsIdentity> own_;
  const std::string authority_file_;
};

StatusOr<std::shared_ptr<SSL_CTX>> ServerContext(const TlsIdentity& identity) {
  return MakeTlsServerContext(identity.authorities_pem, identity.certificate_pem, identity.key_pem);
}

bool Contains(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TlsCredentials::TlsCredentials(TlsFiles files, TlsIdentity identity,
                               std::shared_ptr<SSL_CTX> server)
    : files_(std::move(files)),
      identity_(std::make_shared<const TlsIdentity>(std::move(identity))),
      server_(std::move(server)) {}

StatusOr<std::unique_ptr<TlsCredentials>> TlsCredentials::Load(TlsFiles files) {
  StatusOr<TlsIdentity> identity = LoadTls(files);
  FERRY_RETURN_IF_ERROR(identity.status());
  StatusOr<std::shared_ptr<SSL_CTX>> server = ServerContext(*identity);
  FERRY_RETURN_IF_ERROR(server.status());
  return std::unique_ptr<TlsCredentials>(
      new TlsCredentials(std::move(files), std::move(*identity), std::move(*server)));
}

Status TlsCredentials::Reload() {
  StatusOr<TlsIdentity> identity = LoadTls(files_);
  FERRY_RETURN_IF_ERROR(identity.status());
  StatusOr<std::shared_ptr<SSL_CTX>> server = ServerContext(*identity);
  FERRY_RETURN_IF_ERROR(server.status());
  const std::lock_guard lock(mutex_);
  identity_ = std::make_shared<const TlsIdentity>(std::move(*identity));
  server_ = std::move(*server);
  ++generation_;
  return {};
}

uint64_t TlsCredentials::generation() const {
  const std::lock_guard lock(mutex_);
  return generation_;
}

std::shared_ptr<const TlsIdentity> TlsCredentials::Current() const {
  const std::lock_guard lock(mutex_);
  return identity_;
}

std::shared_ptr<SSL_CTX> TlsCredentials::ForServer() const {
  const std::lock_guard lock(mutex_);
  return server_;
}

std::shared_ptr<grpc::ChannelCredentials> TlsCredentials::ForPeer(const std::string& host) const {
  const std::shared_ptr<const TlsIdentity> own = Current();
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<tls::StaticDataCertificateProvider>(
      std::vector<tls::IdentityKeyCertPair>{{own->key_pem, own->certificate_pem}}));
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(false);  // PeerVerifier does it
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<PeerVerifier>(host, own, files_.authorities));
  return tls::TlsCredentials(options);
}

std::string TlsCredentials::Describe() const { return Current()->certificate.Describe(); }

Status TlsCredentials::CheckOwn() const {
  const std::shared_ptr<const TlsIdentity> own = Current();
  const Status issued = own->certificate.CheckIssuedBy(own->authorities, TlsRole::kClient);
  return issued.ok()
             ? issued
             : Status(ErrorCode::kConfiguration, "this daemon's own certificate (tls_cert_file " +
                                                     files_.certificate + ") " + issued.message());
}

std::string ExplainConnectionError(const std::string& error, const TlsCredentials* tls) {
  constexpr char kVerdict[] = "UNAUTHENTICATED: ";
  if (const size_t verdict = error.find(kVerdict); verdict != error.npos) {
    return error.substr(verdict + sizeof(kVerdict) - 1);
  }
  // gRPC gives only these texts when the other end breaks off a handshake.
  const bool broken_off = Contains(error, "Socket closed") ||
                          Contains(error, "Connection reset by peer") ||
                          Contains(error, "Endpoint read failed");  // by an alert of TLS
  if (tls == nullptr) {
    return broken_off ? "the daemon there hung up (" + error +
                            "): it may want TLS, which this one is not set up for: give it "
                            "tls_ca_file, tls_cert_file and tls_key_file too"
                      : error;
  }
  if (Contains(error, "wrong version number")) {
    return "the daemon there does not speak TLS, which this one is set up for: give it "
           "tls_ca_file, tls_cert_file and tls_key_file too";
  }
  if (!broken_off) {
    return error;
  }
  if (const Status own = tls->CheckOwn(); !own.ok()) {
    return own.message();
  }
  return "the daemon there hung up (" + error + "): it may refuse this one's certificate (" +
         tls->Describe() + "); its log says why";
}

}  // namespace ferry::daemon

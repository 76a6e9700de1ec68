// Every way in which the TLS files can be wrong.
#include "daemon/tls/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/daemon/tls/test_certificates.h"

namespace ferry::daemon {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class TlsFilesTest : public ::testing::Test {
 protected:
  void SetUp() override { Write(authority_.Node({"a", "127.0.0.1"})); }

  void Write(const tools::CertificateAndKey& node) {
    config::Options options;
    authority_.Write(folder_, node, &options);
    files_ = {options.tls_ca_file, options.tls_cert_file, options.tls_key_file};
  }
  std::string Error() const {
    const auto identity = LoadTls(files_);
    EXPECT_EQ(identity.status().code(), ErrorCode::kConfiguration);
    return identity.status().message();
  }

  const std::string folder_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
  const TestAuthority authority_{"authority one"};
  TlsFiles files_;
};

TEST_F(TlsFilesTest, AreReadAndDescribed) {
  const auto identity = LoadTls(files_);
  ASSERT_TRUE(identity.ok()) << identity.status().message();
  EXPECT_THAT(identity->certificate.Describe(),
              StartsWith("CN = a, valid for a, 127.0.0.1 until "));
}

TEST_F(TlsFilesTest, NamesTheOptionAndTheFileThatIsMissing) {
  files_.authorities = "/nowhere/ca.pem";
  EXPECT_EQ(Error(), "cannot read tls_ca_file /nowhere/ca.pem: No such file or directory");
  Write(authority_.Node({"a"}));
  files_.certificate = "/nowhere/a.pem";
  EXPECT_EQ(Error(), "cannot read tls_cert_file /nowhere/a.pem: No such file or directory");
  Write(authority_.Node({"a"}));
  files_.key = "/nowhere/a.key";
  EXPECT_EQ(Error(), "cannot read tls_key_file /nowhere/a.key: No such file or directory");
}

TEST_F(TlsFilesTest, WhatIsNoFileOfTextIsRefused) {
  files_.authorities = folder_;
  EXPECT_EQ(Error(), "tls_ca_file " + folder_ + " is no file of PEM text");
}

TEST_F(TlsFilesTest, WhatHoldsNoCertificateIsRefused) {
  for (const char* text : {"", "hello\n"}) {
    WriteFile(files_.certificate, text);
    EXPECT_EQ(Error(), "tls_cert_file " + files_.certificate +
                           ": a certificate is missing: there is no -----BEGIN CERTIFICATE----- "
                           "(PEM)");
  }
}

TEST_F(TlsFilesTest, ADamagedCertificateIsRefused) {
  std::string pem = authority_.certificate();
  pem.insert(pem.size() / 2, "!");
  WriteFile(files_.authorities, pem);
  EXPECT_THAT(Error(),
              StartsWith("tls_ca_file " + files_.authorities + ": a certificate is damaged: "));
  WriteFile(files_.authorities, authority_.certificate() + pem);  // the second one
  EXPECT_THAT(Error(), HasSubstr("a certificate is damaged"));
}

TEST_F(TlsFilesTest, AKeyThatIsNoneIsRefused) {
  WriteFile(files_.key, authority_.certificate());
  EXPECT_THAT(Error(),
              AllOf(StartsWith("tls_key_file " + files_.key), HasSubstr("the key is missing")));
  std::string pem = authority_.Node({"a"}).key;
  pem.insert(pem.size() / 2, "!");
  WriteFile(files_.key, pem);
  EXPECT_EQ(Error(), "tls_key_file " + files_.key + ": the key is damaged");
  WriteFile(files_.key, "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
  EXPECT_THAT(Error(), HasSubstr("needs a passphrase"));
}

TEST_F(TlsFilesTest, AKeyOfAnotherCertificateIsRefused) {
  WriteFile(files_.key, authority_.Node({"a"}).key);
  EXPECT_EQ(Error(), "tls_key_file " + files_.key +
                         " is not the key of the certificate in tls_cert_file " +
                         files_.certificate);
}

TEST_F(TlsFilesTest, AKeyThatOthersMayReadIsRefused) {
  for (const mode_t mode : {0640, 0604, 0644}) {
    chmod(files_.key.c_str(), mode);
    EXPECT_THAT(Error(), AllOf(HasSubstr("is open to others (mode 06"),
                               EndsWith("run: chmod 600 " + files_.key)));
  }
  chmod(files_.key.c_str(), 0400);
  EXPECT_TRUE(LoadTls(files_).ok());
}

TEST_F(TlsFilesTest, ACertificateOutOfItsTimeIsRefused) {
  Write(authority_.Node({"a"}, TestAuthority::Expired()));
  EXPECT_THAT(Error(),
              StartsWith("tls_cert_file " + files_.certificate + ": the certificate expired on "));
  Write(authority_.Node({"a"}, TestAuthority::Later()));
  EXPECT_THAT(Error(), HasSubstr("is valid only from "));
}

TEST_F(TlsFilesTest, ACertificateOfAnotherAuthorityIsRefused) {
  // The two even have the same name: the key decides.
  for (const char* name : {"authority one", "authority two"}) {
    WriteFile(files_.authorities, TestAuthority(name).certificate());
    EXPECT_THAT(Error(), AllOf(HasSubstr("is of an authority that is not trusted (issuer: CN = "
                                         "authority one)"),
                               EndsWith("trusted are those in tls_ca_file " + files_.authorities)));
  }
}

TEST_F(TlsFilesTest, ACertificateForAnotherPurposeIsRefused) {
  // An authority's own certificate may sign, but not serve.
  const auto other = tools::MakeAuthority("authority three", TestAuthority::Valid());
  ASSERT_TRUE(other.ok());
  WriteFile(files_.authorities, other->certificate);
  WriteFile(files_.certificate, other->certificate);
  WriteFile(files_.key, other->key);
  EXPECT_THAT(Error(), HasSubstr("may not be used by a server"));
}

TEST_F(TlsFilesTest, ACertificateIsForItsAlternativeNamesOnly) {
  const auto chain = CertificateChain::Parse(
      authority_.Node({"a", "a.example", "10.0.0.7", "fe80::1"}).certificate);
  ASSERT_TRUE(chain.ok());
  for (const char* host : {"a", "A.example", "10.0.0.7", "fe80::1", "fe80:0::1"}) {
    EXPECT_TRUE(chain->CheckName(host).ok()) << host;
  }
  for (const char* host : {"b", "example", "x.a.example", "10.0.0.8", "::1", ""}) {
    EXPECT_EQ(chain->CheckName(host).code(), ErrorCode::kPermissionDenied) << host;
  }
  EXPECT_EQ(chain->CheckName("b").message(),
            "is valid for a, a.example, 10.0.0.7, fe80::1, not for b");
  // Its common name is "authority one", which does not count.
  const auto nameless = CertificateChain::Parse(authority_.certificate());
  ASSERT_TRUE(nameless.ok());
  EXPECT_THAT(nameless->CheckName("authority one").message(), HasSubstr("is valid for no name"));
}

}  // namespace
}  // namespace ferry::daemon
